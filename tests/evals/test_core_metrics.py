"""Greedy accuracy, a vote, and the probability of gold solutions, beside another measure."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, measure
from rewardlab.evals.core_metrics import _most_frequent, core_metrics
from rewardlab.models.embedded import untrained


@measure
def constant(problems, run):
    return {"constant": 1.0}


@pytest.fixture
def run():
    task = registry.task("arithmetic", test_size=6)
    run = Run(untrained(), max_new=4)
    run.verify = registry.part("reward", task.verifier)
    return task, run


def test_gold_is_the_probability_of_the_whole_solution(run):
    task, state = run
    found = core_metrics(inner=constant(), greedy=3, votes=0)(task.test, state.for_evaluation())
    assert list(found) == ["constant", "greedy", "gold", "gold_logprob"]
    problems = task.test[:3]
    prompts = state.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = state.policy.write(prompts, [p.meta["solution"] for p in problems])
    logprobs = [row[t.mask] for t, row in zip(rows, state.policy.score(rows), strict=True)]
    assert found["gold"] == pytest.approx(np.mean([np.exp(row.sum()) for row in logprobs]), rel=1e-4)
    assert found["gold_logprob"] == pytest.approx(np.concatenate(logprobs).mean(), rel=1e-4)


@measure
def own_vote(problems, run):
    return {"aggregated": 0.5, "majority": 0.75}


def test_a_number_of_the_measure_is_not_replaced(run):
    task, state = run
    found = core_metrics(inner=own_vote(), greedy=3, votes=2, voters=2)(task.test, state.for_evaluation())
    assert list(found) == ["aggregated", "majority", "greedy", "gold", "gold_logprob"]
    assert found["majority"] == 0.75


def test_a_vote_counts_answers_and_not_replies():
    class Reply:
        def __init__(self, reply):
            self.reply = reply

    assert _most_frequent([Reply("Answer: 4"), Reply("2+3=5\nAnswer: 5"), Reply("Answer: 5")]) == 1
    # of equally frequent answers the first; what answers nothing does not vote
    assert _most_frequent([Reply(""), Reply("Answer: 4"), Reply("Answer: 5")]) == 1
    assert _most_frequent([Reply(""), Reply("")]) == 0


def test_data_without_a_verifier_keeps_its_own_measure(run):
    task, state = run
    state.verify = None
    assert core_metrics(inner=constant())(task.test, state) == {"constant": 1.0}
