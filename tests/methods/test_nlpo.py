"""NLPO: PPO on the tokens that an older copy of the policy finds likely enough."""

from __future__ import annotations

import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run
from rewardlab.engine.collate import micro_batches
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.objectives.nlpo import MASK, clipped_ratio_in_nucleus, nlpo
from rewardlab.models.embedded import untrained
from rewardlab.objectives.ratio import clipped_ratio
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent
from rewardlab.runs.config import RunConfig


@reward
def ends_odd(trajectory):
    return float(trajectory.ids[-1] % 2)


def ops_of(method: str = "nlpo", **settings) -> Ops:
    recipe = registry.build(method, {"problems": 6, "lr": 1e-2, **settings})
    recipe = recipe.but(reward=ends_odd().named("correct"))
    policy = untrained(hidden=32, layers=1)
    models = {"critic": policy.copy("critic", value_head=True), MASK: untrained(1, hidden=32, layers=1).copy(MASK)}
    run = Run(policy, policy.copy("reference"), models, max_new=4, seed=1, verify=ends_odd())
    run.models = {name: run.models[name] for name in (x.name for x in recipe.also)}
    return Ops(recipe, run, registry.task("arithmetic", test_size=2), RunConfig(steps=9))


def collated(ops: Ops):
    groups = ops.rollout(ops.problems())
    return ops.collate(groups, ops.score(groups))


def losses(objective, batch, run):
    return objective(run.policy.evaluate(batch, objective.wants), batch, run)


def test_the_ratio_begins_at_1_and_moves_with_the_restricted_policy():
    ops = ops_of(top_p=0.6)
    batch, run = collated(ops), ops.run
    loss = losses(clipped_ratio_in_nucleus(top_p=0.6), batch, run)
    assert torch.allclose(loss[batch.mask], -batch.credit[batch.mask], atol=1e-4)
    # raw log-probs are lower than those of the restricted policy wherever the nucleus is not everything
    sampled = torch.cat([torch.from_numpy(t.column("sampled")[t.mask]) for t, _ in batch.rows])
    assert (sampled > batch.old[batch.mask] + 1e-3).any()
    with torch.no_grad():
        run.policy.vocabulary_head().mul_(1.5)
    assert not torch.allclose(losses(clipped_ratio_in_nucleus(top_p=0.6), batch, run)[batch.mask], -batch.credit[batch.mask])


def test_a_micro_batch_has_the_losses_of_the_whole():
    ops = ops_of(top_p=0.6)
    batch = collated(ops)
    whole = losses(clipped_ratio_in_nucleus(top_p=0.6), batch, ops.run)
    for rows in micro_batches(batch, int(batch.length.max()), "row"):
        part = batch[rows]
        found = losses(clipped_ratio_in_nucleus(top_p=0.6), part, ops.run)
        assert torch.allclose(found[part.mask], whole[rows][:, : part.width][part.mask], atol=1e-5)


def test_with_all_of_the_probability_a_step_is_ppos():
    ours, ppos = ops_of(top_p=1.0, epochs=2), ops_of("ppo", epochs=2)
    batch, theirs = collated(ours), collated(ppos)
    assert torch.equal(batch.ids, theirs.ids)
    assert torch.allclose(batch.credit, theirs.credit, atol=1e-5)
    loss = losses(clipped_ratio_in_nucleus(top_p=1.0), batch, ours.run)
    assert torch.allclose(loss[batch.mask], losses(clipped_ratio(), theirs, ppos.run)[batch.mask], atol=1e-4)
    ours.update(batch)
    ppos.update(theirs)
    gaps = [(a - b).abs().max() for a, b in zip(ours.run.policy.parameters(), ppos.run.policy.parameters(), strict=True)]
    assert max(gaps) < 1e-3  # steps of Adam at 1e-2


def test_what_the_base_samples_by_stays():
    recipe = registry.build("ppo+nlpo", {"temperature": 0.6})
    assert str(recipe.rollout) == "restricted_vocabulary(model='mask', temperature=0.6)"
    recipe = registry.build("dapo+nlpo", {"n": 3})
    assert recipe.rollout.name == "solved_between"
    assert recipe.rollout.innermost.name == "restricted_vocabulary"
    assert recipe.rows_per_problem == 3
    with pytest.raises(RewardlabError, match=r"from its own \(top_p=0.9\)"):
        nlpo(registry.build("grpo").but(rollout=independent(n=2, top_p=0.9)))


def test_at_a_temperature_the_ratio_begins_at_1_too():
    ops = ops_of("ppo+nlpo", temperature=0.5, top_p=0.6)
    batch, run = collated(ops), ops.run
    with ops.as_sampled(ops.policy):
        loss = losses(clipped_ratio_in_nucleus(top_p=0.6), batch, run)
    assert torch.allclose(loss[batch.mask], -batch.credit[batch.mask], atol=1e-4)


def test_the_mask_follows_every_so_many_steps():
    ops, followed = ops_of(mu=2, epochs=1), []
    for _ in range(4):
        ops.run.metrics = {}
        before = {name: x.clone() for name, x in ops.run.policy.state().items()}
        ops.recipe.loop(ops.recipe, ops.run, ops)
        ops.run.step += 1
        mask = ops.run.model(MASK).state()
        followed.append(all(torch.equal(x, mask[name]) for name, x in before.items()))
    assert followed == [True, False, True, False]


def test_what_else_the_objective_has_stays_and_one_without_a_ratio_is_refused():
    grpo = registry.build("grpo", {"beta": 0.1, "eps": 0.3})
    recipe = nlpo(grpo, top_p=0.8)
    assert str(recipe.objective) == "clipped_ratio_in_nucleus(top_p=0.8, eps=0.3) + 0.1 * kl_to_reference()"
    assert recipe.rows_per_problem == grpo.rows_per_problem
    with pytest.raises(RewardlabError, match="has none"):
        nlpo(registry.build("sft"))
