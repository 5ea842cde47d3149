"""Multi-answer RL: several different answers in one reply, each with a confidence."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.rewards.reward import reward

PROMPT = ask("Which?", ["1", "2"])
"""A problem of which two answers are right."""


def reply(*answers: tuple[str, float | None], length: int = 3) -> Trajectory:
    text = "\n".join(f"Answer: {a}" + ("" if q is None else f"\nConfidence: {q}") for a, q in answers)
    zeros = np.zeros(length, np.float32)
    return Trajectory(
        PROMPT, (Turn(None, np.zeros(2, np.int64)), Turn("policy", np.zeros(length, np.int64), zeros, zeros, text)), "end"
    )


@reward
def verify(trajectory):
    said = trajectory.reply.removeprefix("Answer: ").split()[0]
    return Score(None, why="no verdict") if said == "?" else float(said in trajectory.problem.answer)


RUN = Run(policy=None, verify=verify())


def totals(group: list[Trajectory], **settings) -> list[float | None]:
    return [s.total for s in registry.build("multi_answer_rl", settings).reward([group], RUN)[0]]


def test_the_reward_by_hand():
    group = [
        reply(("3", 0.1), ("4", 0.2), ("1", 0.7)),  # 1 - (.01 + .04 + .09) / 3
        reply(("1", 0.5), ("2", 0.25), ("3", 0.25)),  # 2 - (.25 + .5625 + .0625) / 3
        reply(("3", 0.0), ("4", 0.0), ("5", 0.0)),  # all wrong, and known to be: 0
        reply(("3", 1.0), ("4", 0.0), ("5", 0.0)),  # all wrong, and sure of one: -1/3
        reply(("1", 0.5), ("2", 0.5), ("3", 0.5)),  # more than 1 in all: 2 - 1
        reply(("3", 0.5), ("4", 0.5), ("5", 0.5)),  # and all wrong: -1
        reply(("1", 0.5), ("1.0", 0.25), ("2", 0.25)),  # the same number twice
        reply(("1", 0.5), ("2", 0.5)),  # too few
        reply(("1", 0.5), ("2", 0.5), ("3", 0.0), ("4", 0.0)),  # too many
        reply(("1", 0.5), ("2", None), ("3", 0.5)),  # a confidence is missing
        reply(("1", 0.5), ("2", 1.5), ("3", 0.5)),  # or cannot be one
        reply(("1", 0.5), ("?", 0.25), ("3", 0.25)),  # no verdict on one of them
    ]
    paid = (1 - 0.14 / 3, 2 - 0.875 / 3, 0.0, -1 / 3, 1.0, -1.0, -1.0, *[-2.0] * 4)
    assert totals(group) == [pytest.approx(v) for v in paid] + [None]


def test_what_confidences_may_sum_to_is_a_setting_and_tenths_count_as_tenths():
    group = [
        reply(("1", 0.5), ("2", 0.5), ("3", 0.5)),
        reply(("1", 0.7), ("2", 0.2), ("3", 0.1)),
        reply(("1", 0.1), ("2", 0.2), ("3", 0.7)),
    ]
    assert totals(group, total=3.0)[0] == pytest.approx(2 - 0.75 / 3)
    assert totals(group)[1:] == [pytest.approx(2 - (0.09 + 0.64 + 0.01) / 3), pytest.approx(2 - (0.81 + 0.64 + 0.49) / 3)]


# form, accuracy and Brier by reward_fns.py (918e956), each of weight .5, where one answer is right
@pytest.mark.parametrize(
    ("listed", "form", "accuracy", "brier"),
    [
        ((("1", 0.5), ("8", 0.3), ("9", 0.1)), 1, 1, 1 - (0.25 + 0.09 + 0.01) / 3),
        ((("7", 0.5), ("8", 0.3), ("9", 0.1)), 1, 0, 1 - (0.25 + 0.09 + 0.01) / 3),
        ((("1", 0.5), ("8", 0.5), ("9", 0.1)), 1, 1, 0),  # sum over 1
        ((("1", 0.5), ("1", 0.3), ("9", 0.1)), 1, 0, 0),  # not unique
        ((("1", 0.5), ("8", 0.3)), 0, 0, 0),
    ],
)
def test_twice_the_released_reward_less_two(listed, form, accuracy, brier):
    assert totals([reply(*listed)]) == [pytest.approx(2 * (0.5 * form + 0.5 * accuracy + 0.5 * brier) - 2)]


def test_without_calibration_coverage_alone_is_paid():
    group = [reply(("1", None), ("2", None), ("3", None)), reply(("1", 1.0), ("4", 1.0), ("3", 1.0))]
    group += [reply(("1", 1.0), ("1", 1.0), ("2", 1.0)), reply(("1", 1.0), ("1", 1.0))]
    # different right ones less 1; what is said twice counts once; too few
    assert totals(group, calibrated=False) == [1.0, 0.0, 1.0, -2.0]


def test_one_answer_is_rlcr():
    group = [reply(("1", 0.9)), reply(("5", 0.9)), reply(("2", 0.0)), reply(("1", None))]
    assert totals(group, k=1) == [pytest.approx(s.total) for s in registry.build("rlcr").reward([group], RUN)[0]]


@pytest.mark.slow
def test_each_confidence_is_best_at_the_chance_of_its_own_answer():
    # the first answer is right with chance .6, the second with .3: of 10 problems 6 and 3
    def earned(p: float, q: float) -> float:
        right = totals([reply(("1", p), ("8", q))], k=2)[0] * 6 + totals([reply(("9", p), ("2", q))], k=2)[0] * 3
        return right + totals([reply(("9", p), ("8", q))], k=2)[0]

    levels = [i / 10 for i in range(11)]
    assert max(((p, q) for p in levels for q in levels), key=lambda x: earned(*x)) == (0.6, 0.3)


def test_the_credit_of_a_group_tells_a_wider_set_from_a_repeated_answer():
    group = [reply(("1", 0.5), ("2", 0.5), ("3", 0.0), length=5), reply(("1", 0.5), ("1", 0.5), ("1", 0.0), length=2)]
    recipe = registry.build("multi_answer_rl")
    batch = collate([group], recipe.reward([group], RUN), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, RUN)
    # 2 - .5 / 3 and -1, less their mean
    assert torch.allclose(credit, torch.tensor([[1.416667], [-1.416667]]).expand(batch.mask.shape) * batch.mask, atol=1e-4)
    # GRPO on the last answer sees the second as the better one
    plain = registry.build("grpo")
    batch = collate([group], plain.reward([group], Run(None, verify=last_of())), torch.device("cpu"))
    assert plain.credit(batch.reward, batch, RUN)[1, 2] > 0


@reward
def last_of(trajectory):
    return float(trajectory.reply.rpartition("Answer: ")[2].split()[0] in trajectory.problem.answer)
