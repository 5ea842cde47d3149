"""UniR: the reasoner learns from what both decide, and the frozen model stays as it is."""

from __future__ import annotations

import pytest
import torch

from rewardlab import registry
from rewardlab.api.inputs import begin_run
from rewardlab.core import Task, ask, measure
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.objectives.unir import check, unir
from rewardlab.models.embedded import untrained
from rewardlab.objectives.joint import joint_terms
from rewardlab.objectives.pairs import dpo_loss
from rewardlab.objectives.regularise import kl_to_reference
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Listed

PROBLEMS = [ask(f"Add {i}", str(i)) for i in range(4)]
TASK = Task("sums", Listed(PROBLEMS), PROBLEMS[:2], "final_number")


@reward
def letters(trajectory):
    return sum(c.isalpha() for c in trajectory.reply)


def begun(**settings) -> Ops:
    recipe = unir(grpo(n=4), **settings).but(reward=letters(), problems=2)
    config = RunConfig(max_new=6, steps=2, eval_problems=2).settled()
    return Ops(recipe, begin_run(recipe, untrained().copy("policy"), TASK, config), TASK, config)


def state(model) -> list[torch.Tensor]:
    return [w.clone() for w in model.state().values()]


def test_the_reasoner_alone_learns_from_joint_replies():
    ops = begun(reasoner_lr=1e-2)
    policy, reasoner = ops.run.policy, ops.run.model("reasoner")
    before = state(policy), state(reasoner)
    groups = ops.rollout(ops.problems())
    scores = ops.score(groups)
    batch = ops.collate(groups, scores)
    # the sampler's log-probs are those of the sum: on the first update the ratio is 1, and the loss minus the mean advantage
    learner = ops.learners["reasoner"]
    objective = learner.recipe.objective
    out = reasoner.evaluate(batch, objective.wants)
    loss = objective(out, batch, ops.run)
    torch.testing.assert_close(loss[batch.mask], -batch.credit[batch.mask], atol=5e-3, rtol=5e-3)
    ops.learn_due(batch, groups, scores)
    assert all(torch.equal(a, b) for a, b in zip(before[0], state(policy), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(before[1], state(reasoner), strict=True))
    assert all(p.grad is None for p in policy.parameters())


def test_the_ratio_is_1_in_low_precision():
    ops = begun()
    run, model = ops.run, ops.run.model("reasoner")
    groups = ops.rollout(ops.problems())
    batch = ops.collate(groups, ops.score(groups))
    objective = ops.learners["reasoner"].recipe.objective
    out = model.evaluate(batch, objective.wants)
    # a sampler that rounds: log-probs that are off by a tenth
    batch.old += 0.1
    assert (objective(out, batch, run)[batch.mask] + batch.credit[batch.mask]).abs().max() > 0.05
    model.dtype = torch.bfloat16
    torch.testing.assert_close(objective(out, batch, run)[batch.mask], -batch.credit[batch.mask])
    # what other weights have sampled keeps what they recorded
    run.step += 1
    assert (objective(out, batch, run)[batch.mask] + batch.credit[batch.mask]).abs().max() > 0.05
    # several updates on a batch compare with what was sampled
    assert not unir(grpo(n=4).but(minibatches=2)).also[0].recipe.objective.settings["once"]


def test_at_a_temperature_the_sum_is_divided_by_it():
    recipe = unir(grpo(n=4, temperature=0.5)).but(reward=letters(), problems=2)
    config = RunConfig(max_new=6, steps=2, eval_problems=2).settled()
    ops = Ops(recipe, begin_run(recipe, untrained().copy("policy"), TASK, config), TASK, config)
    groups = ops.rollout(ops.problems())
    batch, learner = ops.collate(groups, ops.score(groups)), ops.learners["reasoner"]
    with ops.as_sampled(learner):
        out = learner.model.evaluate(batch, learner.recipe.objective.wants)
        loss = learner.recipe.objective(out, batch, ops.run)
    torch.testing.assert_close(loss[batch.mask], -batch.credit[batch.mask], atol=5e-3, rtol=5e-3)


def test_whole_steps_run_and_what_is_measured_is_measured_together():
    ops = begun()
    standard_loop(ops.recipe, ops.run, ops)
    assert ops.run.metrics["reasoner/grad_norm"] > 0
    seen = []
    extend = type(ops.run.policy).extend

    def noted(self, *args):
        seen.append([other.name for _, other in self._joined])
        return extend(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(ops.run.policy), "extend", noted)
        ops.evaluate()
    assert seen == [["reasoner"]]


def test_further_reasoners_and_another_model_are_used_in_measurements_alone():
    recipe = unir(further=("a", "b"), other="c", weight=0.5)
    assert [(x.name, x.init, x.every) for x in recipe.also] == [
        ("reasoner", "copy:policy", 1), ("reasoner_2", "a", 0), ("reasoner_3", "b", 0), ("other", "c", 0),
    ]  # fmt: skip
    assert recipe.measure.settings == {
        "inner": accuracy(),
        "by": ("reasoner", "reasoner_2", "reasoner_3"),
        "weight": 0.5,
        "on": "other",
        "weights": (),
        "candidates": 20,
        "alone": False,
    }
    assert recipe.rollout.settings["by"] == ("reasoner",)


def test_the_steered_model_is_measured_alone_too_where_that_is_asked():
    @measure
    def who(problems, run):
        return {"models": 1.0 + len(run.policy._joined)}

    recipe = unir(grpo().but(measure=who()), alone=True)
    assert recipe.measure(TASK.test, begun().run) == {"models": 2.0, "alone.models": 1.0}


def test_each_term_of_the_base_reads_joint_log_probs():
    base = grpo(beta=0.1)
    objective = unir(base).also[0].recipe.objective
    assert objective == joint_terms(base.objective, "reasoner", 1.0, once=True)
    assert [scale for scale, _ in objective.terms()] == [1.0, 0.1]
    assert objective.leaves()[1].settings["inner"] == kl_to_reference()
    with pytest.raises(RewardlabError, match="an objective of tokens"):
        unir(grpo().but(objective=dpo_loss()))


def test_the_claim_measures_another_model():
    assert check.settings["other"]
    assert registry.build("unir", check.settings).objective is None
