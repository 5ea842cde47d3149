"""Two measures against each other: every method a curve over its knob, and who dominates whom."""

from __future__ import annotations

import json

import pytest

from rewardlab import registry
from rewardlab.checks import pairs as rehearse
from rewardlab.checks.runs import Done
from rewardlab.commands import cli
from rewardlab.commands.compare import show
from rewardlab.comparisons import completing
from rewardlab.comparisons.arms import arms_of
from rewardlab.comparisons.frontier import Axis, frontier
from rewardlab.comparisons.page import page
from rewardlab.comparisons.plan import PLAN, Plan, read_plan
from rewardlab.errors import RewardlabError
from rewardlab.models.load import load_policy
from rewardlab.runs.config import RunConfig
from tests.helpers import in_process

CONFIG = RunConfig(task="arithmetic:test_size=8,difficulty=1", model="untrained", eval_problems=4, eval_every=0, steps=1, max_new=8)


# ---- knobs -----------------------------------------------------------------------------------------------------------


def test_several_values_of_a_number_make_an_arm_of_each():
    arms = arms_of(["grpo", "hapo"], {"hapo.weight": [0.5, 1, 2.0], "lr": 1e-4})
    assert [arm.name for arm in arms] == ["grpo", "hapo:weight=0.5", "hapo:weight=1", "hapo:weight=2.0"]
    assert [(arm.of, arm.knob, arm.at) for arm in arms[:2]] == [("", "", None), ("hapo", "weight", 0.5)]
    assert [str(arm.recipe.reward).partition(" * ")[0] for arm in arms[1:]] == ["correct() + 0.5", "correct() + 1", "correct() + 2"]
    assert [arm.recipe.name for arm in arms] == [arm.name for arm in arms]
    # a value with commas, as the command line hands it over, means the same
    assert [arm.recipe for arm in arms_of(["grpo", "hapo"], {"hapo.weight": "0.5, 1, 2.0", "lr": 1e-4})] == [a.recipe for a in arms]


def test_a_knob_of_all_methods_a_stack_or_a_recipe():
    both = arms_of(["grpo", "rloo"], {"n": [2, 4]})
    assert [arm.name for arm in both] == ["grpo:n=2", "grpo:n=4", "rloo:n=2", "rloo:n=4"]
    assert [arm.recipe.sampling_settings["n"] for arm in both] == [2, 4, 2, 4]
    stacked = arms_of(["grpo+hapo"], {"hapo.weight": [1, 2]})
    assert [(arm.name, arm.of) for arm in stacked] == [("grpo+hapo:weight=1", "grpo+hapo"), ("grpo+hapo:weight=2", "grpo+hapo")]
    mine = arms_of([registry.build("grpo").but(name="mine")], {"lr": [1e-4, 3e-4]})
    assert [arm.recipe.update.lr for arm in mine] == [1e-4, 3e-4] != [None] * 2


@pytest.mark.parametrize(
    ("methods", "settings", "message"),
    [
        (["hapo"], {"hapo.weight": [1]}, "two methods or more"),
        (["hapo"], {"hapo.weight": [1, 2], "hapo.worst": [-0.7, -0.5]}, "hapo has several values of weight and worst"),
        (["hapo"], {"hapo.weight": [1, 1.0]}, "weight of hapo has a value twice: 1, 1.0"),
        (["hapo"], {"hapo.weight": "1,much"}, "weight of hapo must be a number"),
        # a text may have commas of its own
        (["gdpo"], {"gdpo.form": "a,b"}, "two methods or more"),
    ],
)
def test_knobs_that_make_no_curve_are_refused(methods, settings, message):
    with pytest.raises(RewardlabError, match=message):
        arms_of(methods, settings)


# ---- who dominates whom ----------------------------------------------------------------------------------------------


def run_of(accuracy, length):
    measured = {} if accuracy is None else {"pass@1": accuracy}
    return Done(measured | {"train.length": length}, [], 1.0)


ARMS = tuple(arms_of(["grpo", "hapo"], {"hapo.weight": [0.5, 1, 2]}))


def plan_of(x="length", y="", arms=ARMS):
    return Plan(arms, CONFIG, (0, 1), "pass@1", x=x, y=y)


def dominated(found):
    return {point["method"]: point["dominated"] for point in found["points"]}


def test_an_arm_is_dominated_where_another_is_as_good_on_both_axes_and_better_on_one():
    outcomes = {
        "grpo": [run_of(0.5, 40), run_of(0.7, 44)],  # .6 at 42 tokens
        "hapo:weight=0.5": [run_of(0.6, 30), run_of(0.6, 34)],  # .6 at 32
        "hapo:weight=1": [run_of(0.4, 20), run_of(0.6, 20)],  # .5 at 20
        "hapo:weight=2": [run_of(0.4, 20), run_of(0.4, 24)],  # .4 at 22
    }
    found = frontier(plan_of(), outcomes)
    assert (found["x"], found["y"]) == ({"name": "length", "better": "lower"}, {"name": "pass@1", "better": "higher"})
    assert [(p["of"], p["at"], p["x"]["mean"], p["y"]["mean"]) for p in found["points"][:2]] == [
        ("grpo", None, 42, pytest.approx(0.6)), ("hapo", 0.5, 32, pytest.approx(0.6)),
    ]  # fmt: skip
    assert dominated(found) == {"grpo": True, "hapo:weight=0.5": False, "hapo:weight=1": False, "hapo:weight=2": True}
    # where longer is better, grpo is as right and longer
    longer = dominated(frontier(plan_of("length:higher"), outcomes))
    assert longer == {"grpo": False, "hapo:weight=0.5": True, "hapo:weight=1": True, "hapo:weight=2": True}
    # equals dominate neither; and less of pass@1 may be what is wanted
    outcomes["hapo:weight=2"] = outcomes["hapo:weight=1"]
    equal = dominated(frontier(plan_of(y="pass@1:lower"), outcomes))
    assert equal == {"grpo": True, "hapo:weight=0.5": True, "hapo:weight=1": False, "hapo:weight=2": False}
    assert frontier(plan_of(""), outcomes) is None


def test_a_run_counts_on_both_axes_or_on_none():
    outcomes = {arm.name: [run_of(0.5, 40)] * 2 for arm in ARMS} | {
        "grpo": [run_of(0.9, 30), run_of(None, 10)],
        "hapo:weight=2": [run_of(None, 1)] * 2,
    }
    found = frontier(plan_of(), outcomes)
    assert found["points"][0]["x"] == {"mean": 30, "ci95": None, "of": "", "values": [30]}
    assert found["points"][-1]["y"] == {"mean": None, "ci95": None, "of": "", "values": []}
    # an arm without a place dominates nobody, though it is the shortest
    assert dominated(found) == {"grpo": False, "hapo:weight=0.5": True, "hapo:weight=1": True, "hapo:weight=2": None}
    with pytest.raises(RewardlabError, match="unknown measure of these runs 'lenght'; did you mean"):
        frontier(plan_of("lenght"), outcomes)


def test_a_method_that_selects_answers_stands_at_what_they_cost():
    arms = tuple(arms_of(["grpo", "best_of_n"]))
    outcomes = {"grpo": [run_of(0.5, 40)] * 2, "best_of_n": [Done({"accuracy": 0.7, "tokens_per_answer": 320.0}, [], 1.0)] * 2}
    found = frontier(plan_of(arms=arms), outcomes)
    assert (found["points"][1]["x"]["mean"], found["points"][1]["y"]["mean"]) == (320, pytest.approx(0.7))
    assert dominated(found) == {"grpo": False, "best_of_n": False}


def test_axes_are_read():
    assert Axis.read("length", "lower") == ("length", "lower")
    assert Axis.read("train.reward/x:higher", "lower") == ("train.reward/x", "higher")
    assert Axis.read("reward:x", "higher") == ("reward:x", "higher")


# ---- both doors ------------------------------------------------------------------------------------------------------


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """An untrained policy, and runs in this process, for speed."""

    monkeypatch.setattr(completing, "run_all", in_process.run_all)
    monkeypatch.setattr(rehearse, "run_all", in_process.run_all)
    monkeypatch.chdir(tmp_path)
    load_policy("untrained", task=registry.task(CONFIG.task)).save(tmp_path / "weights")
    return str(tmp_path / "weights")


@pytest.mark.slow
def test_the_command_compares_every_value_and_draws_them(weights, tmp_path, capsys):
    argv = f"compare grpo --grpo.n 2,3 --grpo.problems 1 --task {CONFIG.task} --model {weights} --eval-problems 4 --steps 1".split()
    argv += ["--max-new", "4", "--eval-every", "0", "--seeds", "1", "--out", "c", "--json"]
    assert cli.main([*argv, "--y", "pass@1"]) == 2
    assert "Give x too" in capsys.readouterr().err
    assert cli.main([*argv, "--x", "lengt"]) == 2
    assert "unknown measure of grpo:n=2, grpo:n=3 'lengt'" in capsys.readouterr().err
    assert cli.main([*argv, "--x", "tokens"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [(p["method"], p["of"], p["knob"], p["at"]) for p in record["frontier"]["points"]] == [
        ("grpo:n=2", "grpo", "n", 2), ("grpo:n=3", "grpo", "n", 3),
    ]  # fmt: skip
    tokens = [p["x"]["mean"] for p in record["frontier"]["points"]]
    assert tokens == [row["tokens"] for row in record["methods"]]
    show(record)
    assert "pass@1 (higher is better) against tokens (lower is better)" in capsys.readouterr().out
    assert (tmp_path / "c" / "runs" / "grpo:n=3-s0" / "metrics.jsonl").exists()
    html = (tmp_path / "c" / "compare.html").read_text()
    assert '<div id="frontier">' in html
    assert "pass@1 against tokens" in html
    # other axes later, without a new run; axes that nobody measured are refused, and do not stay
    assert cli.main(["compare", "--resume", "c", "--x", "nothing"]) == 2
    assert read_plan(tmp_path / "c").x == "tokens"
    assert cli.main(["compare", "--resume", "c", "--x", "length", "--y", "entropy:lower", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)["frontier"]
    assert (again["x"]["name"], again["y"]) == ("length", {"name": "entropy", "better": "lower"})
    assert (read_plan(tmp_path / "c").x, read_plan(tmp_path / "c").y) == ("length", "entropy:lower")


def test_a_plan_keeps_its_knobs_and_axes_and_older_ones_have_none(tmp_path):
    plan = plan_of("length", "pass@1")
    plan.save(tmp_path)
    assert read_plan(tmp_path) == plan
    document = json.loads((tmp_path / PLAN).read_text())
    del document["x"], document["y"]
    for arm in document["methods"]:
        del arm["of"], arm["knob"], arm["at"]
    (tmp_path / PLAN).write_text(json.dumps(document))
    old = read_plan(tmp_path)
    assert (old.x, old.y, old.arms[1].of, old.arms[1].name) == ("", "", "", "hapo:weight=0.5")


def test_nothing_written_by_others_can_run_in_the_frontier():
    hostile = "</script><script>alert(1)</script>"
    curve = {"tokens": [], "mean": [], "low": [], "high": []}
    row = {"method": hostile, "formula": "", "mean": 1.0, "ci95": None, "difference": None, "tokens": 1, "seconds": [1.0]}
    at = {"mean": 1.0, "ci95": None}
    point = {"method": hostile, "of": hostile, "knob": hostile, "at": 1, "x": at, "y": at, "dominated": False}
    axis = {"name": hostile, "better": "lower"}
    record = {
        "task": "t",
        "model": "m",
        "seeds": [0],
        "budget": None,
        "problems": 1,
        "measure": "m",
        "methods": [row | {"curve": curve}],
    }
    text = page(record | {"frontier": {"x": axis, "y": axis, "points": [point]}})
    assert "<script>alert" not in text
    assert '<div id="frontier">' not in page(record)
