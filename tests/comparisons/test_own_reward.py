"""Comparisons for a reward of the user's own: it is what is measured, compared, and what rates are chosen by."""

from __future__ import annotations

import json

import pytest

from rewardlab import registry
from rewardlab.checks import pairs as rehearse
from rewardlab.commands import cli, train
from rewardlab.comparisons import compare, completing
from rewardlab.comparisons.arms import arms_of, measured_alike
from rewardlab.comparisons.league import league
from rewardlab.comparisons.own import of_task, only
from rewardlab.comparisons.own_check import check
from rewardlab.comparisons.season import Season
from rewardlab.errors import RewardlabError
from rewardlab.models.load import load_policy
from rewardlab.registry.formula import read_reward
from rewardlab.runs.config import RunConfig
from tests.helpers import in_process

SMALL = {"n": 2, "problems": 1}
SCORE = "mine.py:score"


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """The checkpoint of an untrained policy, which loads faster than it is made."""
    folder = tmp_path_factory.mktemp("weights")
    load_policy("untrained", task=registry.task("arithmetic:test_size=8,difficulty=1")).save(folder)
    return str(folder)


@pytest.fixture
def config(weights, tmp_path, monkeypatch):
    """Rows with answers, and a reward that asks for none; runs in this process, for speed."""
    monkeypatch.setattr(completing, "run_all", in_process.run_all)
    monkeypatch.setattr(rehearse, "run_all", in_process.run_all)
    monkeypatch.chdir(tmp_path)
    rows = [{"prompt": f"{a} + 1 = ", "answer": str(a + 1)} for a in range(40)]
    for name, columns in (("rows", ("prompt", "answer")), ("bare", ("prompt",))):
        lines = (json.dumps({column: row[column] for column in columns}) for row in rows)
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    (tmp_path / "mine.py").write_text("def score(completion):\n    return 5.0 + len(completion)\n")
    return RunConfig(task="rows.jsonl", model=weights, eval_problems=4, eval_every=0, steps=1, max_new=4)


# ---- what is measured ------------------------------------------------------------------------------------------------


def test_the_reward_that_all_are_paid_is_what_is_compared(config, tmp_path):
    found = compare.compare(["grpo", "rloo"], config, settings=SMALL, reward=SCORE, seeds=[0], out=tmp_path / "out")
    assert found["measure"] == json.loads((tmp_path / "out" / "plan.json").read_text())["measure"] == "reward"
    # the score is 5 and more, which no share of right answers is
    assert all(value >= 5 for row in found["methods"] for value in row["values"])
    summary = json.loads((tmp_path / "out" / "runs" / "grpo-s0" / "summary.json").read_text())
    assert next(iter(summary["after"])) == "reward"
    # the verifier's accuracy is beside it
    assert {"reward", "pass@1"} <= summary["before"].keys()


def test_what_cannot_be_verified_is_not_compared(config, tmp_path):
    told = compare.compare(["grpo", "rloo"], config.but(task="bare.jsonl"), settings=SMALL, reward=SCORE, dry_run=True)
    assert told["measure"] == "reward"
    with pytest.raises(RewardlabError, match="unknown measure of grpo, rloo 'pass@1'"):
        compare.compare(
            ["grpo", "rloo"], config.but(task="bare.jsonl"), settings=SMALL, reward=SCORE, measure="pass@1", dry_run=True
        )


def measures(arms, task="arithmetic:test_size=8"):
    return {arm.name: arm.recipe.measure and arm.recipe.measure.name for arm in measured_alike(arms, registry.task(task))}


def test_methods_that_learn_from_no_reward_are_measured_by_that_of_the_others():
    assert measures(arms_of(["grpo", "sft"], reward="length_penalty")) == {"grpo": "own_reward", "sft": "own_reward"}


def test_what_another_reward_pays_is_not_compared_with_it():
    # of its own RLHF measures what its reward model pays
    rlhf = registry.build("rlhf", {"reward_model": "model:rm"})
    assert rlhf.measure.name == "own_reward"
    arms = measured_alike(arms_of(["grpo", rlhf], reward="length_penalty"), registry.task("arithmetic:test_size=8"))
    assert [str(arm.recipe.measure.settings["reward"]) for arm in arms] == ["length_penalty()"] * 2


def test_a_reward_that_verifies_answers_and_rewards_that_differ_leave_the_measures_as_they_are():
    usual = {name: (made := registry.build(name).measure) and made.name for name in ("grpo", "rloo")}
    assert measures(arms_of(["grpo", "rloo"], reward="correct() + 0.1 * length_penalty()")) == usual
    own = registry.build("rloo").but(reward=registry.part("reward", "length_penalty"))
    assert measures(arms_of(["grpo", own])) == usual


def test_different_rewards_are_compared_by_what_both_are_measured_by():
    one, two = (registry.build(name).but(reward=registry.part("reward", "length_penalty")) for name in ("grpo", "rloo"))
    plan = compare.Plan(tuple(arms_of([one, "rloo"])), RunConfig(task="arithmetic"), (0,))
    names = {"grpo": ("reward", "pass@1", "train.length"), "rloo": ("pass@1", "train.length")}
    with pytest.raises(RewardlabError, match="grpo and rloo are paid by different rewards"):
        compare._measure(plan, {"grpo": ("reward",), "rloo": ("reward",)})
    alike = compare.Plan(tuple(arms_of([one, two])), RunConfig(task="arithmetic"), (0,))
    assert compare._measure(alike, {"grpo": ("reward",), "rloo": ("reward",)}) == "reward"
    searched = compare.Plan(tuple(arms_of([one, "best_of_n"])), RunConfig(task="arithmetic"), (0,))
    # a method that selects answers is measured by them alone
    assert compare._measure(searched, {"grpo": names["grpo"], "best_of_n": ("accuracy", "tokens")}) == "pass@1"


def test_policies_that_learn_from_pairs_without_answers_are_compared_by_the_pairs_that_they_prefer(tmp_path):
    rows = [{"prompt": f"Say {i}", "chosen": f"{i}!", "rejected": "no"} for i in range(16)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arms = arms_of(["dpo", "simpo", "sft"])
    assert measures(arms, str(tmp_path / "pairs.jsonl")) == {"dpo": "pairs_preferred", "simpo": "pairs_preferred", "sft": None}
    # the likelihood depends on each one's own beta
    plan = compare.Plan(tuple(arms_of(["dpo", "simpo"])), RunConfig(task="pairs.jsonl"), (0,))
    names = ("pair_likelihood", "preferred", "margin")
    assert compare._measure(plan, {"dpo": names, "simpo": names}) == "preferred"


def test_rates_are_chosen_by_the_reward_on_rows_without_answers(config, tmp_path):
    how = {"settings": SMALL, "reward": SCORE, "rates": (1e-5, 1e-4), "rate_seeds": 1, "seeds": [0], "out": tmp_path / "out"}
    found = compare.compare(["grpo", "rloo"], config.but(task="bare.jsonl"), **how)
    assert found["rates_by"] == ["auc.reward"]
    assert all(row["rate"] in (1e-5, 1e-4) for row in found["methods"])
    assert "rates chosen from 1e-05, 0.0001 (runs at each: 1), by auc.reward" in (tmp_path / "out" / "compare.html").read_text()


# ---- what a reward of the user's own leaves of a method --------------------------------------------------------------


@pytest.mark.parametrize(
    ("methods", "settings", "says"),
    [
        # hapo and grpo_lambda add a term to GRPO's reward, and nothing else
        (["grpo", "hapo", "rloo", "grpo_lambda"], {}, "^grpo, hapo, grpo_lambda: these differ by their rewards alone"),
        (["hapo"], {"weight": [0.5, 1]}, "^hapo:weight=0.5, hapo:weight=1: these differ by their rewards alone"),
        (["rloo", "hapo"], {"n": 4}, "^hapo changes nothing but the reward, .* nothing of hapo is left"),
        (["rloo", "hapo"], {"hapo.lr": 1e-4}, "; leave hapo out, or say in Python what each is paid"),
        (["rloo", "dapo+hapo"], {}, "^hapo changes .* nothing of hapo is left. dapo\\+hapo pays .*shorter_than_before"),
    ],
)
def test_methods_of_which_a_reward_leaves_nothing_are_refused(methods, settings, says):
    with pytest.raises(RewardlabError, match=says):
        arms_of(methods, settings, reward="length_penalty")


def test_methods_that_are_more_than_a_reward_are_compared_by_one():
    # a mask beside the reward; another objective; a search; no reward at all
    arms = arms_of(["grpo", "laser", "dapo", "ppo", "best_of_n", "sft"], reward="length_penalty")
    assert [arm.name for arm in arms] == ["grpo", "laser", "dapo", "ppo", "best_of_n", "sft"]
    # one that writes its own into a formula says what it is
    shaped = registry.build("grpo").but(reward=read_reward("length_penalty() + shorter_than_before()"), name="shaped")
    plain = registry.build("grpo").but(reward=read_reward("length_penalty"), name="plain")
    assert len(arms_of([plain, shaped])) == 2


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("hapo", "hapo changes nothing but the reward"),
        ("laser", "your reward takes the place of the one of laser, and with it of within_budget"),
        ("dapo+hapo", "nothing of hapo is left"),
        ("grpo", ""),
        ("ppo", ""),
        ("sft", ""),
    ],
)
def test_training_says_what_a_reward_takes_away(method, says, capsys):
    parsed = cli.parse(train, "train", [method, "--task", "arithmetic", "--reward", "length_penalty"])
    recipe = train.request(parsed)["recipe"]
    assert str(recipe.reward) == "length_penalty()"
    told = " ".join(capsys.readouterr().err.split())
    assert (says in told) if says else not told


def test_a_league_says_that_a_reward_decides_nothing_there(config, tmp_path, capsys):
    for reward, told in ((SCORE, True), ("correct", False)):
        found = of_task(only(league("length"), ["laser"], []), config, reward=read_reward(reward))
        check(Season(found, config, tmp_path / "out"), dry=True)
        assert ("decides by length of right replies, and not by your reward" in " ".join(capsys.readouterr().err.split())) is told


def test_members_of_a_league_of_which_a_reward_leaves_nothing_are_refused_before_the_first_run(config, tmp_path):
    found = of_task(only(league("length"), ["hapo", "laser"], []), config, reward=read_reward("mine.py:score"))
    with pytest.raises(RewardlabError) as refused:
        check(Season(found, config, tmp_path / "out"), dry=True)
    assert str(refused.value) == (
        "hapo: it differs from grpo by its reward alone, which --reward replaces; to leave it out: --members laser"
    )
