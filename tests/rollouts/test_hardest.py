"""The hardest problems, chosen once by what the policy before training earns on them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rows import Replies

from rewardlab.core import Run, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.verifiers.bleuberi import MEMORY, hardest
from rewardlab.rollouts.independent import independent
from rewardlab.verifiers.match import exact_match

PROBLEMS = [ask(f"Say {i}.", "yes") for i in range(6)]
SAID = ["yes", "no", "yes", "no", "yes", "yes"]  # to each problem, by the policy before training


class Source:
    """Six problems in epochs, from the third on; counts what is taken."""

    def __init__(self):
        self.taken = 2

    def __call__(self, n: int):
        self.taken += n
        return [PROBLEMS[i % 6] for i in range(self.taken - n, self.taken)]


def run_with(replies: list[str]) -> Run:
    return Run(Replies(replies), more_problems=Source())


PART = hardest(inner=independent(n=1), by=exact_match(), keep=2, pool=6)


def test_the_prompts_with_the_lowest_reward_are_trained_on_alone():
    run = run_with(SAID)
    assert run.more_problems.taken == 2
    policy = run.policy
    extended = policy.extend

    def extend(rows, sampling, rng):
        policy.replies = SAID if len(rows) == 6 else ["?"] * len(rows)
        sampled.append((len(rows), sampling.temperature, sampling.top_p))
        return extended(rows, sampling, rng)

    sampled: list[tuple] = []
    policy.extend = extend
    groups = PART(PROBLEMS[:2], run)
    assert sampled == [(6, 0.7, 0.9), (2, 1.0, 1.0)]
    # problem 1 was among those handed in; the next hard one of the data is 1 or 3
    assert [g[0].problem.question for g in groups] == ["Say 1.", "Say 1."] or {g[0].problem.question for g in groups} <= {
        "Say 1.",
        "Say 3.",
    }
    assert run.memory[MEMORY] == [PROBLEMS[1].key, PROBLEMS[3].key]
    # what is kept is not chosen again, and comes back from JSON
    run.memory = json.loads(json.dumps(run.memory))
    assert {g[0].problem.question for g in PART(PROBLEMS[:4], run)} == {"Say 1.", "Say 3."}
    assert [n for n, *_ in sampled].count(6) == 1


def test_held_out_problems_are_all_kept():
    run = replace(run_with(["a", "b"]), more_problems=None)
    assert [g[0].problem for g in PART(PROBLEMS[:2], run)] == PROBLEMS[:2]


def test_prompts_that_never_come_again_are_refused():
    run = run_with(["?"] * 2)
    run.memory[MEMORY] = ["another"]
    with pytest.raises(RewardlabError, match="give the task a size"):
        PART(PROBLEMS[:2], run)
