"""Comparisons compare like with like, say what they cannot decide, refuse at once what would fail late, and can be completed."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from rewardlab import api, registry
from rewardlab.checks import pairs as rehearse
from rewardlab.checks.runs import Done
from rewardlab.commands import cli
from rewardlab.commands import compare as commands_compare
from rewardlab.commands.compare import show
from rewardlab.comparisons import compare, comparison, completing
from rewardlab.comparisons.arms import arms_of
from rewardlab.comparisons.estimate import seconds
from rewardlab.comparisons.page import page
from rewardlab.comparisons.plan import Plan, read_plan
from rewardlab.errors import RewardlabError
from rewardlab.models.load import load_policy
from rewardlab.runs.config import RunConfig
from rewardlab.util.intervals import interval
from tests.helpers import in_process

FEW = '''"""Few: two replies a step."""
from rewardlab.methods.baselines.grpo import grpo

def few(base=None, *, n: int = 2):
    return grpo(n=n).but(problems=1, name="few")

claim = None
'''
HALF = FEW.replace("few", "half").replace("problems=1", "problems=1, epochs=3")
CONFIG = RunConfig(task="arithmetic:test_size=8,difficulty=1", model="untrained", eval_problems=4, eval_every=0, steps=2, max_new=8)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """The checkpoint of an untrained policy, which loads faster than it is made."""
    folder = tmp_path_factory.mktemp("weights")
    load_policy("untrained", task=registry.task(CONFIG.task)).save(folder)
    return str(folder)


@pytest.fixture
def config(weights):
    return CONFIG.but(model=weights)


@pytest.fixture
def methods(tmp_path, monkeypatch):
    """Two quick methods of the user's own, and runs in this process, for speed: processes of their own are tested elsewhere."""
    folder = tmp_path / "own" / "comparing"
    folder.mkdir(parents=True)
    for name, text in (("few", FEW), ("half", HALF)):
        (folder / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, f"rewardlab.methods.comparing.{name}", raising=False)
    monkeypatch.delitem(sys.modules, "rewardlab.methods.comparing", raising=False)
    monkeypatch.setenv("REWARDLAB_METHODS", str(folder.parent))
    monkeypatch.setattr(completing, "run_all", in_process.run_all)
    monkeypatch.setattr(rehearse, "run_all", in_process.run_all)
    monkeypatch.chdir(tmp_path)


def kept(folder):
    return sorted(path.name for path in folder.iterdir())


# ---- runs ------------------------------------------------------------------------------------------------------------


def test_a_setting_for_all_reaches_methods_that_build_on_one_that_has_it():
    # hapo is grpo+hapo: with eight replies to a problem it would be compared with a GRPO of sixteen
    assert [arm.recipe.rollout.innermost.settings["n"] for arm in arms_of(["grpo", "hapo", "rloo"], {"n": 16})] == [16, 16, 16]


@pytest.mark.slow
def test_methods_get_what_the_first_spends_and_every_run_is_kept(methods, config, tmp_path):
    out = tmp_path / "out"
    how = {"seeds": range(2), "measure": "train.entropy", "equal": "tokens", "out": out}
    found = compare.compare(["few", "half"], config.but(eval_every=1), **how)
    first, second = found["methods"]
    assert second["tokens"] >= first["tokens"]
    differences = [b - a for a, b in zip(first["values"], second["values"], strict=True)]
    assert second["difference"]["values"] == pytest.approx(differences)
    assert second["difference"]["mean"] == pytest.approx(sum(differences) / 2)
    # what training logs has no interval over problems, and two seeds have none that tells anything
    assert first["ci95"] is None
    assert {"out": str(out), **json.loads((out / "compare.json").read_text())} == found
    (loaded,) = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=[^>]+>", (out / "compare.html").read_text())
    assert re.fullmatch(r'<script nonce="[^"]+" src="plotly.min.js">', loaded)
    # three passes over each batch are three times the updates on the same tokens: said, since it may be all of the difference
    assert (first["updates"], second["updates"]) == (2, 3 * sum(second["steps"]) / 2)
    assert any(f"half had {second['updates']:g} updates on the same tokens, few 2" in note for note in found["notes"])
    # ordinary run folders, without weights, which one page compares
    assert kept(out / "runs") == ["few-s0", "few-s1", "half-s0", "half-s1"]
    assert kept(out / "runs" / "half-s1") == ["config.json", "metrics.jsonl", "report.html", "rollouts", "summary.json"]
    assert cli.main(["report", *map(str, (out / "runs").iterdir()), "--out", str(out / "runs.html")]) == 0
    assert kept(out) == ["compare.html", "compare.json", "plan.json", "plotly.min.js", "runs", "runs.html", "starts"]
    # every page of the folder loads its library
    sizes = {page.name: page.stat().st_size for page in (*out.glob("*.html"), *out.glob("runs/*/*.html"))}
    assert all(size < 400_000 for size in sizes.values())


def test_a_dry_run_says_what_a_comparison_would_take_and_keeps_nothing(methods, config, tmp_path):
    told = compare.compare(["few", "half"], config, seeds=range(3), out=tmp_path / "out", dry_run=True, rates=(1e-3, 3e-3))
    assert (told["methods"], told["seeds"], told["runs"]) == (["few", "half"], 3, 2 * 3 + 2 * 2 * 2)
    assert told["measure"]
    assert told["seconds"] >= 0
    assert not (tmp_path / "out").exists()
    with pytest.raises(RewardlabError, match="unknown measure of few, half 'nothing'"):
        compare.compare(["few", "half"], config, measure="nothing", dry_run=True)


def test_a_method_that_learns_nothing_from_rows_that_do_not_come_again_is_told(config, capsys):
    compare.compare(["grpo", "hapo"], config, seeds=range(2), dry_run=True)
    assert "hapo compares right replies with earlier ones to the same prompt, and" in capsys.readouterr().err


def test_a_comparison_that_was_stopped_is_completed_by_the_missing_runs_alone(methods, config, tmp_path, monkeypatch):
    out, train, trained = tmp_path / "out", api.train, []

    def stopped(recipe, **how):
        trained.append(how["config"].out.name)
        if trained.count("half-s0") == 1 and trained[-1] == "half-s0":
            raise KeyboardInterrupt
        return train(recipe, **how)

    monkeypatch.setattr(api, "train", stopped)
    with pytest.raises(KeyboardInterrupt, match=str(out)) as stop:
        compare.compare(["few", "half"], config, seeds=range(2), out=out)
    assert stop.value.__notes__ == [f"finished runs are kept; resume with: rewardlab compare --resume {out}"]
    assert cli.stopped(stop.value) == f"stopped; finished runs are kept; resume with: rewardlab compare --resume {out}"
    # a first step of each, and then the runs until it was stopped
    assert trained == [".rehearsal-few", ".rehearsal-half", "few-s0", "half-s0"]
    assert not (out / "compare.json").exists()
    completed = compare.resume(out)
    assert trained[4:] == ["half-s0", "few-s1", "half-s1"]
    whole = compare.compare(["few", "half"], config, seeds=range(2), out=tmp_path / "whole", keep_models=True)
    assert {"best", "model"} <= set(kept(tmp_path / "whole" / "runs" / "few-s0"))
    assert "checkpoints" not in kept(tmp_path / "whole" / "runs" / "few-s0")
    assert [row["values"] for row in completed["methods"]] == [row["values"] for row in whole["methods"]]
    assert [row["tokens"] for row in completed["methods"]] == [row["tokens"] for row in whole["methods"]]
    # and by more seeds
    del trained[:]
    assert [len(row["values"]) for row in compare.resume(out, seeds=range(3))["methods"]] == [3, 3]
    assert trained == ["few-s2", "half-s2"]
    with pytest.raises(RewardlabError, match=r"more seeds and not fewer: .* has seed 0 already"):
        compare.resume(out, seeds=[1, 2])
    # one that has finished is told anew without its model
    monkeypatch.setattr(compare, "_processes", lambda *_: pytest.fail("its model was looked for"))
    assert len(compare.resume(out)["seeds"]) == 3


def test_a_run_that_was_stopped_goes_on_from_its_checkpoint(methods, config, tmp_path, monkeypatch):
    out, saved = tmp_path / "out", []
    monkeypatch.setattr(completing, "drop_weights", lambda *_, **__: None)
    record = compare.compare(["few", "half"], config.but(steps=4, checkpoint_every=2), seeds=[0], out=out)
    run = out / "runs" / "few-s0"
    # as it is when its process dies in the third step
    (run / "summary.json").unlink()
    last = max((run / "checkpoints").glob("step-*"))
    for path in sorted(last.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    last.rmdir()
    lines = (run / "metrics.jsonl").read_text().splitlines()
    (run / "metrics.jsonl").write_text("\n".join(lines[:3]) + "\n")
    monkeypatch.setattr(api, "train", lambda *_, **__: pytest.fail("it began anew"))
    resume = api.resume
    monkeypatch.setattr(api, "resume", lambda folder: saved.append(folder.name) or resume(folder))
    again = compare.resume(out)
    assert saved == ["few-s0"]
    assert [row["values"] for row in again["methods"]] == [row["values"] for row in record["methods"]]


def test_a_run_that_fails_is_named_and_what_was_run_is_kept(methods, config, tmp_path, monkeypatch):
    monkeypatch.setattr(completing, "run_all", in_process.run_all)
    train = api.train

    def broken(recipe, **how):
        if how["config"].out.name == "half-s0":
            raise RewardlabError("the judge is away")
        return train(recipe, **how)

    monkeypatch.setattr(api, "train", broken)
    how = f"half, seed 0, failed: the judge is away .*rewardlab compare --resume {tmp_path / 'out'}"
    with pytest.raises(RewardlabError, match=how):
        compare.compare(["few", "half"], config, seeds=[0], out=tmp_path / "out")
    assert (tmp_path / "out" / "runs" / "few-s0" / "summary.json").exists()
    with pytest.raises(RewardlabError, match="without half there is nothing left to compare"):
        compare.resume(tmp_path / "out", without=["half"])
    monkeypatch.setattr(api, "train", train)
    assert len(compare.resume(tmp_path / "out")["methods"]) == 2


@pytest.mark.slow
def test_a_method_whose_runs_fail_is_left_out(methods, config, tmp_path, monkeypatch):
    found = compare.compare(["few", "half", "best_of_n"], config, seeds=[0], settings={"best_of_n.n": 2}, out=tmp_path / "out")
    assert len(found["methods"]) == 3
    monkeypatch.setattr(api, "train", lambda *_, **__: pytest.fail("a finished run was done again"))
    left = compare.resume(tmp_path / "out", without=["half"])
    assert [row["method"] for row in left["methods"]] == ["few", "best_of_n"]
    assert left["methods"] == [found["methods"][0], found["methods"][2]]
    with pytest.raises(RewardlabError, match="unknown method of this comparison 'haf'; did you mean half"):
        Plan(tuple(arms_of(["few", "half"])), config, (0,)).without(["haf"])


@pytest.mark.slow
def test_paths_hold_from_another_folder(methods, config, tmp_path, monkeypatch):
    rows = [{"question": f"What is {a} + 1?", "answer": str(a + 1)} for a in range(60)]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "mine.py").write_text("def score(reply, answer):\n    return float(len(reply) % 2)\n")
    own = config.but(task="mine.jsonl", prompt_column="question", answer_column="answer", system="Answer.", lora_rank=2)
    found = compare.compare(["few", "half"], own, reward="mine.py:score", seeds=[0], out=tmp_path / "out")
    assert found["task"] == "mine"
    written = json.loads((tmp_path / "out" / "runs" / "half-s0" / "config.json").read_text())
    assert (written["lora_rank"], written["system"], written["source"]["options"]["prompt_column"]) == (2, "Answer.", "question")
    assert "score" in written["formula"]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert len(compare.resume(tmp_path / "out", seeds=[0, 1])["seeds"]) == 2


def test_problems_of_a_step_are_set_for_all_methods_or_for_one(methods, config, monkeypatch):
    asked = {}
    monkeypatch.setattr(compare, "compare", lambda *_, settings, **__: asked.update(settings) or {})
    monkeypatch.setattr(commands_compare, "show", lambda document: None)
    line = f"compare few half --task {config.task} --eval-problems 9 --problems 3 --few.problems 5"
    assert cli.main(line.split()) == 0
    arms = arms_of(["few", "half"], asked)
    assert [arm.recipe.update.problems for arm in arms] == [5, 3]


# ---- methods that train nothing --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_method_that_trains_nothing_is_compared_by_its_answers_at_their_own_cost(methods, config, tmp_path):
    found = compare.compare(["best_of_n", "few"], config, settings={"best_of_n.n": 3}, seeds=[0], out=tmp_path / "out")
    searched, trained = found["methods"]
    assert (found["measure"], searched["measure"], trained["measure"]) == ("pass@1", "accuracy", "pass@1")
    assert (searched["trains"], searched["tokens"], searched["updates"], searched["curve"]["tokens"]) == (False, 0, None, [])
    # two steps, whatever best_of_n needs for its answers
    assert trained["steps"] == [2]
    # three replies are sampled, and scored, for each answer; a trained policy replies once
    assert searched["tokens_per_answer"] > 2 * trained["tokens_per_answer"]
    (note,) = [note for note in found["notes"] if note.startswith("best_of_n")]
    assert "trains nothing" in note
    assert f"at {searched['tokens_per_answer']:,.0f} tokens each" in note
    assert "trains nothing" in (tmp_path / "out" / "compare.html").read_text()
    assert kept(tmp_path / "out" / "answers") == ["best_of_n-s0"]
    with pytest.raises(RewardlabError, match=r"best_of_n does not measure 'train.reward'.*it trains nothing; it measures accuracy"):
        compare.compare(["few", "best_of_n"], config, measure="train.reward", seeds=[0], out=tmp_path / "other")


# ---- equal updates, or equal tokens ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "asked", "alike", "told"),
    [
        ({}, {}, "updates", "2 steps each (equal updates)"),
        ({}, {"equal": "tokens"}, "tokens", "the tokens that few uses in 2 steps each (equal tokens)"),
        ({"steps": None, "budget": 60}, {}, "tokens", "60 tokens each (equal tokens)"),
    ],
)
def test_every_method_makes_the_same_steps_unless_tokens_are_asked_for(
    methods, config, tmp_path, capsys, settings, asked, alike, told
):
    # replies of one step are so long that a budget of tokens is another number of steps
    how = {"settings": {"half.problems": 3}, "seeds": [0], "out": tmp_path / "out", **asked}
    found = compare.compare(["few", "half"], config.but(**settings), **how)
    assert (found["equal"], read_plan(tmp_path / "out").equal) == (alike, alike)
    steps = [row["steps"] for row in found["methods"]]
    assert (steps == [[2], [2]]) == (alike == "updates")
    # said before the first run, and in the page
    first, *_ = capsys.readouterr().err.splitlines()
    assert first == f"2 methods x 1 seed on arithmetic: {told}"
    assert "equal " + alike in (tmp_path / "out" / "compare.html").read_text()


def test_a_plan_from_before_equal_updates_stays_one_of_equal_tokens(tmp_path):
    Plan(tuple(arms_of(["grpo", "rloo"])), CONFIG, (0,), "pass@1").save(tmp_path)
    document = json.loads((tmp_path / "plan.json").read_text())
    assert document.pop("equal") == "updates"
    (tmp_path / "plan.json").write_text(json.dumps(document))
    assert read_plan(tmp_path).equal == "tokens"


def test_the_time_is_told_beforehand(methods, config, tmp_path, capsys):
    compare.compare(["few", "half"], config, seeds=[0], jobs=1, out=tmp_path / "out")
    assert "2 methods x 1 seed: about 5 s\n" in capsys.readouterr().err
    plan = Plan(tuple(arms_of(["grpo", "rloo", "best_of_n"])), config.but(steps=10, eval_every=5), (0, 1, 2), "pass@1")
    shown = {
        "grpo": rehearse.Rehearsal((), around=2.0, step=1.0, problem=0.5, tokens=100),
        "rloo": rehearse.Rehearsal((), around=2.0, step=3.0, problem=0.0, tokens=200),
        "best_of_n": rehearse.Rehearsal((), problem=0.25),
    }
    # two measurements of 4 problems each; the selection answers each problem once
    assert seconds(plan, shown, 4) == 3 * ((2 + 10 + 4) + (2 + 30 + 4) + 1)
    # the tokens of ten steps of grpo are five steps of rloo
    assert seconds(replace(plan, equal="tokens"), shown, 4) == 3 * ((2 + 10 + 4) + (2 + 15 + 2) + 1)


# ---- few seeds, and ranges -------------------------------------------------------------------------------------------


def test_fewer_than_five_seeds_have_the_interval_of_their_problems():
    spreads = [[0.4, 0.6], [0.5, 0.7]]
    found = comparison.mean_interval([0.5, 0.6], "pass@1", spreads)
    assert found == {"mean": pytest.approx(0.55), "ci95": pytest.approx([0.45, 0.65]), "of": "problems"}
    # one of them has none, and so has their mean
    assert comparison.mean_interval([0.5, 0.6], "pass@1", [[0.4, 0.6], None])["ci95"] is None
    five = comparison.mean_interval([0.5, 0.6, 0.5, 0.6, 0.5], "pass@1", [[0.4, 0.6]] * 5)
    assert five["of"] == "seeds"
    # half width 2.7764 * s / sqrt(5)
    assert five["ci95"][1] - five["mean"] == pytest.approx(2.7764 * np.std([0.5, 0.6, 0.5, 0.6, 0.5], ddof=1) / 5**0.5, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "values", "bounds"),
    [
        ("pass@1", [1.0, 1.0, 1.0, 1.0, 0.2], (None, 1.0)),
        ("train.signal", [0.0, 0.0, 0.0, 0.0, 0.9], (0.0, None)),
        ("train.length", [0.5, 0.0, 0.0, 0.0, 0.9], (0.0, None)),
        ("length", [90.0, 1.0, 1.0, 1.0, 1.0], (0.0, None)),
        ("kl", [0.9, 0.0, 0.0, 0.0, 1.0], (0.0, None)),
    ],
)
def test_no_interval_leaves_the_range_of_its_number(name, values, bounds):
    _, low, high = (float(x) for x in interval(np.asarray(values)))
    least, most = (bound if bound is not None else found for bound, found in zip(bounds, (low, high), strict=True))
    assert comparison.mean_interval(values, name)["ci95"] == pytest.approx([least, most])
    assert (least, most) != (low, high)
    curve = comparison.mean_curve([[(0, {name: value}), (1, {name: value})] for value in values], name)
    assert (curve["low"][0], curve["high"][-1]) == pytest.approx((least, most))


def test_a_number_without_a_range_and_a_difference_of_shares_keep_their_intervals():
    rewards = [1.0, 1.0, 1.0, 1.0, 0.2]
    assert comparison.mean_interval(rewards, "train.reward")["ci95"][1] > 1
    change = comparison.difference([1.0, 1.0, 1.0, 1.0, 0.9], [0.9, 0.2, 0.3, 0.9, 0.8], "pass@1")
    # all differences are above 0 and are no shares: the lower bound stays below 0
    assert change["ci95"][0] < 0
    wide = comparison.difference([1.0, 0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0, 0.0], "pass@1")
    assert wide["ci95"] == [-1.0, pytest.approx(1.0)]


def test_a_run_says_the_interval_over_its_problems(methods, config, tmp_path):
    found = compare.compare(["few", "best_of_n"], config, settings={"best_of_n.n": 2}, seeds=[0], out=tmp_path / "out")
    for row in found["methods"]:
        assert row["of"] == "problems"
        assert 0 <= row["ci95"][0] <= row["mean"] <= row["ci95"][1] <= 1


@pytest.mark.slow
def test_the_table_shows_every_seed_where_they_are_few(methods, config, tmp_path, capsys):
    found = compare.compare(["few", "half"], config, seeds=range(2), measure="train.entropy", out=tmp_path / "out", x="length")
    capsys.readouterr()
    show(found)
    told = " ".join(capsys.readouterr().out.split())
    assert "method mean each seed 95% interval, problems against few each seed decided" in told
    assert "method length each seed train.entropy each seed on the frontier" in told
    for row in found["methods"]:
        assert " ".join(f"{value:.4g}" for value in row["values"]) in told


# ---- what is refused, and when ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("few half --measure pass@7", "unknown measure of few, half 'pass@7'; did you mean pass@1"),
        ("few half --out file/out", "cannot write to file/out: Not a directory; choose another --out"),
        ("few half --nn 3", "unknown flag of few, half '--nn'; did you mean --n"),
        ("few half --problems-per-step 3", "unknown flag of few, half '--problems-per-step'; did you mean --problems"),
        ("best_of_n majority_vote --problems 3", "so that problems would change nothing; held-out problems are --eval-problems"),
        ("few half --fwe.n 3", "unknown method of this comparison 'fwe'; did you mean few"),
        ("few half --few.nn 3", "unknown setting of few 'nn'; did you mean n"),
        ("few half --reward few.py:nothing", "there is no reward file few.py"),
        ("few half --prompt-column q", "prompt_column"),
        ("few half --track nothing", "unknown tracker 'nothing'"),
        ("few", "a comparison is of two methods or more"),
        ("few half --resume file", "--resume takes everything from file/plan.json; drop few, half"),
        ("--resume .", ". is not the folder of a comparison"),
    ],
)
def test_what_can_be_known_beforehand_is_refused_before_any_run(methods, config, tmp_path, monkeypatch, line, message, capsys):
    monkeypatch.setattr(completing, "run_all", lambda *_: pytest.fail("a run began"))
    (tmp_path / "file").touch()
    words = line.split()
    task = [] if "--resume" in words else ["--task", config.task, "--model", config.model, "--eval-problems", "4"]
    assert cli.main(["compare", *words, *task]) == 2
    assert message in capsys.readouterr().err
    # and nothing is left behind
    assert not (tmp_path / "runs").exists() or kept(tmp_path / "runs") == []


def test_a_method_that_fails_at_its_first_step_is_named_before_any_run(methods, config, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("def score(reply, answer):\n    raise ValueError('no such column')\n")
    monkeypatch.setattr(completing, "run_all", lambda *_: pytest.fail("a run began"))
    monkeypatch.setattr(rehearse, "run_all", in_process.run_all)
    with pytest.raises(RewardlabError, match=r"few fails at its first step: .*no such column"):
        compare.compare(["few", "half"], config, reward="mine.py:score", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_recipes_that_other_processes_cannot_import_are_refused(methods):
    from rewardlab.core import credit

    @credit
    def own(a, batch, run):
        return a

    own.function.__module__ = "__main__"
    recipe = registry.build("grpo")
    with pytest.raises(RewardlabError, match="grpo has parts that are defined in a script or notebook"):
        arms_of([recipe.but(credit=own()), "rloo"])
    with pytest.raises(RewardlabError, match=r"grpo is named twice; .*recipe.but\(name=\.\.\.\)"):
        arms_of([recipe, "grpo"])
    assert [arm.name for arm in arms_of([recipe.but(name="mine"), "grpo"])] == ["mine", "grpo"]


# ---- settings --------------------------------------------------------------------------------------------------------


def samples(arms):
    return {arm.name: arm.recipe.sampling_settings["n"] for arm in arms}


def test_a_setting_goes_to_every_method_that_has_it_or_to_the_one_that_is_named():
    both = arms_of(["grpo", "rloo", "sft"], {"n": 3, "lr": 1e-4, "grpo.n": 5, "rloo.lr": 2e-4})
    assert samples(both[:2]) == {"grpo": 5, "rloo": 3}
    assert [arm.recipe.update.lr for arm in both] == [1e-4, 2e-4, 1e-4]
    stacked = arms_of(["grpo+hapo", "grpo"], {"hapo.weight": 0.5, "grpo.n": 7, "grpo+hapo.lr": 5e-5})
    assert samples(stacked) == {"grpo+hapo": 7, "grpo": 7}
    assert [arm.recipe.update.lr for arm in stacked] == [5e-5, registry.build("grpo").update.lr]
    assert "0.5" in str(stacked[0].recipe)
    with pytest.raises(RewardlabError, match="unknown setting of sft, dpo 'n'"):
        arms_of(["sft", "dpo"], {"n": 3})


def test_a_reward_reaches_the_methods_that_learn_from_one():
    arms = arms_of(["grpo", "sft"], reward="length_penalty")
    assert str(arms[0].recipe.reward) == "length_penalty()"
    assert arms[1].recipe.reward is None
    plan = Plan(tuple(arms), CONFIG, (0,), "pass@1", "length_penalty()")
    rows = [comparison.summarise(arm, plan, {a.name: [done(0.5)] for a in arms}) for arm in arms]
    assert "sft learns from no reward: length_penalty() changes nothing for it." in comparison.notes(plan, rows)
    with pytest.raises(RewardlabError, match="sft and dpo learn from no reward"):
        arms_of(["sft", "dpo"], reward="length_penalty")


def test_a_plan_is_read_as_it_was_written(tmp_path):
    plan = Plan(tuple(arms_of(["grpo+hapo", "best_of_n"], {"n": 3})), CONFIG, (0, 4), "pass@1", "", True)
    plan.save(tmp_path)
    assert read_plan(tmp_path) == plan


# ---- the result ------------------------------------------------------------------------------------------------------


def done(value, **numbers):
    measured = {} if value is None else {"pass@1": value}
    return Done(measured | {"tokens": 1000, "steps": 10, "updates": 10} | numbers, [(0, measured), (1000, measured)], 1.0)


@pytest.mark.parametrize(
    ("differences", "decision"),
    [
        ([0.2, 0.21, 0.19], "too few seeds"),
        ([0.2, 0.21, 0.19, 0.2], "too few seeds"),
        ([0.2, 0.21, 0.19, 0.2, 0.2], "higher"),
        ([-0.2, -0.21, -0.19, -0.2, -0.2], "lower"),
        ([0.2, -0.21, 0.19, -0.2, 0.2], "not decided"),
        ([0.0] * 5, "not decided"),
    ],
)
def test_a_difference_is_marked_by_the_rule_of_verdicts(differences, decision):
    arms = arms_of(["grpo", "rloo"])
    plan = Plan(tuple(arms), CONFIG, tuple(range(len(differences))), "pass@1")
    outcomes = {"grpo": [done(0.5) for _ in differences], "rloo": [done(0.5 + x) for x in differences]}
    result = comparison.result(plan, outcomes)
    assert result["methods"][1]["difference"]["decision"] == decision
    about = {"task": "t", "model": "m", "seeds": list(plan.seeds), "budget": None, "problems": 1, "measure": "pass@1"}
    text = page(about | result)
    assert ("<th>each seed</th>" in text) == (len(differences) < 5)
    marks = re.findall(r'<tr class="(\w*)">', text)
    assert marks == ["", {"higher": "up", "lower": "down"}.get(decision, "")]
    assert decision in text
    assert any("a difference is decided with 5 or more" in note for note in result["notes"]) == (len(differences) < 5)


def test_unequal_tokens_and_undefined_numbers_are_told():
    arms = arms_of(["grpo", "rloo"])
    plan = Plan(tuple(arms), CONFIG, (0, 1, 2), "pass@1")
    outcomes = {
        "grpo": [done(0.5, tokens=100), done(None, tokens=100), done(0.7, tokens=100)],
        "rloo": [done(0.6, tokens=130), done(0.6, tokens=130), done(None, tokens=130)],
    }
    result = comparison.result(plan, outcomes)
    assert result["methods"][1]["difference"]["values"] == [pytest.approx(0.1), None, None]
    assert result["methods"][0]["mean"] == pytest.approx(0.6)
    told = " ".join(result["notes"])
    assert "rloo had 130 tokens, grpo 100: another model learns or scores beside it, or its replies differ in length" in told
    assert "pass@1 is undefined in 1 of the runs of grpo" in told
    nothing = comparison.result(plan, {name: [done(None)] * 3 for name in ("grpo", "rloo")})
    about = {"task": "t", "model": "m", "seeds": [0, 1, 2], "budget": None, "problems": 1, "measure": "pass@1"}
    assert "undefined" in page(about | nothing)


def test_a_comparison_in_which_nothing_is_right_says_so():
    plan = Plan(tuple(arms_of(["grpo", "rloo"])), CONFIG, (0, 1), "pass@1")

    def told(last):
        return " ".join(comparison.result(plan, {"grpo": [done(0.0)] * 2, "rloo": [done(0.0), done(last)]})["notes"])

    assert "pass@1 is 0 in every run; where no reply is right there is nothing to learn from" in told(0.0)
    assert "is 0 in every run" not in told(0.1)
    # nothing is decided of two seeds, and so nothing is decided together
    assert "decided together" not in told(0.1)


@pytest.mark.slow
def test_the_table_tells_the_cost_and_what_to_do_next(methods, config, tmp_path, capsys):
    argv = [
        "compare",
        "few",
        "half",
        "--n",
        "2",
        "--task",
        config.task,
        "--model",
        config.model,
        "--eval-problems",
        "4",
        "--seeds",
        "1",
    ]
    assert cli.main([*argv, "--steps", "1", "--eval-every", "0", "--out", "c", "--json"]) == 0
    show(json.loads(capsys.readouterr().out))
    told = " ".join(capsys.readouterr().out.split())
    assert "tokens of training updates tokens per answer seconds" in told
    assert "open c/compare.html" in told
    assert "rewardlab report c/runs/* --out c/runs.html" in told
    assert "rewardlab compare --resume c --seeds 5" in told
    assert cli.main(["report", "c"]) == 2
    assert "c holds a comparison" in capsys.readouterr().err


def test_a_mean_curve_is_where_every_seed_was_measured():
    # at 100 tokens the first is half way from 0 to 1, the second at 0.6; at 200 both are at 1 and 0.8
    curves = [[(0, {"x": 0.0}), (200, {"x": 1.0})], [(0, {"x": 0.4}), (100, {"x": 0.6}), (300, {"x": 1.0})]]
    found = comparison.mean_curve(curves, "x")
    assert (found["tokens"][0], found["tokens"][-1]) == (0, 200)
    assert found["mean"][0] == pytest.approx(0.2)
    assert found["mean"][-1] == pytest.approx(0.9)
    assert np.interp(100, found["tokens"], found["mean"]) == pytest.approx(0.55, abs=0.01)
    # two seeds: from the lower to the higher
    assert (found["low"][-1], found["high"][-1]) == pytest.approx((0.8, 1.0))
    # five: Student's interval, within the range of a share; half width 2.7764 * s / sqrt(5)
    five = comparison.mean_curve([[(0, {"x": value})] for value in (1.0, 1.0, 1.0, 1.0, 0.9)], "x")
    assert five["low"] == pytest.approx([0.98 - 2.7764 * np.std([1, 1, 1, 1, 0.9], ddof=1) / 5**0.5], rel=1e-4)
    assert five["high"] == [1.0]
    assert comparison.mean_curve([[(50, {"x": 1.0})]], "x") == {"tokens": [50.0], "mean": [1.0], "low": [1.0], "high": [1.0]}
    assert comparison.mean_curve(curves, "y") == {"tokens": [], "mean": [], "low": [], "high": []}


def test_nothing_written_by_others_can_run_in_the_page():
    hostile = "</script><script>alert(1)</script>{{data}}"
    curve = {"tokens": [1.0], "mean": [1.0], "low": [1.0], "high": [1.0]}
    row = {
        "method": hostile, "formula": hostile, "mean": 1.0, "ci95": None, "difference": None, "tokens": 1, "seconds": [1.0],
        "curve": curve,
    }  # fmt: skip
    record = {"task": hostile, "model": hostile, "seeds": [0], "budget": None, "problems": 1, "measure": hostile, "methods": [row]}
    text = page(record)
    assert "<script>alert" not in text
    assert len(re.findall(r"<script", text.split("plotly.js")[0])) == 2  # the data, and the one that begins with plotly
