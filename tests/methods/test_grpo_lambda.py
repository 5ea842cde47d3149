"""GRPO-lambda: a length penalty in the groups that are right most often."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.shaping.grpo_lambda import top_groups
from rewardlab.rewards.reward import reward

PROMPT = ask("2+2?", "4")


def reply(length: int, text: str) -> Trajectory:
    ids, logprobs = np.zeros(length, np.int64), np.zeros(length, np.float32)
    return Trajectory(PROMPT, (Turn(None, np.zeros(2, np.int64)), Turn("policy", ids, logprobs, logprobs, text)), "end")


def group_of(text: str, lengths: tuple[int, ...] = (4, 6, 8, 10)) -> list[Trajectory]:
    """One reply for each letter: r(ight), w(rong), or ? without a verdict."""
    return [reply(n, {"r": "4", "w": "5", "?": "?"}[c]) for c, n in zip(text, lengths, strict=True)]


@reward
def verify(trajectory):
    return Score(None, why="no verdict") if trajectory.reply == "?" else float(trajectory.reply == trajectory.problem.answer)


RUN = Run(policy=None, verify=verify())


def sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def test_groups_are_ranked_by_the_share_of_right_replies_among_those_with_a_verdict():
    groups = [group_of(text) for text in ("rwww", "rrrr", "wwww", "rr??", "rrrw")]
    verdicts = verify()(groups, RUN)
    # shares 1/4, 1, 0, 1, 3/4; equal shares go by position
    assert top_groups(verdicts, 0.2) == {1}
    assert top_groups(verdicts, 0.4) == {1, 3}
    # ceil(0.5 * 5) = 3
    assert top_groups(verdicts, 0.5) == {1, 3, 4}
    assert top_groups(verdicts, 1.0) == {0, 1, 2, 3, 4}
    assert top_groups(verdicts, 0.0) == set()
    assert top_groups([[Score(None)], [Score(1.0)]], 0.5) == {1}


def test_only_right_replies_of_the_best_groups_are_penalised():
    # of the first group the right replies have lengths 4, 6, 8: mean 6, std sqrt(8/3) = 1.63299, z = -1.22474, 0, 1.22474
    groups = [group_of("rrrw"), group_of("rwww"), group_of("wwww"), group_of("w?ww"), group_of("wwww")]
    scores = registry.build("grpo_lambda").reward(groups, RUN)
    totals = [[s.total for s in row] for row in scores]
    short, even, long = (1 - 0.2 * sigmoid(z) for z in (-1.22474, 0.0, 1.22474))
    assert totals[0] == pytest.approx([short, even, long, 0.0], abs=1e-5)
    assert totals[1:] == [[1, 0, 0, 0], [0, 0, 0, 0], [0, None, 0, 0], [0, 0, 0, 0]]


def test_equal_lengths_and_a_single_right_reply_lose_the_same_half():
    recipe = registry.build("grpo_lambda", {"share": 1.0, "alpha": 0.4})
    groups = [group_of("rrww", (5, 5, 9, 1)), group_of("wrww")]
    totals = [[s.total for s in row] for row in recipe.reward(groups, RUN)]
    assert totals == [pytest.approx([0.8, 0.8, 0, 0]), pytest.approx([0, 0.8, 0, 0])]


def test_the_credit_of_a_group_in_which_all_are_right():
    """Only the shorter reply's credit is above 0, and only in the group that is penalised; all wrong gives none."""
    groups = [group_of("rr", (4, 8)), group_of("rr", (3, 9)), group_of("ww", (3, 9))]
    recipe = registry.build("grpo_lambda", {"share": 0.3})
    batch = collate(groups, recipe.reward(groups, RUN), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, RUN)
    # z = -1, 1: sigmoid .26894, .73106, rewards .94621 and .85379: +-.04621 from the mean, std .06535;  / (std + 1e-4) = .70602
    expected = torch.tensor([0.70602, -0.70602, 0, 0, 0, 0])[:, None].expand(batch.mask.shape) * batch.mask
    assert torch.allclose(credit, expected, atol=1e-4)
