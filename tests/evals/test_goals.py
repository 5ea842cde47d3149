"""What a policy makes of goals in the prompt, by numbers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from rewardlab.core import Run, Score, rollout
from rewardlab.errors import RewardlabError
from rewardlab.methods.objectives.reward_augmented_dpo import goal_margins
from rewardlab.rewards.reward import reward

# two pairs, each under the better reply's goal (better, worse) and under the other's (worse, better): score, tokens, gain in nats
PAIRS = [(9, 2, 4.0), (8, 2, 1.0), (8, 2, -1.0), (9, 2, 0.0), (6, 1, 1.0), (3, 4, 2.0), (3, 4, 2.0), (6, 1, 1.0)]


@rollout(rows=lambda **_: 2)
def written_down(problems, run):
    rows = [SimpleNamespace(mask=np.array([False] + [True] * tokens), at=i) for i, (_, tokens, _) in enumerate(PAIRS)]
    return [rows[i : i + 2] for i in range(0, len(rows), 2)]


@reward(over="groups")
def noted(groups, run):
    return [[Score(float(PAIRS[t.at][0])) for t in group] for group in groups]


def model(scale):
    def logprobs(t):
        _, tokens, gain = PAIRS[t.at]
        # what was read counts for nothing
        return np.array([9.0, *[scale * gain / tokens] * tokens])

    return SimpleNamespace(score=lambda rows: [logprobs(t) for t in rows])


def test_by_hand():
    run = Run(model(1.0), model(0.0))
    found = goal_margins(rollout=written_down(), reward=noted(), least=7)([], run)
    # the first pair's worse reply alone scores 7 or more: it lost 1 nat over 2 tokens
    assert found["kept"] == pytest.approx(-0.5)
    # under the better reply's score: 4 over 1; 1 below 2
    assert found["preferred"] == 0.5
    # the first: 3 under the one goal, -1 under the other, so 2 apart; the second: the same worse reply gains under both: 0
    assert found["told_apart"] == 0.75
    assert found["n"] == 1
    with pytest.raises(RewardlabError, match="no rejected reply of 2 pairs"):
        goal_margins(rollout=written_down(), reward=noted(), least=9.5)([], run)


def test_without_a_reference():
    with pytest.raises(RewardlabError, match="needs a reference"):
        goal_margins(rollout=written_down(), reward=noted(), least=7)([], Run(model(1.0)))
