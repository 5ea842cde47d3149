"""Rates that are chosen on other seeds, and differences that are decided together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.checks import pairs as rehearse
from rewardlab.checks.runs import Done
from rewardlab.commands import cli
from rewardlab.commands.compare import show
from rewardlab.comparisons import compare, comparison, completing
from rewardlab.comparisons.arms import arms_of, measured_alike
from rewardlab.comparisons.page import page
from rewardlab.comparisons.plan import UPDATES, Plan, read_plan
from rewardlab.comparisons.tuning import numbers_to_choose_by, tuned, tuning_jobs
from rewardlab.errors import RewardlabError
from rewardlab.runs.config import RunConfig
from rewardlab.util.intervals import holm, p_value
from tests.helpers import in_process

CONFIG = RunConfig(task="arithmetic:test_size=8,difficulty=1", model="untrained", eval_problems=4, eval_every=0, steps=2, max_new=8)


def test_p_values_are_those_of_student_and_holm_adjusts_them():
    # t = 2 sqrt(4) / 1 = 4 on 3 degrees of freedom: p = 0.0280 by any table
    values = np.array([2.0, 2.0, 2.0, 2.0]) + np.array([1, -1, 1, -1]) * np.sqrt(3) / 2
    assert p_value(values) == pytest.approx(0.02801, abs=1e-4)
    assert p_value(np.array([1.0])) == 1.0
    assert p_value(np.zeros(5)) == 1.0
    assert p_value(np.ones(5)) == pytest.approx(0.0)
    # .01 x 3, then .02 x 2 (not below the one before), then .04 x 1
    assert holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])


def test_of_many_differences_one_that_is_clear_by_itself_may_not_be():
    values = [0.02, 0.03, 0.01, 0.02, -0.002]
    alone = comparison.difference(values, [0.0] * 5)
    assert alone["decision"] == "higher"
    noise = np.random.default_rng(0).normal(0, 0.02, (19, 5))
    many = [comparison.difference(list(v), [0.0] * 5) for v in ([values, *noise.tolist()])]
    comparison._together(many)
    assert many[0]["decision"] == "not decided"
    assert many[0]["p"] < 0.05 < many[0]["p_adjusted"]
    # by itself it stays what it was
    comparison._together([alone])
    assert alone["decision"] == "higher"


def fake(numbers):
    return Done(numbers, [], 1.0)


def test_each_arm_gets_the_rate_at_which_it_learns_best(tmp_path):
    arms = tuple(arms_of(["grpo", "rloo"]))
    plan = Plan(arms, CONFIG, (3, 4), "pass@1", equal=UPDATES, rates=(1e-4, 1e-3))
    best, seen = {"grpo": 1e-3, "rloo": 1e-4}, []

    def run(jobs):
        seen.extend(job.config.seed for job in jobs)
        rates = {job.folder: job.recipe["update"]["lr"] for job in jobs}
        return {Path(job.folder): fake({"auc.truth": float(rates[job.folder] == best[job.method]), "pass@1": 0.5}) for job in jobs}

    chosen = tuned(plan, tmp_path, run)
    assert chosen.chosen == best
    # never on a seed that is compared
    assert set(seen) == {1003, 1004}
    assert chosen.job(arms[0], 3, tmp_path).recipe["update"]["lr"] == 1e-3
    chosen.save(tmp_path)
    assert read_plan(tmp_path) == chosen


def level_at(**by_rate):
    """Runs whose number, by their rate, is this one."""

    def run(jobs):
        rate = {job.folder: job.recipe["update"]["lr"] for job in jobs}
        return {Path(job.folder): fake({k: v[rate[job.folder]] for k, v in by_rate.items()}) for job in jobs}

    return run


def test_a_reward_that_is_compared_chooses_the_rate_and_not_the_accuracy(tmp_path):
    arms = tuple(measured_alike(arms_of(["grpo", "rloo", "sft"], reward="length_penalty"), registry.task(CONFIG.task)))
    plan = Plan(arms, CONFIG, (0,), "reward", rates=(1e-4, 1e-3))
    logged = ("reward", "pass@1", "auc.truth", "auc.reward")
    by = numbers_to_choose_by(plan, {"grpo": logged, "rloo": logged, "sft": ("reward", "pass@1")})
    assert by == {"grpo": "auc.reward", "rloo": "auc.reward", "sft": "reward"}
    plan = replace(plan, rates_by=by)
    asked = {name: {job.config.eval_problems for job in some} for (name, _), some in tuning_jobs(plan, tmp_path).items()}
    # what supervised training logs says nothing of the reward: it is measured at the end
    assert asked == {"grpo": {0}, "rloo": {0}, "sft": {CONFIG.eval_problems}}
    numbers = {"auc.truth": {1e-4: 0.9, 1e-3: 0.1}, "auc.reward": {1e-4: -8.0, 1e-3: -2.0}, "reward": {1e-4: -8.0, 1e-3: -2.0}}
    chosen = tuned(plan, tmp_path, level_at(**numbers))
    assert chosen.chosen == {"grpo": 1e-3, "rloo": 1e-3, "sft": 1e-3}
    chosen.save(tmp_path)
    assert read_plan(tmp_path).rates_by == by


def test_where_training_logs_no_accuracy_what_is_compared_is_measured_for_the_rate(tmp_path):
    plan = Plan(tuple(arms_of(["grpo", "rloo"])), CONFIG, (0,), "pass@1", rates=(1e-4, 1e-3))
    plan = replace(plan, rates_by=numbers_to_choose_by(plan, dict.fromkeys(("grpo", "rloo"), ("pass@1", "auc.reward"))))
    assert {job.config.eval_problems for some in tuning_jobs(plan, tmp_path).values() for job in some} == {CONFIG.eval_problems}
    assert tuned(plan, tmp_path, level_at(**{"pass@1": {1e-4: 0.2, 1e-3: 0.1}})).chosen == {"grpo": 1e-4, "rloo": 1e-4}


def test_rates_that_nothing_can_choose_are_refused_before_any_run():
    plan = Plan(tuple(arms_of(["grpo", "rloo"])), CONFIG, (0,), "train.length", rates=(1e-4, 1e-3))
    names = dict.fromkeys(("grpo", "rloo"), ("reward",))
    with pytest.raises(
        RewardlabError, match=r"grpo cannot be chosen: its runs log neither auc\.truth nor train\.length; drop --rates"
    ):
        numbers_to_choose_by(plan, names)
    assert numbers_to_choose_by(replace(plan, rates=()), names) == {}
    # nobody has said whether longer or shorter is better
    names = dict.fromkeys(("grpo", "rloo"), ("train.length",))
    with pytest.raises(RewardlabError, match=r"chosen by train\.length, and nothing says whether more of it is better"):
        numbers_to_choose_by(plan, names)


def test_where_less_is_better_the_lowest_chooses_the_rate(tmp_path):
    plan = Plan(
        tuple(arms_of(["grpo", "rloo"])), CONFIG, (0,), "train.length", x="tokens", y="train.length:lower", rates=(1e-4, 1e-3)
    )
    by = numbers_to_choose_by(plan, dict.fromkeys(("grpo", "rloo"), ("train.length",)))
    run = level_at(**{"train.length": {1e-4: 9.0, 1e-3: 4.0}})
    assert tuned(replace(plan, rates_by=by), tmp_path, run).chosen == {"grpo": 1e-3, "rloo": 1e-3}


def test_rates_that_nothing_tells_apart_are_said_and_the_middle_one_is_taken(tmp_path):
    plan = Plan(tuple(arms_of(["grpo", "rloo"])), CONFIG, range(5), "pass@1", rates=(1e-4, 3e-4, 1e-3))
    chosen = tuned(plan, tmp_path, level_at(**{"auc.truth": {1e-4: 0.0, 3e-4: 0.0, 1e-3: 0.0}}))
    assert chosen.chosen == {"grpo": 3e-4, "rloo": 3e-4}
    said = "nothing told the rates 0.0001, 0.0003, 0.001 of grpo apart: 0.0003 was taken, and suited it no better"
    assert said in comparison.notes(chosen, [])[0]
    # of two that are best, the lower; it is not said that it suits best
    chosen = tuned(plan, tmp_path, level_at(**{"auc.truth": {1e-4: 0.5, 3e-4: 0.5, 1e-3: 0.0}}))
    assert chosen.chosen["grpo"] == 1e-4
    assert not any("suited grpo" in note or "suited rloo" in note for note in comparison.notes(chosen, []))
    chosen.save(tmp_path)
    assert read_plan(tmp_path).tied == {"grpo": [1e-4, 3e-4], "rloo": [1e-4, 3e-4]}


def test_rates_are_tried_on_as_many_seeds_as_asked(tmp_path):
    plan = Plan(tuple(arms_of(["grpo", "rloo"])), CONFIG, (3,), "pass@1", rates=(1e-4, 1e-3), rate_seeds=3)
    assert {len(some) for some in tuning_jobs(plan, tmp_path).values()} == {3}
    plan.save(tmp_path)
    assert read_plan(tmp_path).rate_seeds == 3


def test_rates_are_chosen_without_held_out_problems_where_training_tells(tmp_path):
    plan = Plan(tuple(arms_of(["grpo", "sft"])), CONFIG, (0,), "pass@1", rates=(1e-4, 1e-3))
    jobs = tuning_jobs(plan, tmp_path)
    asked = {name: {job.config.eval_problems for job in some} for (name, _), some in jobs.items()}
    assert asked == {"grpo": {0}, "sft": {CONFIG.eval_problems}}
    with pytest.raises(RewardlabError, match=r"a rate for grpo cannot be chosen: its runs log neither auc\.truth nor pass@1"):
        tuned(plan, tmp_path, lambda jobs: {Path(job.folder): fake({"auc.reward": 0.5}) for job in jobs})


def test_a_rate_at_the_edge_of_the_list_is_told():
    rates = {"rates": (1e-4, 3e-4, 1e-3), "chosen": {"grpo": 1e-4, "rloo": 3e-4, "ppo": 1e-3, "gspo": 1e-4}}
    plan = Plan(tuple(arms_of(["grpo", "rloo", "ppo", "gspo"])), CONFIG, range(5), "pass@1", **rates)
    assert comparison.notes(plan, [])[1:] == [
        "the lowest rate, 0.0001, suited grpo, gspo best: a lower one, not tried, may suit better.",
        "the highest rate, 0.001, suited ppo best: a higher one, not tried, may suit better.",
    ]
    assert len(comparison.notes(replace(plan, chosen={"grpo": 3e-4}), [])) == 1
    assert len(comparison.notes(replace(plan, rates=(), chosen={}), [])) == 1


@pytest.mark.parametrize("rates", [(1e-4,), (1e-4, 1e-4), (0.0, 1e-3), (1e-3, float("nan")), (-1.0, 1e-3)])
def test_rates_are_several_and_positive_before_anything_is_rehearsed_or_written(rates, tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "_prepared", lambda *args: pytest.fail("it was prepared"))
    for dry in (True, False):
        with pytest.raises(RewardlabError, match="rates must be two distinct numbers"):
            compare.compare(["grpo", "rloo"], CONFIG, rates=rates, dry_run=dry, out=tmp_path / "o")
    assert not (tmp_path / "o").exists()


def test_runs_are_counted_in_words():
    plan = Plan(tuple(arms_of(["grpo", "rloo"])), CONFIG, (0,), rates=(1e-4, 1e-3), rate_seeds=1)
    assert compare._runs(plan) == "2 methods x 1 seed, after 2 rates x 1 seed"
    assert compare._runs(replace(plan, rate_seeds=2)) == "2 methods x 1 seed, after 2 rates x 2 seeds"


@pytest.fixture
def at_once(tmp_path, monkeypatch):
    """Runs in this process, for speed."""
    monkeypatch.setattr(completing, "run_all", in_process.run_all)
    monkeypatch.setattr(rehearse, "run_all", in_process.run_all)
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_each_method_at_its_own_rate_end_to_end(at_once, tmp_path, capsys):
    how = {"rates": (1e-4, 1e-3), "rate_seeds": 1, "seeds": range(2), "out": tmp_path / "o"}
    found = compare.compare(["grpo", "opo"], CONFIG, settings={"n": 2, "minibatches": 4}, **how)
    assert [row["method"] for row in found["methods"]] == ["grpo", "opo"]
    assert found["equal"] == "updates"
    for row in found["methods"]:
        assert row["rate"] in (1e-4, 1e-3)
        assert (row["updates"], row["steps"]) == (8, [2, 2])
        assert row["watched"]["entropy"]["steps"][0] == 1
        assert row["beside"]["length"]["mean"] > 0
    assert {path.name.rpartition("-s")[2] for path in (tmp_path / "o" / "tuning").iterdir()} == {"1000"}
    html = page(found)
    assert "rates chosen from 0.0001, 0.001 (runs at each: 1)" in html
    assert "Entropy, nats per token" in html
    show(found)
    assert "opo" in capsys.readouterr().out
    # complete: nothing is run again, and the rates stay
    assert compare.resume(tmp_path / "o")["methods"][1]["rate"] == found["methods"][1]["rate"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("compare grpo rloo --task arithmetic --rates 1e-4,x", "numbers with commas between them"),
        ("compare grpo rloo --task arithmetic --rates=-1,nan", "--rates must be learning rates above 0"),
        ("compare grpo rloo --task arithmetic --rates 0,1e-3", "--rates must be learning rates above 0"),
        ("compare grpo rloo --task arithmetic --rates 1e-3,nan", "--rates must be learning rates above 0"),
        ("compare grpo rloo --task arithmetic --rates 1e-4", "rates must be two distinct numbers or more"),
        ("compare grpo rloo --task arithmetic --rates 1e-4 --dry-run", "rates must be two distinct numbers or more"),
        ("league length --rates 1e-3,-1", "--rates must be learning rates above 0"),
        ("reproduce dr_grpo --dev --rates 1e-3,nan", "--rates must be learning rates above 0"),
        ("compare grpo rloo --task arithmetic --rate-seeds 3", "--rate-seeds says on how many seeds"),
        (
            "compare grpo rloo --task arithmetic --budget 1000 --equal updates",
            "drop the budget, or compare at equal tokens",
        ),
        ("compare grpo rloo --task arithmetic --without rloo", "--without is for a comparison that is resumed"),
    ],
)
def test_wrong_requests_are_refused(at_once, capsys, line, message):
    assert cli.main(line.split()) == 2
    assert message in capsys.readouterr().err
