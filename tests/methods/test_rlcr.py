"""RLCR: being right, less the Brier score of the confidence that is stated."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.shaping.rlcr import confidence
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.best import best

PROMPT = ask("2+2?", "4")


def reply(answer: str, stated: str | None, length: int = 3) -> Trajectory:
    """`length` sampled tokens; the answer is "4" (right), "5" (wrong) or "?" (no verdict)."""
    text = f"Answer: {answer}" + ("" if stated is None else f"\nConfidence: {stated}")
    zeros = np.zeros(length, np.float32)
    return Trajectory(
        PROMPT, (Turn(None, np.zeros(2, np.int64)), Turn("policy", np.zeros(length, np.int64), zeros, zeros, text)), "end"
    )


@reward
def verify(trajectory):
    said = trajectory.reply[8]
    return Score(None, why="no verdict") if said == "?" else float(said == trajectory.problem.answer)


RUN = Run(policy=None, verify=verify())


def totals(group: list[Trajectory], **settings) -> list[float | None]:
    return [s.total for s in registry.build("rlcr", settings).reward([group], RUN)[0]]


# c - (q - c)^2:  right, .9: 1 - .01;  right, .2: 1 - .64;  wrong, .9: -.81;  wrong, .2: -.04;  no confidence: -2
GROUP = [("4", "0.9"), ("4", "0.2"), ("5", "0.9"), ("5", "20%"), ("4", None), ("5", "1.2"), ("?", "0.5")]


def test_the_reward_by_hand():
    assert totals([reply(*x) for x in GROUP]) == [pytest.approx(v) for v in (0.99, 0.36, -0.81, -0.04, -2.0, -2.0)] + [None]


def test_twice_the_released_reward_of_form_accuracy_and_brier():
    for answer, stated in GROUP[:6]:
        formed, right = stated in ("0.9", "0.2", "20%"), answer == "4"
        q = 0.2 if stated == "20%" else float(stated or 0)
        # reward_weights .5, .5, .5; accuracy and Brier are 0 without the form
        theirs = 0.5 * formed + 0.5 * (formed and right) + 0.5 * (formed and 1 - (right - q) ** 2)
        assert totals([reply(answer, stated)]) == [pytest.approx(2 * theirs - 2)]


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_the_honest_confidence_pays_best_and_being_right_pays_at_every_confidence(p):
    levels = [i / 10 for i in range(11)]
    expected = {q: sum(w * totals([reply(a, str(q))])[0] for w, a in ((p, "4"), (1 - p, "5"))) for q in levels}
    assert max(expected, key=expected.get) == p
    # E = p - p (1 - p) at the honest confidence, which rises with p
    assert expected[p] == pytest.approx(p * p)
    assert all(totals([reply("4", str(q))])[0] >= totals([reply("5", "0.0")])[0] for q in levels)


def test_an_unbounded_rule_lets_a_sure_wrong_answer_pay_more_than_a_doubtful_right_one():
    right, wrong = totals([reply("4", "0.1"), reply("5", "0.0")], rule="log")
    assert right == pytest.approx(1 + math.log(0.1))
    assert wrong == pytest.approx(0.0)
    assert right < wrong
    assert totals([reply("5", "1.0")], rule="log") == [pytest.approx(math.log(1e-3))]


def test_where_all_are_right_the_credit_is_for_confidence_alone_however_long():
    group = [reply("4", "1.0", 2), reply("4", "0.5", 5), reply("?", "0.9", 3)]
    recipe = registry.build("rlcr")
    batch = collate([group], recipe.reward([group], RUN), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, RUN)
    # 1 and .75, less their mean, and not divided by how far they lie apart
    expected = torch.tensor([[0.125], [-0.125], [0.0]]).expand(batch.mask.shape) * batch.mask
    assert torch.allclose(credit, expected, atol=1e-4)


def test_a_right_answer_without_a_confidence_is_worth_no_more_than_a_wrong_one():
    assert len(set(totals([reply("4", None), reply("5", None)], rule="log"))) == 1
    assert totals([reply("4", None)], rule="log")[0] < totals([reply("5", "1.0")], rule="log")[0]


def test_in_a_group_that_is_all_wrong_small_differences_stay_small():
    group = [reply("5", "0.1"), reply("5", "0.2")]
    recipe = registry.build("rlcr")
    batch = collate([group], recipe.reward([group], RUN), torch.device("cpu"))
    # -.01 and -.04; GRPO would make them +-.7
    assert recipe.credit(batch.reward, batch, RUN).abs().max() == pytest.approx(0.015)


def test_one_reply_has_no_credit_and_a_base_keeps_its_rewards():
    recipe, group = registry.build("rlcr"), [reply("4", "0.5")]
    batch = collate([group], recipe.reward([group], RUN), torch.device("cpu"))
    assert not recipe.credit(batch.reward, batch, RUN).any()
    assert "format_ok(" in str(registry.build("gdpo+rlcr").reward)


def test_a_vote_can_be_weighed_by_confidence():
    group = [reply("5", "0.3"), reply("5", "0.3"), reply("4", "0.9"), reply("5", None)]
    scores = confidence()([group], RUN)[0]
    assert [s.value for s in scores] == [0.3, 0.3, 0.9, 0.0]
    vote = registry.build("weighted_vote").select
    assert vote(group, scores, RUN) is group[2]
    assert best()(group, scores, RUN) is group[2]
