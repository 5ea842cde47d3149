"""OPRL: turns are worth what a model of the group's preferences implies."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from rows import batch_of, outcome

from rewardlab import registry
from rewardlab.core import Outputs, Run
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.process.oprl_implicit_step import oprl_implicit_step
from rewardlab.models.embedded import untrained
from rewardlab.objectives.pairs import group_preferences
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x))


def test_the_loss_over_all_pairs_of_a_group():
    # old log-probs of the rows are 0; the sums of the model's: 2, -1, 4, and 7 without a verdict
    first = [
        ("rdd", {"correct": outcome(1.0)}), ("rd", {"correct": outcome(0.0)}), ("rdrd", {"correct": outcome(0.0)}),
        ("rd", {"correct": outcome(None)}),
    ]  # fmt: skip
    same = [("rd", {"correct": outcome(1.0)}), ("rd", {"correct": outcome(1.0)})]
    batch = batch_of([first, same], {"policy.logprobs": [[0.0]] * 6})
    logprobs = torch.tensor([[9.0, 1, 1, 9], [9, -1, 9, 9], [9, 3, 9, 1], [9, 7, 9, 9], [9, 1, 9, 9], [9, 5, 9, 9]])
    loss = group_preferences(beta=0.5)(Outputs(logprobs=logprobs), batch, Run(policy=None))
    # the right one against the two wrong ones; a group of ties has no pair
    assert loss.tolist() == pytest.approx([-(log_sigmoid(0.5 * 3) + log_sigmoid(-0.5 * 2)) / 2, 0.0])


def test_the_loss_of_graded_episodes():
    rows = [("rd", {"r": outcome(x)}) for x in (0.25, 1.0, 0.5)]
    batch = batch_of([rows], {"policy.logprobs": [[0.0, -1.0], [0.0, -2.0], [0.0, -3.0]]})
    loss = group_preferences(beta=1.0)(Outputs(logprobs=torch.full((3, 2), -2.0)), batch, Run(policy=None))
    # implied: -1, 0, 1;  better over worse: (0, -1), (0, 1), (1, -1)
    assert loss.tolist() == pytest.approx([-(log_sigmoid(1) + log_sigmoid(-1) + log_sigmoid(2)) / 3])


def credit_of(groups, prm, **settings):
    batch = batch_of(groups, {"prm.logprobs": prm, "policy.logprobs": [[0.0]] * len(prm)})
    run = Run(policy=None)
    return oprl_implicit_step(**settings).credit(batch.reward, batch, run), run


def test_the_advantages_by_hand():
    # turns of two tokens and one, worth 3 and 1; one turn worth -1; no verdict
    rows = [("rddrd", {"correct": outcome(1.0)}), ("rd", {"correct": outcome(0.0)}), ("rdd", {"correct": outcome(None)})]
    found, run = credit_of([rows], [[9, 1, 2, 9, 1], [9, -1], [9, 50, 50]], alpha=2.0, beta=0.5)
    a = 0.5 / (math.sqrt(0.5) + 1e-4)
    worth = np.array([1.5, 0.5, -0.5])
    b = 2 * (worth - worth.mean()) / (worth.std(ddof=1) + 1e-4)
    # a turn's advantage goes to its own tokens alone, and what was read gets none
    assert found[0].tolist() == pytest.approx([0, a + b[0], a + b[0], 0, a + b[1]])
    assert found[1, :2].tolist() == pytest.approx([0, -a + b[2]])
    assert not found[2].any()
    assert run.metrics["prm_auc"] == 1.0


def test_groups_that_are_all_right_still_compare_turns_and_one_turn_says_nothing():
    right = [("rdrd", {"correct": outcome(1.0)}), ("rd", {"correct": outcome(1.0)})]
    found, run = credit_of([right], [[9, 2, 9, 0], [9, 1]], beta=1.0)
    assert found[0].tolist() == pytest.approx([0, 1 / 1.0001, 0, -1 / 1.0001])
    assert not found[1].any()
    assert "prm_auc" not in run.metrics
    one, _ = credit_of([[("rd", {"correct": outcome(1.0)})]], [[9, 5]])
    assert not one.any()
    off, _ = credit_of([right], [[9, 2, 9, 0], [9, 1]], alpha=0.0)
    assert not off.any()


@reward
def verify(trajectory):
    return float(len(trajectory.reply) % 2)


def test_the_model_learns_from_what_the_policy_samples():
    task = registry.task("facts:hops=1,test_size=2")
    recipe = oprl_implicit_step(n=4, turns=2, prm_lr=1e-2).but(problems=4)
    policy = untrained(hidden=32, layers=1)
    run = Run(policy, models={"prm": policy.copy("prm")}, max_new=3, seed=1, verify=verify())
    ops = Ops(recipe, run, task, RunConfig(steps=2))
    standard_loop(recipe, run, ops)
    # at first the model is the policy that sampled, so that it implies nothing: log 2 for each group with a pair
    assert 0 < run.metrics["prm/loss"] <= math.log(2) + 1e-3
    changed = run.models["prm"].state()
    assert any(not torch.equal(v, changed[k]) for k, v in untrained(hidden=32, layers=1).state().items())
    assert set(recipe.needs) >= {"prm.logprobs", "policy.logprobs"}


def test_a_model_that_still_is_the_policy_implies_nothing():
    task, policy = registry.task("facts:hops=1,test_size=2"), untrained(hidden=32, layers=1)
    recipe = oprl_implicit_step(n=4, turns=2).but(problems=2)
    run = Run(policy, models={"prm": policy.copy("prm")}, max_new=3, seed=1, verify=verify())
    ops = Ops(recipe, run, task, RunConfig(steps=2))
    groups = ops.rollout(ops.problems())
    batch = ops.collate(groups, ops.score(groups))
    outcome_alone = grpo().credit(batch.reward, batch, run)
    assert torch.equal(batch.credit, outcome_alone)
    # rounding must not become a signal: all turns tie
    assert run.metrics["prm_auc"] == 0.5
