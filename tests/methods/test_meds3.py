"""MedS3: shares of right ends below the steps of a tree, and both models that learn from it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from rows import batch_of, outcome

from rewardlab import registry
from rewardlab.core import Outputs, Run, Turn
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.methods.process.meds3 import meds3
from rewardlab.models.embedded import untrained
from rewardlab.objectives.tree import right_once
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig


def tree(paths, rewards):
    """A batch of one tree: rows of a prompt of one token and steps of one token each."""
    batch = batch_of([[("r" + "d" * len(p), {"correct": outcome(r)}) for p, r in zip(paths, rewards, strict=True)]])
    rows = []
    for (t, score), path in zip(batch.rows, paths, strict=True):
        decided = t.turns[1]
        cut = [slice(k, k + 1) for k in range(len(path))]
        steps = [Turn("policy", decided.ids[c], decided.logprobs[c], decided.sampled[c]) for c in cut]
        rows.append((replace(t, turns=(t.turns[0], *steps), path=path), score))
    batch.rows = rows
    return batch


PATHS = [(0, 0), (0, 1, 0), (0, 1, 1), (1, 0)]


def test_values_of_steps_by_hand():
    batch = tree(PATHS, [1.0, 0.0, 1.0, 0.0])
    (prm,) = meds3().also
    found = prm.recipe.credit(batch.reward, batch, Run(policy=None))
    # below the first step of the first three rows two of three are right; below (0, 1) one of two
    assert found.tolist() == [
        pytest.approx([0, 2 / 3, 1.0, 0]), pytest.approx([0, 2 / 3, 0.5, 0.0]), pytest.approx([0, 2 / 3, 0.5, 1.0]),
        pytest.approx([0, 0, 0, 0]),
    ]  # fmt: skip
    weights = prm.recipe.weighting(batch)
    # six different steps and the shared ones once: 7 nodes
    assert weights.sum() == pytest.approx(1.0)
    assert weights[:, 1].tolist() == pytest.approx([1 / 21, 1 / 21, 1 / 21, 1 / 7])


def test_a_tree_without_a_right_end_teaches_the_model_and_not_the_policy():
    batch = tree(PATHS, [0.0] * 4)
    assert right_once()(batch).sum() == 0
    (prm,) = meds3().also
    assert prm.recipe.weighting(batch).sum() == pytest.approx(1.0)
    batch.credit = prm.recipe.credit(batch.reward, batch, Run(policy=None))
    loss = prm.recipe.objective(Outputs(value=torch.full((4, 4), math.log(3))), batch, Run(policy=None))
    # nothing is right below: -log(1 - 3/4)
    assert loss[0, 1].item() == pytest.approx(math.log(4))


def test_the_policy_imitates_each_step_of_right_chains_once():
    weights = right_once()(tree(PATHS, [1.0, 0.0, 1.0, 0.0]))
    # the first and the third row share their first step: 4 nodes, one of them in two rows
    assert weights.tolist() == [
        pytest.approx([0, 1 / 8, 1 / 4, 0]), [0, 0, 0, 0], pytest.approx([0, 1 / 8, 1 / 4, 1 / 4]), [0, 0, 0, 0]
    ]  # fmt: skip


@reward
def even(trajectory):
    return float(len(trajectory.reply) % 2 == 0)


def test_one_round_teaches_both_models_and_the_least_trusted_step_chooses():
    task = registry.task("arithmetic", test_size=3)
    recipe = meds3(iterations=2, branch=2, choose=3, init="value-head", prm_lr=1e-2).but(problems=2, reward=even())
    policy = untrained(hidden=32, layers=1)
    prm = policy.copy("prm", value_head=True)
    start = [{k: v.clone() for k, v in m.state().items()} for m in (policy, prm)]
    run = Run(policy, models={"prm": prm}, max_new=6, seed=1, verify=even())
    standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=1)))
    assert all(any(not torch.equal(v, old[k]) for k, v in m.state().items()) for m, old in zip((policy, prm), start, strict=True))
    found = recipe.measure(task.test, run)
    assert found["judged"] == 1.0
    assert {"reranked", "majority", "by_auc"} <= set(found)
