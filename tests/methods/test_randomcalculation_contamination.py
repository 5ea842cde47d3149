"""Rewards as controls: random, inverted, of the wrong majority, and by the distance of numbers."""

from __future__ import annotations

import pytest
import torch

from rewardlab import registry
from rewardlab.core import Score, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.studies.randomcalculation_contamination import closeness, coin, incorrect_majority, near
from rewardlab.models.embedded import untrained

NAME = "randomcalculation_contamination"


def replies(*texts: str, answer: str = "7", policy=None):
    policy = policy or untrained()
    asked = policy.read([Trajectory(ask("3 + 4 = ?", answer))], [ask("3 + 4 = ?", answer).prompt])[0]
    return [policy.write([asked], [text])[0] for text in texts]


class Judged:
    """A run whose verifier compares the last word of a reply, and is silent where a reply is."""

    def verdicts(self, groups):
        return [[Score(None, why="silent") if not t.reply else Score(float(t.reply.split()[-1] == "7")) for t in g] for g in groups]

    def rng(self, name):
        return torch.Generator().manual_seed(3)


def test_the_most_frequent_wrong_answer_is_paid():
    group = replies("Answer: 7", "Answer: 8", "Answer: 9", "Answer: 9", "")
    (row,) = incorrect_majority()([group], Judged())
    assert [s.value for s in row] == [0.0, 0.0, 1.0, 1.0, None]
    # where all are right there is none
    (row,) = incorrect_majority()([replies("Answer: 7", "Answer: 7")], Judged())
    assert [s.value for s in row] == [0.0, 0.0]


def test_a_coin_pays_whatever_is_said():
    group = replies(*["Answer: 7"] * 200)
    (row,) = coin(chance=0.25)([group], Judged())
    paid = [s.value for s in row]
    assert set(paid) == {0.0, 1.0}
    assert 0.15 < sum(paid) / 200 < 0.35
    assert [s.value for s in coin(chance=0.25)([group], Judged())[0]] == paid
    assert {s.value for s in coin(chance=0)([group], Judged())[0]} == {0.0}


def test_closeness_by_hand():
    # e = .5: 1 - .25 - .5 * .5 / 10;  e = 3: the first half is gone, 3 / 10 of the second too
    assert near(10.5, 10) == pytest.approx(1 - 0.25 - 0.025)
    assert near(7, 10) == pytest.approx(0.5 - 0.15)
    assert near(-20, 10) == 0.0
    assert near(10, 10) == 1.0
    # a gold number of 0: the error itself, in both terms
    assert near(0.5, 0) == pytest.approx(0.5)


def test_closeness_reads_the_answer_of_a_reply():
    group = replies("2 + 2 = 4. Answer: 10", "no idea", "Answer: 8.5", answer="10")
    (row,) = closeness()([group], Judged())
    assert [s.value for s in row] == [1.0, 0.0, pytest.approx(1 - 0.5 - 0.075)]
    with pytest.raises(RewardlabError, match="leave `graded` out"):
        closeness()([replies("Answer: B", answer="B")], Judged())


def test_the_rewards_of_the_recipe():
    def paid(**settings):
        return str(registry.build(NAME, settings).reward)

    assert paid() == "coin(chance=0.5)" or paid() == "coin()"
    assert "incorrect_majority" in paid(rewards="incorrect")
    assert paid(rewards="accurate") == "correct()"
    assert "closeness" in paid(rewards="accurate", graded=True)
    assert "closeness" in paid(rewards="inverted", graded=True)
    with pytest.raises(RewardlabError, match="graded"):
        registry.build(NAME, {"graded": True})


def test_inverted_rewards_pay_what_is_wrong():
    part = registry.build(NAME, {"rewards": "inverted", "graded": True}).reward
    (row,) = part([replies("Answer: 10", "Answer: 9", answer="10")], Judged())
    assert [s.total for s in row] == pytest.approx([0.0, 1 - (0.5 - 0.05)])
