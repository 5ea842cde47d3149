"""VAS: the value model learns from what the frozen policy samples, and tilts what it samples where it is measured."""

from __future__ import annotations

import pytest
import torch

from rewardlab import api, registry
from rewardlab.api.inputs import begin_run
from rewardlab.core import Outputs, Task, ask
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import RewardlabError
from rewardlab.methods.search.value_augmented_sampling import value_augmented_sampling, whole_text_error
from rewardlab.models.embedded import untrained
from rewardlab.models.load import load_policy
from rewardlab.objectives.regularise import value_error
from rewardlab.rewards.length import length_penalty
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Listed
from tests.helpers.rows import batch_of, outcome

PROBLEMS = [ask(f"Add {i}", str(i)) for i in range(4)]
TASK = Task("sums", Listed(PROBLEMS), PROBLEMS[:2], "final_number")


@reward
def letters(trajectory):
    """A share that an untrained policy's replies differ in."""
    return sum(c.isalpha() for c in trajectory.reply) / max(1, len(trajectory.reply))


def begun(**settings) -> Ops:
    recipe = value_augmented_sampling(**settings).but(reward=letters(), problems=4)
    config = RunConfig(max_new=8, steps=2, eval_problems=2).settled()
    return Ops(recipe, begin_run(recipe, untrained().copy("policy"), TASK, config), TASK, config)


def test_the_value_of_each_beginning_learns_the_lambda_return_and_that_of_the_end_the_reward():
    # one row of a prompt and two decisions, reward 1; values before the update: .2 before the first decision, .6 before the second
    batch = batch_of([[("rdd", {"r": outcome(1.0)})]], {"value": [[0.2, 0.6, 0.9]]})
    recipe = value_augmented_sampling(lam=0.5).also[0].recipe
    run = None
    batch.credit = recipe.credit(batch.reward, batch, run)
    # by hand: the second decision's return is 1; the first's .2 + (.6 - .2) + .5 (1 - .6) = .8
    torch.testing.assert_close(batch.credit, torch.tensor([[0.0, 0.8, 1.0]]))
    out = Outputs(value=torch.tensor([[0.1, 0.5, 0.7]]))
    # (.1 - .8)^2 / 2, (.5 - 1)^2 / 2; and the whole text's (.7 - 1)^2 / 2 at the last decision
    torch.testing.assert_close(value_error(clip=None)(out, batch, run)[batch.mask], torch.tensor([0.245, 0.125]))
    torch.testing.assert_close(whole_text_error()(out, batch, run)[batch.mask], torch.tensor([0.0, 0.045]))
    assert recipe.objective == value_error(clip=None) + whole_text_error()


def test_a_reply_without_a_verdict_teaches_nothing_at_its_end():
    batch = batch_of([[("rdd", {"r": outcome(None)})]])
    assert not whole_text_error()(Outputs(value=torch.ones(1, 3)), batch, None).any()


@pytest.mark.slow
def test_values_alone_learn_and_then_raise_the_reward_of_what_is_sampled():
    ops = begun(n=8, value_lr=1e-2, value_epochs=4, beta=30.0, temperature=1.0)
    policy = [w.clone() for w in ops.run.policy.state().values()]
    plain = mean(ops)
    for ops.run.step in range(6):
        standard_loop(ops.recipe, ops.run, ops)
    assert all(torch.equal(a, b) for a, b in zip(policy, ops.run.policy.state().values(), strict=True))
    assert not ops.run.policy._joined
    with ops.run.policy.joined([(30.0, ops.run.model("critic"))]):
        assert mean(ops) > plain + 0.02


def mean(ops) -> float:
    ops.run.step = 0
    groups = ops.recipe.rollout(PROBLEMS * 4, ops.run.detached())
    return float(torch.tensor([s.total for row in letters()(groups, ops.run) for s in row]).mean())


def test_value_models_answer_together_each_by_its_weight():
    recipe = registry.build("value_augmented_sampling", {"values": ("a", "b"), "betas": (1.0, -0.5), "beta": 2.0})
    assert [(x.name, x.init, x.every) for x in recipe.also] == [("critic_0", "a", 0), ("critic_1", "b", 0)]
    assert {k: recipe.rollout.settings[k] for k in ("by", "weight", "weights", "candidates")} == {
        "by": ("critic_0", "critic_1"), "weight": 2.0, "weights": (1.0, -0.5), "candidates": 20,
    }  # fmt: skip
    assert recipe.select is not None
    assert not recipe.learns


@pytest.mark.slow
def test_what_training_has_learnt_is_exported_and_answers(tmp_path):
    recipe = value_augmented_sampling(n=2).but(reward=length_penalty(), problems=2)
    trained = api.train(recipe, "untrained", "arithmetic", steps=1, out=tmp_path / "run", max_new=8, eval_problems=2)
    found = api.export(trained, tmp_path / "value", model="critic")
    assert found["which"] == "critic"
    model = load_policy(str(tmp_path / "value"), "cpu")
    assert model.has_value_head
    # a head of zeros has learnt
    assert model.model.value_head.any()
    asked = {"model": "untrained", "task": "arithmetic", "problems": 2, "max_new": 8}
    answered = api.answer(value_augmented_sampling(values=(str(tmp_path / "value"),), n=2), **asked)
    assert answered["n"] == 2
    with pytest.raises(RewardlabError, match="trained model of this run"):
        api.export(trained, tmp_path / "other", model="teacher")
    with pytest.raises(RewardlabError, match="not empty"):
        api.export(trained, tmp_path / "value", model="critic")


def test_the_check_measures_what_it_sets():
    check = registry.module_of("value_augmented_sampling").check
    assert check.by.settings["weight"] == pytest.approx(check.settings["beta"])
