"""Posterior-GRPO: thinking is paid behind the outcome alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.rewards.format import answer_given
from rewardlab.rewards.reward import reward


@reward
def verify(trajectory):
    if "?" in trajectory.reply:
        return Score(None, why="no verdict")
    return 0.5 if "half" in trajectory.reply else float("Answer: 2" in trajectory.reply)


@reward
def thought(trajectory):
    """The number that a reply begins with, as a reward model's score; no number, no score."""
    said = trajectory.reply.split()[0]
    return None if said == "-" else float(said)


RUN = Run(policy=None, verify=verify())
LENGTHS = (1, 2, 3, 4)


def group(*replies: str) -> list[Trajectory]:
    def row(text: str, length: int) -> Trajectory:
        ids, logprobs = np.zeros(length, np.int64), np.zeros(length, np.float32)
        return Trajectory(ask("1+1?"), (Turn(None, np.zeros(1, np.int64)), Turn("policy", ids, logprobs, logprobs, text)), "end")

    return [row(text, LENGTHS[i % 4]) for i, text in enumerate(replies)]


def recipe(**settings):
    return registry.method("posterior_grpo")(registry.build("grpo").but(reward=thought()), **settings)


def totals(*replies: str, **settings) -> list[float | None]:
    return [s.total for s in recipe(**settings).reward([group(*replies)], RUN)[0]]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


REPLIES = ("3 Answer: 2", "-1 Answer: 2", "9 Answer: 7", "9 none", "0 ?", "- Answer: 2")


def test_a_wrong_reply_earns_its_form_alone_however_well_it_reads():
    # form + outcome + outcome * sigmoid(score)
    expected = [2 + sigmoid(3), 2 + sigmoid(-1), 1.0, 0.0]
    found = totals(*REPLIES)
    assert found[:4] == pytest.approx(expected)
    assert found[4:] == [None, None]


def test_a_reply_that_is_right_in_part_opens_no_gate():
    # form and half the outcome; a product of the two would pay half the thinking too
    assert totals("3 half. Answer: 2", "-3 half. Answer: 2") == [1.5, 1.5]
    assert totals("3 half. Answer: 2", gated=False) == pytest.approx([1.5 + sigmoid(3)])


def test_without_the_gate_it_is_paid_for_reading_well():
    found = totals(*REPLIES, gated=False)
    assert found[:4] == pytest.approx([2 + sigmoid(3), 2 + sigmoid(-1), 1 + sigmoid(9), sigmoid(9)])


def test_a_form_of_ones_own_and_a_reward_for_thinking_that_is_taken_as_it_is():
    found = totals("0.5 Answer: 2", "0.25 Answer: 2", "0.5 Answer: 7", form=r"0\.5 .*", thinking=thought())
    assert found == pytest.approx([2.5, 1.25, 1.0])


def credit_of(*replies: str, **settings) -> torch.Tensor:
    one = recipe(**settings)
    groups = [group(*replies)]
    batch = collate(groups, one.reward(groups, RUN), torch.device("cpu"))
    return one.credit(batch.reward, batch, RUN)[:, 1]


def test_among_wrong_replies_thinking_gives_no_credit_and_among_right_ones_it_does():
    wrong = ("1 Answer: 3", "5 Answer: 3", "-5 Answer: 3")
    assert credit_of(*wrong).tolist() == [0.0, 0.0, 0.0]
    assert credit_of(*wrong, gated=False).tolist() != [0.0, 0.0, 0.0]
    # sigmoids .731059 and .268941: +-.231059 from the mean, std .326766; / (std + 1e-4) = .706890
    assert credit_of("1 Answer: 2", "-1 Answer: 2").tolist() == pytest.approx([0.706890, -0.706890], abs=1e-5)
    assert credit_of("1 Answer: 2").tolist() == [0.0]


def test_the_verifiers_verdict_is_still_known_to_the_log():
    score = recipe().reward([group("3 Answer: 2")], RUN)[0][0]
    assert score.terms["correct"].value == 1.0
    assert score.terms["thinking"].value == pytest.approx(sigmoid(3))
    alone = registry.build("posterior_grpo")
    assert "model_score()" in str(alone.reward)
    assert alone.also[0].name == "reward_model"


def test_where_programs_are_verified_the_form_is_a_block_of_code():
    run = Run(policy=None, verify=registry.part("reward", "code"))
    said = [
        "```python\nprint(2)\n```", "<think>ok</think>\n```python\nprint(2)", "# the answer is 2", "It is \\boxed{2}.",
        "```python\n```", "<think>```python\nprint(2)\n```",
    ]  # fmt: skip
    (row,) = answer_given()([group(*said)], run)
    assert [s.total for s in row] == [1, 1, 0, 0, 0, 0]
    # as before where answers are verified
    (row,) = answer_given()([group(*said)], RUN)
    assert [s.total for s in row] == [0, 0, 1, 1, 0, 0]
