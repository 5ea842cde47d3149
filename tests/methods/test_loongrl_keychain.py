"""LoongRL: answers that contain the gold one, or are contained in it; and the credit of a group."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate


def row(text: str, gold="Bob Lee", length: int = 3) -> Trajectory:
    zeros = np.zeros(length, np.float32)
    turns = (Turn(None, np.zeros(2, np.int64)), Turn("policy", np.zeros(length, np.int64), zeros, zeros, text))
    return Trajectory(ask("Who?", gold), turns, "end")


@pytest.mark.parametrize(
    ("reply", "gold", "worth"),
    [
        ("Answer: Bob Lee", "Bob Lee", 1), ("Answer: Bob Lee of Rome.", "Bob Lee", 1), ("\\boxed{Lee}", "Bob Lee", 1),
        ("Answer: bob lee", ["Cal", "Bob Lee"], 1), ("Answer: Bob Roe", "Bob Lee", 0), ("Answer: Bobby Lee", "Bob Lee", 0),
        ("Answer: Lee Bob", "Bob Lee", 0), ("Answer:", "Bob Lee", 0), ("Answer: the", "the Bob", 0), ("", "Bob Lee", 0),
        # stated in the thinking alone; in the last line
        ("<think>Answer: Bob Lee</think>", "Bob Lee", 0), ("I say\nBob Lee", "Bob Lee", 1),
        ("Answer: 12", "1", 0), ("Answer: -5", "5", 0), ("Answer: 5.0", "5", 1), ("Answer: 1990 in Rome", "1990", 1),
        # 128 characters more are too many
        ("Answer: Bob Lee " + "x" * 200, "Bob Lee", 0), ("Answer: Bob Lee", "", None), ("Answer: Bob Lee", None, None),
    ],
)  # fmt: skip
def test_what_an_answer_earns(reply, gold, worth):
    assert registry.build("loongrl_keychain").reward([[row(reply, gold)]], Run(None))[0][0].total == worth


def test_how_much_longer_an_answer_may_be_is_a_setting():
    strict = registry.build("loongrl_keychain", {"longer": 3}).reward
    assert [s.total for s in strict([[row("Answer: Bob Lee"), row("Answer: Bob Lee of Rome")]], Run(None))[0]] == [1, 0]


def test_the_credit_of_a_group():
    recipe = registry.build("loongrl_keychain")
    group = [row("Answer: Bob Lee of Rome", length=5), row("Answer: Cal", length=1), row("Answer: Ann", length=2)]
    batch = collate([group], recipe.reward([group], Run(None)), torch.device("cpu"))
    x = np.array([1.0, 0.0, 0.0])
    expected = torch.tensor((x - x.mean()) / (x.std(ddof=1) + 1e-4))[:, None] * batch.mask
    assert torch.allclose(recipe.credit(batch.reward, batch, Run(None)).double(), expected, atol=1e-4)


def test_the_small_world_asks_at_the_end_of_a_chain_and_its_wrong_answers_are_wrong():
    task = registry.task("keychain:test_size=60")
    judge = registry.part("reward", task.verifier)
    for problem in task.test:
        start = problem.meta["solution"].partition(":")[0]
        assert problem.question.endswith(f"Begin at {start}.")
        assert judge.check(problem.meta["chosen"], problem.answer).correct
        # a choice between two is the one fault that a look in both directions does not see
        assert judge.check(problem.meta["rejected"], problem.answer).correct is (problem.meta["fault"] == "either")
    problem = next(p for p in task.test if p.meta["chains"][1]["answer"] != p.answer != p.meta["chains"][2]["answer"])
    misled = registry.task("keychain:error=1.0,test_size=1").demonstrate(problem, random.Random(0))
    assert judge.check(misled, problem.answer).correct is False
