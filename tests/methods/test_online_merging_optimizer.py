"""Online merging: what each step changes is merged with what fine-tuning had changed."""

from __future__ import annotations

import pytest
import torch

from rewardlab import registry
from rewardlab.api.inputs import begin_run
from rewardlab.core import Task, ask
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.objectives.online_merging_optimizer import TAU, check, online_merging_optimizer
from rewardlab.models.embedded import untrained
from rewardlab.policies.merging import largest_share, of_one_sign
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Listed

PAIRS = [ask(f"Add {i}", str(i), chosen=f"{i} is {i}", rejected=f"no {i}") for i in range(6)]
TASK = Task("pairs", Listed(PAIRS), PAIRS[:2], "final_number")


def begun(recipe) -> Ops:
    recipe = recipe.but(lr=1e-3, problems=2)
    config = RunConfig(max_new=6, steps=4, eval_problems=2).settled()
    return Ops(recipe, begin_run(recipe, untrained().copy("policy"), TASK, config), TASK, config)


def step(ops: Ops) -> dict[str, torch.Tensor]:
    ops.recipe.loop(ops.recipe, ops.run, ops) if ops.recipe.loop else ops.standard_step(ops.recipe)
    ops.run.step += 1
    return {name: w.clone() for name, w in ops.run.policy.state().items()}


def flat(weights) -> torch.Tensor:
    return torch.cat([w.flatten() for w in weights.values()])


def merged(**settings) -> Ops:
    return begun(online_merging_optimizer(sft_steps=1, **settings))


def test_fine_tuning_is_not_merged_and_its_change_is_remembered():
    ops, plain = merged(density=1.0, alpha=0.25), begun(dpo(sft_steps=1))
    start = flat(ops.run.policy.state()).clone()
    tuned, same = step(ops), step(plain)
    assert torch.equal(flat(tuned), flat(same))
    assert TAU not in ops.run.memory
    after, alone = step(ops), step(plain)
    tau = flat(tuned) - start
    torch.testing.assert_close(flat(ops.run.memory[TAU]), tau)
    # density = 1: three quarters of Adam's step, and a quarter of the change by fine-tuning
    torch.testing.assert_close(flat(after) - flat(tuned), 0.75 * (flat(alone) - flat(tuned)) + 0.25 * tau, atol=1e-6, rtol=1e-3)
    # tau stays what it was
    step(ops)
    torch.testing.assert_close(flat(ops.run.memory[TAU]), tau)


def test_a_third_of_the_run_fine_tunes_unless_it_is_said_otherwise():
    ops = begun(online_merging_optimizer(density=1.0, alpha=0.25))
    merged_steps = []
    for _ in range(4):
        ops.run.metrics = {}
        step(ops)
        merged_steps.append("merged" in ops.run.metrics)
    # one of 4 steps, rounded down; the loss of the first is that of imitation
    assert merged_steps == [False, True, True, True]
    ops.run.budget = 10**6
    with pytest.raises(RewardlabError, match="nobody knows a share of its steps: give sft_steps"):
        step(ops)


def test_ties_keeps_the_largest_changes_of_one_sign():
    ops, plain = merged(how="ties", density=0.5, alpha=0.25), begun(dpo(sft_steps=1))
    start = {name: w.clone() for name, w in ops.run.policy.state().items()}
    tuned, _ = step(ops), step(plain)
    after, alone = step(ops), step(plain)
    tau = largest_share({name: w - start[name] for name, w in tuned.items()}, 0.5)
    wanted = of_one_sign(largest_share({name: w - tuned[name] for name, w in alone.items()}, 0.5), tau, 0.25)
    torch.testing.assert_close(flat(after) - flat(tuned), flat(wanted), atol=1e-6, rtol=1e-3)


def test_dare_changes_a_share_of_the_weights_alone_and_as_much_on_average():
    ops, plain = merged(density=0.25, alpha=0.0), begun(dpo(sft_steps=1))
    tuned, _ = step(ops), step(plain)
    made, whole = flat(step(ops)) - flat(tuned), flat(step(plain)) - flat(tuned)
    assert float((made != 0).float().mean() / (whole != 0).float().mean()) == pytest.approx(0.25, abs=0.02)
    kept = made.abs() > 1e-4
    torch.testing.assert_close(made[kept], 4 * whole[kept], atol=1e-5, rtol=1e-2)
    assert ops.run.metrics["merged"] == pytest.approx(2.0, abs=0.2)


def test_a_pretrained_checkpoint_takes_the_place_of_fine_tuning_steps(tmp_path):
    pretrained = untrained()
    with torch.no_grad():
        for w in pretrained.parameters():
            w -= 0.5
    pretrained.save(tmp_path)
    ops = begun(online_merging_optimizer(pretrained=str(tmp_path), density=1.0, alpha=0.1))
    step(ops)
    assert float(flat(ops.run.memory[TAU]).min()) == pytest.approx(0.5, abs=1e-5)


def test_it_stands_on_any_way_to_learn_from_pairs():
    recipe = registry.build("kto+online_merging_optimizer", {"online_merging_optimizer.sft_steps": 3})
    assert recipe.objective == registry.build("kto").objective
    assert check.settings["sft_steps"] == check.versus_settings["sft_steps"]
