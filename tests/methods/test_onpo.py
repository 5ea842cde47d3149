"""ONPO: rounds of self-play, in which the wins of the last round count once more."""

from __future__ import annotations

import pytest
import torch
from rows import batch_of, outcome

from rewardlab import registry
from rewardlab.core import Run, Task, ask
from rewardlab.engine.step import Ops
from rewardlab.methods.objectives.onpo import AUX, onpo, win_regression
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled

PROBLEMS = [ask(f"{i}+{i}=?", str(2 * i)) for i in range(10, 18)]


def pairs(n: int):
    return batch_of([[("rdd", {"a": outcome(1.0)}), ("rd", {"a": outcome(0.0)})]] * n)


def test_the_loss_of_a_pair_by_hand():
    said, anchor = torch.tensor([[9, -1.0, -2.0], [9, -4.0, 9]]), torch.tensor([[7, -2.0, -2.0], [7, -3.5, 7]])
    # log p/a is 1 and -1/2: a margin of 3/2, and eta/2 is 1/4
    assert win_regression(said, anchor, pairs(1), 0.5).tolist() == pytest.approx([1.25**2])


def test_its_minimum_is_the_step_of_mirror_descent():
    """Three replies of one token, all ordered pairs as often as self-play brings them and as the oracle prefers them."""
    preferred = torch.tensor([[0.5, 0.9, 0.2], [0.1, 0.5, 0.7], [0.8, 0.3, 0.5]], dtype=torch.float64)
    policy = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    base, eta = torch.tensor([0.2, 0.2, 0.6], dtype=torch.float64), 0.8
    logits = base.log().clone().requires_grad_()
    # y and y' sampled from the policy, y the better one: pi(y) pi(y') P(y > y'), twice
    weight = policy[:, None] * policy * preferred
    better, worse = (x.flatten() for x in torch.meshgrid(torch.arange(3), torch.arange(3), indexing="ij"))
    batch = batch_of([[("rd", {"a": outcome(1.0)}), ("rd", {"a": outcome(0.0)})]] * 9)

    def table(x):
        rows = torch.stack([x[better], x[worse]], 1).flatten()
        return torch.stack([torch.zeros_like(rows), rows], 1)

    optimiser = torch.optim.LBFGS([logits], line_search_fn="strong_wolfe", max_iter=200, tolerance_grad=1e-12)

    def loss():
        optimiser.zero_grad()
        losses = win_regression(table(logits.log_softmax(0)), table(base.log()), batch, eta)
        total = (losses * weight.flatten()).sum()
        total.backward()
        return total

    optimiser.step(loss)
    expected = (base.log() + eta * preferred @ policy).softmax(0)
    assert logits.detach().softmax(0).tolist() == pytest.approx(expected.tolist(), abs=1e-5)


@reward
def last_token(trajectory):
    """Something that replies of an untrained policy differ in."""
    return float(trajectory.ids[-1])


def ops_of(**settings) -> Ops:
    given = {"score": last_token(), "problems": 4, "lr": 1e-3, "epochs": 2, **settings}
    recipe = registry.build("onpo", given)
    policy = untrained(hidden=32, layers=1)
    models = {AUX: policy.copy(AUX)} if recipe.also else {}
    run = Run(policy.copy("policy"), models=models, steps=4, max_new=4, verify=registry.part("reward", "final_number"))
    return Ops(recipe, run, Task("pairs", Shuffled(PROBLEMS), PROBLEMS[:2], "final_number", max_new=4), RunConfig())


def steps_of(ops: Ops, n: int):
    for _ in range(n):
        ops.run.metrics = {}
        (ops.recipe.loop or (lambda r, run, o: o.standard_step(r)))(ops.recipe, ops.run, ops)
        ops.run.step += 1
        yield ops


def test_both_learn_from_the_same_pairs_and_the_policy_goes_on_from_the_new_base():
    begun = ops_of(lr=1e-5)
    start = {name: x.clone() for name, x in begun.run.policy.state().items()}
    for ops in steps_of(begun, 2):
        base, policy = ops.run.models[AUX].state(), ops.run.policy.state()
        assert any(not torch.equal(base[name], x) for name, x in policy.items())
        assert any(not torch.equal(base[name], x) for name, x in start.items())
        assert ops.policy.updates == ops.learners[AUX].updates == 2 * ops.run.step
        # a first update of either begins at its anchor: (0 - eta/2)^2 = 1/16, and the mean over two updates is below
        assert ops.run.metrics["loss"] < 1 / 16
        assert ops.run.metrics["lr"] == ops.run.metrics[f"{AUX}/lr"] == 1e-5
        assert {len(group) for group in ops.step_data.groups} == {2}


def test_one_update_of_either_begins_at_its_own_anchor():
    (ops,) = steps_of(ops_of(epochs=1), 1)
    assert ops.run.metrics["loss"] == pytest.approx(1 / 16, rel=1e-4)
    assert ops.run.metrics[f"{AUX}/loss"] == pytest.approx(1 / 16, rel=1e-4)


def test_without_optimism_there_is_one_model_and_its_own_anchor():
    recipe = onpo(optimistic=False, score=last_token())
    assert recipe.also == ()
    assert recipe.needs == ("policy.logprobs",)
    (ops,) = steps_of(ops_of(optimistic=False, epochs=1), 1)
    assert ops.run.metrics["loss"] == pytest.approx(1 / 16, rel=1e-4)


def test_a_reward_model_is_the_oracle_where_no_reward_is_given():
    recipe = registry.build("onpo")
    assert str(recipe.reward) == "model_score()"
    assert "taught_first()" in str(recipe.loop)
