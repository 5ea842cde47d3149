"""TGDPO: DPO whose beta of a token depends on what a model that DPO trained before says of it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from rows import batch_of

from rewardlab import registry
from rewardlab.core import Outputs, Run, Task, ask
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.sft import other_first
from rewardlab.methods.objectives.tgdpo import tgdpo
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.objectives.pairs import dpo_loss
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled

NAN = math.nan
COLUMNS = {
    "ref": [[NAN, -1.0, -1.0], [NAN, -2.0], [NAN, -1.0], [NAN, -1.0, -1.0]],
    # log guide/ref: 2 and -1; -3;   0; 1 and 1
    "guide.logprobs": [[NAN, 1.0, -2.0], [NAN, -5.0], [NAN, -1.0], [NAN, 0.0, 0.0]],
}
# log pi/ref: 1 and 2; -4;   -2; 1 and 3
POLICY = torch.tensor([[NAN, 0.0, 1.0], [NAN, -6.0, 0.0], [NAN, -3.0, 0.0], [NAN, 0.0, 2.0]])


def guided(**settings):
    batch, run = batch_of([[("rdd", {}), ("rd", {})], [("rd", {}), ("rdd", {})]], COLUMNS), Run(policy=None)
    recipe = registry.build("tgdpo", settings)
    batch.credit = recipe.credit(batch.reward, batch, run)
    return recipe, batch, run


def softplus(x: float) -> float:
    return math.log(1 + math.exp(x))


def test_tokens_that_the_guide_likes_count_for_more_in_the_preferred_reply_and_for_less_in_the_other():
    recipe, batch, run = guided(alpha=0.5, beta=0.2)
    # alpha r = .1 log guide/ref
    assert batch.credit[0, 1:].tolist() == pytest.approx([1.2, 0.9])
    assert batch.credit[1, 1].item() == pytest.approx(1.3)
    assert batch.credit[2, 1].item() == pytest.approx(1.0)
    assert batch.credit[3, 1:].tolist() == pytest.approx([0.9, 0.9])
    loss = recipe.objective(Outputs(logprobs=POLICY), batch, run)
    # .2 (1.2 * 1 + .9 * 2 - 1.3 * -4) = 1.64;   .2 (-2 - .9 * 1 - .9 * 3) = -1.12
    assert loss.tolist() == pytest.approx([softplus(-1.64), softplus(1.12)])
    # sums of r: 1 above -3, and 0 below 2
    assert run.metrics["guide_accuracy"] == 0.5


def test_without_alpha_it_is_dpo():
    recipe, batch, run = guided(alpha=0.0)
    assert recipe.objective(Outputs(logprobs=POLICY), batch, run).tolist() == pytest.approx(
        dpo_loss()(Outputs(logprobs=POLICY), batch, run).tolist()
    )


PROBLEMS = [ask(f"{i}+{i}=?", str(2 * i), chosen=f"{i}7", rejected=f"{i}3") for i in range(10, 18)]


def begun(**settings) -> Ops:
    recipe = registry.build("tgdpo", {"problems": 4, "lr": 1e-3, "pairs": 8, "passes": 5} | settings)
    run = Run(untrained().copy("policy"), steps=4, max_new=4, verify=registry.part("reward", "final_number"))
    run.reference = run.policy.copy("reference")
    run.models = {learner.name: learner_model(learner, run.policy) for learner in recipe.also}
    return Ops(recipe, run, Task("pairs", Shuffled(PROBLEMS), PROBLEMS[:2], "final_number", max_new=4), RunConfig())


def states(model):
    return {name: x.clone() for name, x in model.state().items()}


def same(a, b) -> bool:
    return all(torch.equal(x, b[name]) for name, x in a.items())


def test_the_guide_is_trained_first_and_the_policy_begins_where_it_did():
    ops = begun()
    run, start = ops.run, states(ops.run.policy)
    ops.recipe.loop(ops.recipe, run, ops)
    assert run.metrics["guide_accuracy"] == 1.0
    # policy and reference agree in the first step: every pair costs log 2, whatever its weights
    assert run.metrics["loss"] == pytest.approx(math.log(2), abs=1e-5)
    taught = states(run.models["guide"])
    assert not same(taught, start)
    assert same(start, states(run.reference))
    run.step += 1
    ops.recipe.loop(ops.recipe, run, ops)
    assert same(taught, states(run.models["guide"]))
    assert not same(start, states(run.policy))


def test_the_guide_learns_from_the_pairs_of_the_whole_run():
    ops, asked = begun(pairs=None, passes=1), []
    ops.task = replace(ops.task, train=Noted(ops.task.train, asked))
    ops.recipe.loop(ops.recipe, ops.run, ops)
    # four steps of four pairs teach the guide; then the policy takes its first four
    assert asked == [*range(16), *range(4)]


class Noted:
    def __init__(self, source, asked):
        self.source, self.asked = source, asked

    def __getitem__(self, i):
        self.asked.append(i)
        return self.source[i]


def test_a_guide_that_was_trained_before_is_taken_as_it_is(tmp_path):
    untrained(seed=3).save(tmp_path)
    recipe = registry.build("tgdpo", {"reward_model": str(tmp_path)})
    assert recipe.loop is None
    assert recipe.also[0].recipe.objective is None
    assert same(states(learner_model(recipe.also[0], untrained())), states(untrained(seed=3)))


def test_the_loss_below_trains_the_guide_and_is_weighed():
    recipe = registry.build("simpo+tgdpo")
    assert str(recipe.objective) == "credit_weighted(inner=simpo_loss())"
    assert str(recipe.also[0].recipe.objective) == "simpo_loss()"
    assert recipe.loop == other_first(model="guide")
    with pytest.raises(RewardlabError, match="loop sft_first"):
        registry.build("dpo+tgdpo", {"sft_steps": 4})
    with pytest.raises(RewardlabError, match="by credit"):
        registry.build("mappo+tgdpo")
    with pytest.raises(RewardlabError, match="objective on pairs"):
        tgdpo(registry.build("sft"))
