"""A choice and a vote by what a reward pays."""

from __future__ import annotations

import pytest
from scripted import ScriptedPolicy

from rewardlab.core import Run, ask
from rewardlab.evals.reranked import reranked
from rewardlab.rewards.reward import reward

SAYS = ["Answer: 1", "Answer: 2 ", "Answer: 2", "Answer: 3"]
PAID = {"Answer: 1": 0.6, "Answer: 2 ": 0.4, "Answer: 2": 0.3, "Answer: 3": -9.0}


@reward
def two(trajectory):
    return float("2" in trajectory.reply)


@reward
def said(trajectory):
    return PAID[trajectory.reply]


def test_the_vote_is_by_sums_and_the_choice_by_the_highest():
    run = Run(ScriptedPolicy({"": SAYS}), verify=two(), max_new=20)
    found = reranked(by=said(), n=4)([ask("?")], run)
    # 1 is paid most, .6, and 2 in sum, .7; 3 is paid less than nothing and has no vote
    assert (found["reranked"], found["voted"], found["best"], found["pass@1"]) == (0.0, 1.0, 1.0, 0.5)
    assert found["by_auc"] == pytest.approx(0.5)
