"""Re:Form: contracts are paid by the released numbers, and empty ones less than those that say something."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("z3")

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.worlds.contracts import contracts

HEAD, CODE = "method m(x: int) returns (r: int)", "{ assert x >= 4; r := x - 4; }"
GOLD = f"{HEAD} requires x >= 4 ensures r == x - 4 {CODE}"


def said(text: str, gold: object = GOLD, length: int = 3) -> Trajectory:
    zeros = np.zeros(length, np.float32)
    turns = (Turn(None, np.zeros(2, np.int64)), Turn("policy", np.zeros(length, np.int64), zeros, zeros, text))
    return Trajectory(ask(f"{HEAD} {CODE}", gold), turns, "end")


def run() -> Run:
    return Run(None, verify=registry.part("reward", "method_contract"))


def totals(*rows: Trajectory, **settings) -> list[float | None]:
    return [s.total for s in registry.build("reform_dafny", settings).reward([list(rows)], run())[0]]


CASES = [
    # .2 + .4 + 1: the reference; a stronger one, which requires less than it may
    ("requires x >= 4 ensures r == x - 4", 1.6),
    ("requires x > 3 ensures r == x - 4 && r >= 0", 1.6),
    # .2 + .4: kept, and says less; requires more; says nothing
    ("requires x >= 4 ensures r >= 0", 0.6),
    ("requires x >= 9 ensures r == x - 4", 0.6),
    ("requires false ensures r == 7", 0.6),
    # .2: implies the reference, and is not kept
    ("ensures r == x - 4", 0.2),
    # 0: empty by its looks
    ("requires x >= 4 ensures true", 0.0),
    ("requires x >= 4 ensures r == r", 0.0),
    ("requires x >= 4 ensures r == x - 4 ensures true", 0.0),
    # .01 for what cannot be read, 0 for nothing, and for other code
    ("requires x is large", 0.01),
    (f"{HEAD} requires x >= 4 {CODE} done", 0.01),
    (f"{HEAD} ensures r == 7 {{ r := 7; }}", 0.0),
    ("", 0.0),
]


def test_what_a_contract_earns_by_hand():
    assert totals(*(said(text) for text, _ in CASES)) == pytest.approx([worth for _, worth in CASES])
    # the proof alone: the contract that says nothing earns as much as the reference
    assert totals(said(CASES[0][0]), said(CASES[4][0]), subset=0.0) == pytest.approx([0.6, 0.6])


def test_a_method_that_does_not_keep_its_contract_gives_no_verdict():
    assert totals(said(CASES[0][0], f"{HEAD} ensures r > x {CODE}"), said(CASES[0][0], 7)) == [None, None]


def test_the_credit_of_a_group():
    recipe, r = registry.build("reform_dafny"), run()
    group = [said(CASES[i][0], length=n) for i, n in ((0, 2), (2, 5), (5, 1))]
    batch = collate([group], recipe.reward([group], r), torch.device("cpu"))
    rewards = np.array([1.6, 0.6, 0.2])
    expected = torch.tensor((rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4))[:, None] * batch.mask
    assert torch.allclose(recipe.credit(batch.reward, batch, r).double(), expected, atol=1e-4)


def test_the_loss_has_the_released_kl_and_entropy():
    assert (
        str(registry.build("reform_dafny").objective) == "clipped_ratio() + 0.001 * kl_to_reference() + 0.01 * negative_entropy()"
    )
    assert "entropy" not in str(registry.build("reform_dafny", {"entropy": 0.0}).objective)


@pytest.mark.slow
def test_empty_contracts_of_the_world_are_kept_and_honest_ones_say_more():
    task = contracts(slips=0.0, test_size=1)
    problems = [task.train[i] for i in range(40)]
    rows = [(said(p.meta["chosen"], p.answer), said(p.meta["rejected"], p.answer)) for p in problems]
    earned = totals(*(row for pair in rows for row in pair))
    assert earned[::2] == pytest.approx([1.6] * 40)
    assert earned[1::2] == pytest.approx([0.6] * 40)
    assert len({p.meta["fault"] for p in problems}) == 4


def test_the_teacher_of_the_world_leaves_out_requirements_and_second_cases():
    task = contracts(biased=1.0, test_size=1)
    problems = [task.train[i] for i in range(40)]
    import random

    texts = [task.demonstrate(p, random.Random(0)) for p in problems]
    assert all("requires" not in text and text.count("ensures") == 1 for text in texts)
    right = [t == p.meta["solution"] for t, p in zip(texts, problems, strict=True)]
    assert 0.05 < np.mean(right) < 0.6
