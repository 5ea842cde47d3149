"""ChipSeek-R1: a design earns by its size only behind its function, and by that only behind its syntax."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.worlds.circuits import circuits

HEAD = "module top(input a, input b, input c, output y); assign y ="
GOLD = f"{HEAD} a & (b | c); endmodule"


def said(text: str, gold: object = GOLD, length: int = 3) -> Trajectory:
    zeros = np.zeros(length, np.float32)
    turns = (Turn(None, np.zeros(2, np.int64)), Turn("policy", np.zeros(length, np.int64), zeros, zeros, text))
    return Trajectory(ask("y = a b + a c", gold), turns, "end")


def run() -> Run:
    return Run(None, verify=registry.part("reward", "verilog"))


def totals(*rows: Trajectory, **settings) -> list[float | None]:
    return [s.total for s in registry.build("chipseek_r1", settings).reward([list(rows)], run())[0]]


REPLIES = [f"{HEAD} {x}; endmodule" for x in ("a & (b | c)", "a & b | a & c", "a & b", "a", "a &")] + ["y = a & b", ""]
# form .1, compiles .2, works 1, and half of 2/2 + 2/2; half of 2/3 + 2/2; behind a wrong function nothing
GATED = [2.3, 1.3 + (2 / 3 + 1) / 2, 0.3, 0.3, 0.1, 0.0, 0.0]
# added up, one gate in the place of two is worth 2, as much as a design that works, and a wire is worth as much
SUMMED = [2.3, 1.3 + (2 / 3 + 1) / 2, 2.3, 2.3, 0.1, 0.0, 0.0]


def test_what_a_design_earns_by_hand_with_gates_and_added_up():
    assert totals(*map(said, REPLIES)) == pytest.approx(GATED)
    assert totals(*map(said, REPLIES), gated=False) == pytest.approx(SUMMED)


def test_a_weight_of_zero_opens_no_gate():
    assert totals(*map(said, REPLIES), form=0.0, works=0.0) == pytest.approx([1.2, 0.2 + 5 / 6, 0.2, 0.2, 0, 0, 0])


def test_without_a_reference_there_is_no_verdict():
    assert totals(said(REPLIES[0], None), said("", "y = a")) == [None, None]


def test_the_credit_of_a_group():
    recipe, r = registry.build("chipseek_r1"), run()
    group = [said(REPLIES[i], length=n) for i, n in ((0, 2), (2, 5), (4, 1))]
    batch = collate([group], recipe.reward([group], r), torch.device("cpu"))
    rewards = np.array([2.3, 0.3, 0.1])
    expected = torch.tensor((rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4))[:, None] * batch.mask
    assert torch.allclose(recipe.credit(batch.reward, batch, r).double(), expected, atol=1e-4)


def test_a_base_s_own_reward_is_kept():
    stacked = registry.build("grpo_lambda+chipseek_r1")
    assert "length_where_solved" in str(stacked.reward)


def test_pairs_of_the_world_are_right_against_small_and_wrong():
    task = circuits(slips=0.0, test_size=1)
    problems = [task.train[i] for i in range(60)]
    chosen, rejected = (
        [v.parts for v in registry.part("reward", "verilog").check_all([(p.meta[side], p.answer) for p in problems])]
        for side in ("chosen", "rejected")
    )
    assert all(c["works"] and c["smaller"] <= 1 for c in chosen)
    assert all(r["compiles"] and not r["works"] for r in rejected)
    assert np.mean([r["smaller"] >= c["smaller"] for c, r in zip(chosen, rejected, strict=True)]) > 0.9
    assert {p.meta["fault"] for p in problems} == {"product", "gate", "wire"}
