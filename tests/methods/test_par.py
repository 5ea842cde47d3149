"""PAR: what a bounded, centred reward does to credit."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.rewards.reward import reward

PROMPT = ask("how much?")


@reward
def number_said(trajectory):
    return Score(None, why="not a number") if trajectory.reply == "?" else float(trajectory.reply)


def reply(text: str, length: int = 2) -> Trajectory:
    ids, logprobs = np.zeros(length, np.int64), np.zeros(length, np.float32)
    return Trajectory(PROMPT, (Turn(None, np.zeros(1, np.int64)), Turn("policy", ids, logprobs, logprobs, text)), "end")


def credit_of(settings: dict, references: list[str], *texts: str) -> torch.Tensor:
    """The credit at the last decision of each reply of one group."""
    recipe = registry.build("rlhf+par", {"score": number_said(), "rlhf.beta": 0.0, **settings})
    run = Run(policy=None, reference=Replies(references))
    groups = [[reply(text, 2 + i) for i, text in enumerate(texts)]]
    batch = collate(groups, recipe.reward(groups, run), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    # an outcome reaches every decision of its reply alike, however long it is
    assert torch.allclose(credit, credit[:, 1:2] * batch.mask)
    return credit[:, 1]


def test_above_the_reference_more_of_the_score_is_worth_ever_less():
    # sigmoids of the margins 0, 2, 8 to a reference of 1: .5, .880797, .999665; each less the mean of the other two
    found = credit_of({}, ["1"], "1", "3", "9")
    assert found.tolist() == pytest.approx([0.5 - 0.940231, 0.880797 - 0.749832, 0.999665 - 0.690399], abs=1e-5)
    # of the raw score, the last reply would get 9 - 2 = 7, and 3 - 5 = -2 would be the second's
    assert found[1] > 0


def test_references_are_averaged_and_replies_without_a_score_left_out():
    # references 0 and 2: (sigmoid(1) + sigmoid(-1)) / 2 = 1/2 and (sigmoid(3) + sigmoid(1)) / 2 = .841816
    found = credit_of({"par.references": 2}, ["0", "2"], "1", "3", "?")
    assert found.tolist() == pytest.approx([-0.341816, 0.341816, 0.0], abs=1e-5)
    assert (1 / (1 + math.exp(-3)) + 1 / (1 + math.exp(-1))) / 2 == pytest.approx(0.841816, abs=1e-6)


def test_a_single_reply_and_equal_replies_get_no_credit():
    assert credit_of({}, ["1"], "5").tolist() == [0.0]
    assert credit_of({}, ["1"], "5", "5").tolist() == [0.0, 0.0]


def test_alone_it_is_built_on_rlhf_with_the_scripts_kl():
    recipe = registry.build("par")
    assert str(recipe.reward) == "preferred(inner=model_score())"
    assert "less_kl_of_reply(beta=0.005) >> leave_one_out()" in str(recipe.credit)
    assert "ref" in recipe.needs
