"""A policy gradient at a sampling temperature is that of the distribution that was sampled from."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from rewardlab import registry
from rewardlab.core import Batch, Outputs, Run, objective
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.models.embedded import untrained
from rewardlab.objectives.regularise import kl_to_reference
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent
from rewardlab.runs.config import RunConfig
from rewardlab.util.outputs import forward_batch
from rewardlab.util.tempered import tempered

SEEN: list[dict[str, Tensor]] = []


@objective(unit="token", wants=("logprobs", "entropy"), needs=("old",))
def watched(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """The policy gradient by its ratio, which is kept."""
    ratio = (out.logprobs - batch.old).exp()
    tables = {"ratio": ratio, "logprobs": out.logprobs, "entropy": out.entropy}
    SEEN.append({name: x.detach()[batch.mask] for name, x in tables.items()})
    return -ratio * batch.credit


@reward
def first_letter(trajectory) -> float:
    return ord(trajectory.reply[0]) % 7 if trajectory.reply else 0.0


def ops_of(recipe, **update) -> Ops:
    policy = untrained()
    with torch.no_grad():
        policy.model.embed.mul_(2)  # logits of some size, as those of a trained model
    task = registry.task("arithmetic")
    run = Run(policy, steps=3, max_new=12, verify=registry.part("reward", task.verifier))
    if any(need == "ref" for need in recipe.needs):
        run.reference = policy.copy("reference")
    SEEN.clear()
    return Ops(recipe.but(reward=first_letter(), problems=4, **{"lr": 1e-3, **update}), run, task, RunConfig())


def step(ops: Ops) -> Batch:
    standard_loop(ops.recipe, ops.run, ops)
    ops.run.step += 1
    assert ops.step_data is not None
    return ops.step_data.batch


def recorded(batch: Batch, column: str) -> Tensor:
    return torch.cat([torch.from_numpy(t.column(column))[torch.from_numpy(t.mask)] for t, _ in batch.rows])


@pytest.mark.parametrize("sampling", [{"temperature": 0.6}, {"temperature": 1.8}, {"temperature": 0.8, "top_p": 0.9}])
def test_the_ratio_is_1_before_the_first_update(sampling):
    ops = ops_of(registry.build("grpo").but(rollout=independent(n=4, **sampling), objective=watched()))
    batch = step(ops)
    (seen,) = SEEN
    assert torch.allclose(seen["ratio"], torch.ones_like(seen["ratio"]))
    if "top_p" not in sampling:
        # what the sampler recorded of the distribution that it sampled from, and not of the raw policy
        assert torch.allclose(seen["logprobs"], recorded(batch, "sampled"), atol=1e-4)
    assert not torch.allclose(seen["logprobs"], recorded(batch, "logprobs"), atol=1e-2)
    assert ops.policy.model.temperature == 1.0


def test_old_is_fixed_before_the_first_of_several_updates():
    ops = ops_of(registry.build("grpo", {"n": 4, "temperature": 1.5}).but(objective=watched()), epochs=2, warmup=0, lr=0.01)
    step(ops)
    first, second = SEEN
    assert torch.allclose(first["ratio"], torch.ones_like(first["ratio"]))
    assert not torch.allclose(second["ratio"], torch.ones_like(second["ratio"]), atol=1e-3)


def test_the_reference_is_compared_at_the_same_temperature():
    recipe = registry.build("grpo", {"n": 4, "temperature": 0.6}).but(objective=watched() + 0.1 * kl_to_reference())
    batch = step(ops_of(recipe))
    assert torch.allclose(batch.ref[batch.mask], SEEN[0]["logprobs"], atol=1e-5)


def test_no_temperature_without_advantages_and_none_of_greedy_replies():
    for method, settings in (("rejection_sampling", {"temperature": 0.6}), ("grpo", {"temperature": 0.0}), ("grpo", {})):
        ops = ops_of(registry.build(method, {"n": 4, **settings}))
        wanted = 1.0 if ops.recipe.credit is None or not settings.get("temperature") else 0.6
        assert ops.policy.temperature == wanted


def test_the_gradient_vanishes_where_all_is_worth_the_same():
    """Of what is sampled from softmax(logits / T) the mean gradient of its own log-prob is 0; of the raw policy's it is not."""
    logits = torch.tensor([2.0, 0.0, -1.0], dtype=torch.float64, requires_grad=True)
    sampled = (logits.detach() / 0.5).softmax(0)
    for temperature, vanishes in ((0.5, True), (1.0, False)):
        mean = (sampled * (logits / temperature).log_softmax(0)).sum()
        (gradient,) = torch.autograd.grad(mean, logits)
        assert bool((gradient.abs() < 1e-12).all()) == vanishes


@pytest.mark.parametrize("kind", ["llama", "hf"])
def test_what_a_policy_evaluates_is_of_the_divided_logits(kind, tmp_path):
    policy = untrained()
    with torch.no_grad():
        policy.model.embed.mul_(2)
    if kind == "hf":
        policy.save(tmp_path)
        policy = HFPolicy.load(str(tmp_path), "cpu", "float32")
    ops = ops_of(registry.build("grpo", {"n": 2}))
    rows = [t for group in ops.rollout(ops.problems(2)) for t in group]
    batch = forward_batch(rows, policy.device)

    def entropy_of(logits, ids):
        return {"own": torch.distributions.Categorical(logits=logits).entropy()}

    raw = policy.score(rows)
    with tempered(0.7, policy, None):
        out = policy.evaluate(batch, ("logprobs", "entropy"), (entropy_of,))
        for before, now in zip(raw, policy.score(rows), strict=True):
            np.testing.assert_array_equal(before, now)
    assert torch.allclose(out.extra["own"], out.entropy, atol=1e-4)
    head, hidden = policy.vocabulary_head(), policy.evaluate(batch, ("hidden",)).hidden
    logits = hidden[..., : head.shape[1]] @ head.T.float() / 0.7
    wanted = logits.log_softmax(-1)[:, :-1].gather(2, batch.ids[:, 1:, None]).squeeze(2)
    where = batch.mask[:, 1:]
    assert torch.allclose(out.logprobs[:, 1:][where], wanted[where], atol=1e-4)
