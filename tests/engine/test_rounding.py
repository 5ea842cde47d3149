"""In low precision `old` is the trainer's own log-prob: an on-policy ratio is exactly 1, however the sampler had rounded."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from rewardlab import registry
from rewardlab.core import Batch, Outputs, Run, objective
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig

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
    return Ops(recipe, run, task, RunConfig())


def step(ops: Ops) -> Batch:
    standard_loop(ops.recipe, ops.run, ops)
    ops.run.step += 1
    assert ops.step_data is not None
    return ops.step_data.batch


def test_one_optimiser_step_takes_old_from_its_own_pass():
    ops = ops_of(torch.bfloat16)
    batch = step(ops)
    assert all(bool((r == 1).all()) for r in RATIOS)
    assert ops.run.metrics["ratio_far"] == 0
    assert 0 <= ops.run.metrics["mismatch_far"] < 0.5
    recorded = torch.cat([torch.from_numpy(t.column("logprobs"))[torch.from_numpy(t.mask)] for t, _ in batch.rows])
    assert torch.equal(batch.old[batch.mask], recorded)  # the log keeps what the sampler recorded


def test_several_optimiser_steps_take_a_pass_beforehand():
    ops = ops_of(torch.bfloat16, minibatches=2, lr=1e-2)
    batch = step(ops)
    assert ops.run.policy.token_count.scored == int(batch.length.sum())  # the pass counts towards no budget
    first, second = RATIOS
    torch.testing.assert_close(first, torch.ones_like(first), atol=1e-3, rtol=0)
    assert bool((second - 1).abs().max() > 0.01)  # what the first step moved shows


def test_float32_keeps_the_log_probs_of_the_sampler():
    ops = ops_of(torch.float32)
    batch = step(ops)
    assert "mismatch_far" not in ops.run.metrics
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
