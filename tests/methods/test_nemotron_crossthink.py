"""Nemotron-CrossThink: right AND in form, and what a guess earns in either form of a question."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.verifiers.contract import Pair


def row(text: str, answer="12", length: int = 3) -> Trajectory:
    zeros = np.zeros(length, np.float32)
    turns = (Turn(None, np.zeros(2, np.int64)), Turn("policy", np.zeros(length, np.int64), zeros, zeros, text))
    return Trajectory(ask("What is 3*4?", answer), turns, "end")


def run() -> Run:
    return Run(None, verify=registry.part("reward", "final_number"))


def totals(*rows: Trajectory, **settings) -> list[float | None]:
    return [s.total for s in registry.build("nemotron_crossthink", settings).reward([list(rows)], run())[0]]


def test_only_what_is_right_and_in_form_is_paid():
    # right and stated; right and not stated; stated and wrong; neither; no gold answer
    assert totals(row("Answer: 12"), row("12"), row("Answer: 13"), row("13"), row("Answer: 12", None)) == [1, 0, 0, 0, None]
    strict = r"<think>.+</think>\s*\\boxed\{.+\}"
    said = [
        row("<think>3*4</think> \\boxed{12}"),
        row("<think></think> \\boxed{12}"),
        row("\\boxed{12}"),
        row("<think>x</think>\\boxed{1}"),
    ]
    assert totals(*said, form=strict) == [1, 0, 0, 0]


def test_the_credit_of_a_group():
    recipe, group = (
        registry.build("nemotron_crossthink"),
        [row("Answer: 12", length=2), row("12", length=5), row("Answer: 1", length=1)],
    )
    batch = collate([group], recipe.reward([group], run()), torch.device("cpu"))
    x = np.array([1.0, 0.0, 0.0])
    expected = torch.tensor((x - x.mean()) / (x.std(ddof=1) + 1e-4))[:, None] * batch.mask
    assert torch.allclose(recipe.credit(batch.reward, batch, run()).double(), expected, atol=1e-4)


def test_a_bases_other_rewards_are_kept_behind_the_form():
    assert "shorter_than_before" in str(registry.build("hapo+nemotron_crossthink").reward)


@pytest.mark.parametrize(("form", "low", "high"), [("choice", 0.17, 0.33), ("open", 0.08, 0.23)])
def test_guesses_in_the_small_world_are_right_as_often_as_it_says(form, low, high):
    problems = [p for p in registry.task("quiz:test_size=500").test if p.meta["form"] == form]
    assert len(problems) > 200
    judge = registry.part("reward", "named_verifier")
    guessed = judge.check_all([Pair(p.meta["rejected"], p.answer, "", p.meta) for p in problems])
    careful = judge.check_all([Pair(p.meta["chosen"], p.answer, "", p.meta) for p in problems])
    assert low <= np.mean([v.correct for v in guessed]) <= high
    assert 0.7 <= np.mean([v.correct for v in careful]) <= 0.9
