"""A judge of known quality: how often it ranks right replies above wrong ones, and what its probabilities are worth."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.rewards.imperfect import imperfect
from rewardlab.rewards.reward import reward
from rewardlab.verifiers.match import exact_match

RUN = Run(policy=None, verify=exact_match())


def replies(n: int) -> list[list[Trajectory]]:
    """n problems, each with a right reply and a wrong one."""

    def reply(i: int, text: str) -> Trajectory:
        question = Turn(None, np.arange(2), text=f"What is {i}?")
        return Trajectory(ask(f"What is {i}?", str(i)), (question, Turn("policy", np.arange(3), text=text)))

    return [[reply(i, str(i)), reply(i, f"{i}0")] for i in range(1, n + 1)]


def said(n: int, auc: float, run: Run = RUN) -> np.ndarray:
    return np.array([[score.value for score in row] for row in imperfect(auc=auc)(replies(n), run)])


@pytest.mark.parametrize("auc", [0.5, 0.7, 0.9])
def test_right_replies_rank_above_wrong_ones_as_often_as_said(auc):
    right, wrong = said(1000, auc).T
    # every right reply against every wrong one; at 0.5 the judge says 0.5 of all
    above = (right[:, None] > wrong).mean() + (right[:, None] == wrong).mean() / 2
    assert above == pytest.approx(auc, abs=0.02)


def test_what_it_says_is_the_share_that_is_right():
    values = said(3000, 0.8)
    sure = (values > 0.6) & (values < 0.8)
    assert sure[:, 0].sum() / sure.sum() == pytest.approx(values[sure].mean(), abs=0.03)


def test_a_reply_gets_the_same_again_and_another_under_another_seed():
    assert (said(20, 0.8) == said(20, 0.8)).all()
    assert (said(20, 0.8) != said(20, 0.8, Run(policy=None, seed=1, verify=exact_match()))).all()


def test_without_a_verifier_or_a_verdict_nothing_is_said():
    with pytest.raises(RewardlabError, match="has none"):
        imperfect()(replies(1), Run(policy=None))
    (question, answer), problem = replies(1)[0][0].turns, ask("What is 1?", None)
    score = imperfect()([[Trajectory(problem, (question, answer))]], RUN)[0][0]
    assert score.value is None
    assert score.why


def test_another_judge_takes_the_verifiers_place():
    @reward
    def even(trajectory):
        return float(trajectory.problem.answer in "2468")

    run = Run(policy=None)
    scores = imperfect(auc=0.9999, inner=even())(replies(9), run)
    assert [row[0].value > 0.5 for row in scores] == [i % 2 == 0 for i in range(1, 10)]
    with pytest.raises(RewardlabError, match="verifier"):
        imperfect()(replies(1), run)
