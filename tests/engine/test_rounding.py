"""In a rounded format `old` is what the model says as it trains: an on-policy ratio is 1, whatever drawing had rounded."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from rewardlab import registry
from rewardlab.core import Batch, Outputs, Run, objective
from rewardlab.engine.step import Ops, Settings, standard_loop
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward

RATIOS: list[Tensor] = []


@objective(unit="token", needs=("old",))
def watched(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """The policy gradient by its ratio, which is kept."""
    ratio = (out.logprobs - batch.old).exp()
    RATIOS.append(ratio.detach()[batch.mask])
    return -ratio * batch.credit


@reward
def first_letter(trajectory) -> float:
    return ord(trajectory.reply[0]) % 7 if trajectory.reply else 0.0


def ops_of(dtype: torch.dtype, **update) -> Ops:
    policy = untrained()
    policy.dtype = dtype
    with torch.no_grad():
        policy.model.embed.mul_(2)  # logits of some size, as those of a trained model, so that rounding shows
    recipe = registry.build("grpo", {"n": 4}).but(objective=watched(), reward=first_letter(), problems=4, **{"lr": 1e-3, **update})
    task = registry.task("arithmetic")
    run = Run(policy, steps=3, max_new=12, verify=registry.part("reward", task.verifier))
    RATIOS.clear()
    return Ops(recipe, run, task, Settings())


def step(ops: Ops) -> Batch:
    standard_loop(ops.recipe, ops.run, ops)
    ops.run.step += 1
    assert ops.latest is not None
    return ops.latest[2]


def test_one_optimiser_step_takes_old_from_its_own_pass():
    ops = ops_of(torch.bfloat16)
    batch = step(ops)
    assert all(bool((r == 1).all()) for r in RATIOS)
    assert ops.run.metrics["ratio_far"] == 0
    assert 0 <= ops.run.metrics["drawn_far"] < 0.5
    drawn = torch.cat([torch.from_numpy(t.column("logprobs"))[torch.from_numpy(t.mask)] for t, _ in batch.rows])
    assert torch.equal(batch.old[batch.mask], drawn)  # the record of what was drawn stays


def test_several_optimiser_steps_take_a_pass_beforehand():
    ops = ops_of(torch.bfloat16, minibatches=2, lr=1e-2)
    batch = step(ops)
    assert ops.run.policy.spent.scored == int(batch.length.sum())  # the pass is on nobody's budget
    first, second = RATIOS
    torch.testing.assert_close(first, torch.ones_like(first), atol=1e-3, rtol=0)
    assert bool((second - 1).abs().max() > 0.01)  # what the first step moved shows


def test_float32_keeps_what_was_drawn_with():
    ops = ops_of(torch.float32)
    batch = step(ops)
    assert "drawn_far" not in ops.run.metrics
    torch.testing.assert_close(RATIOS[0], torch.ones_like(RATIOS[0]), atol=1e-4, rtol=0)
    assert len(batch.rows) == 16


@pytest.mark.parametrize("why", ["older rows", "moved weights"])
def test_what_other_weights_wrote_keeps_its_record(why):
    ops = ops_of(torch.bfloat16, lr=1e-2)
    groups = ops.rollout(ops.problems())
    if why == "older rows":
        groups = [[replace(t, turns=tuple(replace(x, step=-1) for x in t.turns)) for t in group] for group in groups]
    batch = ops.collate(groups, ops.score(groups))
    if why == "moved weights":
        ops.update(batch)
        RATIOS.clear()
    ops.update(batch)
    assert not all(bool((r == 1).all()) for r in RATIOS)
