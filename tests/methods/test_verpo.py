"""VeRPO: tests weigh by how few pass them and how many are alike, beside the outcome, with an advantage for each reply."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.rewards.tests import weights_of
from rewardlab.verifiers.match import exact_match

IO = {"io": [["[]", "0"], ["[5]", "5"], ["[1, 3]", "3"], ["[4, 2]", "4"]]}


def turn(text: str, tokens: int = 2, author: str | None = "policy") -> Turn:
    zeros = np.zeros(tokens, np.float32)
    return Turn(author, np.zeros(tokens, np.int64), zeros if author else None, zeros if author else None, text)


def row(*texts: str, answer=IO) -> Trajectory:
    """An episode of these replies, each answered by one token."""
    turns = [part for text in texts for part in (turn(text), turn("", 1, None))][:-1]
    return Trajectory(ask("Largest?", answer), (turn("", 1, None), *turns), "end")


def advantages(*rows: Trajectory, **settings) -> list[list[float]]:
    recipe, run = registry.build("verpo", settings), Run(policy=None, verify=registry.part("reward", "list_program"))
    batch = collate([list(rows)], recipe.reward([list(rows)], run), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    return [c[m].tolist() for c, m in zip(credit, batch.mask, strict=True)]


def test_rare_tests_weigh_more_and_equal_ones_share_a_weight():
    passed = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 0, 0]], float)
    # rates 1, 1, 1/2, 1/4, none within .01 of another but the first two
    assert weights_of(passed, 1.0, 0.01, 0.0) == pytest.approx([math.exp(-1) / 2] * 2 + [math.exp(-0.5), math.exp(-0.25)])
    # within .1: exp(-.25^2 / .02) = .04394 of each of the last two is shared with the other
    assert weights_of(passed, 1.0, 0.1, 0.0)[2:] == pytest.approx([0.60653 / 1.04394, 0.77880 / 1.04394], abs=1e-4)
    assert weights_of(passed, 0.0, 1e9, 0.0) == pytest.approx([0.25] * 4)


def test_the_advantage_is_of_the_outcome_and_of_the_tests():
    found = advantages(row("max"), row("last"), row("head"), row("min"))
    # last passes all but [4, 2], head all but [1, 3], min neither: rates 1, 1, 1/2, 1/2, weights e^-1 / 2 and e^-.5 / 2
    # tests: .97441, .67115, .67115, .36788, mean .67115;   outcome: 1, 0, 0, 0, mean 1/4;   beta = 1/2
    assert found == [pytest.approx([a] * 2, abs=1e-4) for a in (0.90163, -0.25, -0.25, -0.40163)]
    # all right, or none, and all alike: nothing to learn
    assert advantages(row("max"), row("max")) == [pytest.approx([0, 0], abs=1e-6)] * 2
    assert advantages(row("the max"), row("")) == [pytest.approx([0, 0], abs=1e-6)] * 2
    # none is right, and yet they are told apart: rates 1/2 for all but [4, 2]; two share a weight of e^-.5 / 3 each ...
    wrong = advantages(row("last"), row("nonsense"))
    # ... so last has 3 e^-.5 / 3, the other 0, and half of it is above the mean
    assert wrong == [pytest.approx([a] * 2, abs=1e-4) for a in (0.15163, -0.15163)]
    assert advantages(row("max")) == [pytest.approx([0, 0], abs=1e-6)]


def test_a_reply_without_a_verdict_counts_in_no_rate_and_gets_no_credit():
    with_it = advantages(row("max"), row("last"), row("min", answer=None))
    assert with_it[:2] == [pytest.approx(x, abs=1e-6) for x in advantages(row("max"), row("last"))]
    assert with_it[2] == [0, 0]


def test_each_reply_of_an_episode_is_tested():
    first, second = advantages(row("min", "max"), row("max"), gamma=0.9)
    # three replies: rates 1, 1, 2/3, 2/3; exp(-(1/3)^2 / .02) = .003866: weights e^-1 / 2.00773 and e^-(2/3) / 2.00773
    # tests: .36646, .87790, .87790, mean .70742;   outcome: .81, .9, mean .855
    assert first == pytest.approx([-0.21548, -0.21548, 0.04024, 0.04024], abs=1e-4)
    assert second == pytest.approx([0.13024, 0.13024], abs=1e-4)


def test_a_verifier_without_single_tests_is_refused():
    recipe, run = registry.build("verpo"), Run(policy=None, verify=exact_match())
    with pytest.raises(RewardlabError, match="tells no single tests"):
        recipe.reward([[row("max", answer="max")]], run)
    # no reply of the batch came to its tests: that is no fault of the verifier
    run = Run(policy=None, verify=registry.part("reward", "code"))
    assert [s.total for s in recipe.reward([[row("", answer={"tests": "assert f() == 1"})]], run)[0]] == [0]
