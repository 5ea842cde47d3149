"""pDPO: replies are worth the product of their steps' chances, and right ones are paired with right ones too."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Outputs, Run, Score, Turn, ask
from rewardlab.core.trajectory import Trajectory
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import RewardlabError
from rewardlab.methods.process.pdpo_planning import paired_by_process, pdpo_planning, process_pairs
from rewardlab.models.embedded import untrained
from rewardlab.rewards.counts import chance_of_count, counted_steps
from rewardlab.rewards.monte_carlo import monte_carlo_steps
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from tests.helpers.scripted import ScriptedPolicy


def test_chances_of_counts_by_hand():
    # of 3 with p = 1/4: 1 - (3/4)^3;  at least two: 3 (1/16)(3/4) + 1/64;  all three: 1/64
    assert [chance_of_count(0.25, 3, c) for c in (1, 2, 3)] == pytest.approx([37 / 64, 10 / 64, 1 / 64])
    assert chance_of_count(0.0, 3, 1) == 0.0
    assert chance_of_count(1.0, 3, 3) == 1.0


class Values:
    """A value model that says log 3 at every even position (3/4 is right), and -log 3 at every odd one."""

    device = torch.device("cpu")

    def evaluate(self, batch, wants, per_token=()):
        signs = torch.tensor([1.0, -1.0]).repeat(batch.width)[: batch.width]
        return Outputs(value=(math.log(3) * signs).expand(len(batch), -1))


def test_a_reply_is_worth_the_product_of_its_steps():
    ids = np.zeros(6, np.int64)
    t = Trajectory(ask("?"), (Turn("policy", ids, np.zeros(6, np.float32), np.zeros(6, np.float32)),), "end")
    group = [replace(t, steps=(1, 2, 5)), replace(t, steps=(5,))]
    run = Run(policy=None, models={"prm": Values()})
    low, high = 37 / 64, 63 / 64
    (scores,) = counted_steps()([group], run)
    assert [s.value for s in scores] == pytest.approx([low * high * low, low])
    (scores,) = counted_steps(form="min", least=3)([group], run)
    assert [s.value for s in scores] == pytest.approx([1 / 64, 1 / 64])
    with pytest.raises(RewardlabError, match="never right"):
        counted_steps(k=2, least=3)([group], run)


def test_pairs_by_hand():
    judged = [("a", True, 0.3125), ("b", True, 0.9375), ("c", True, 0.25), ("x", False, 0.1), ("y", False, 0.8), ("z", False, 0.8)]
    outcome, process = paired_by_process(judged, best=2, wrong=2, margin=0.625)
    # the wrong replies that look best; of equals the first
    assert outcome == [("b", "y"), ("b", "z"), ("a", "y"), ("a", "z")]
    # .9375 - .3125 is no more than the margin
    assert process == [("b", "c")]
    assert paired_by_process(judged[:3], 3, 2, 0.625) == ([], [("b", "c")])
    # all wrong: nothing to prefer; all right and alike: nothing either
    assert paired_by_process(judged[3:], 3, 2, 0.0) == ([], [])
    assert paired_by_process([("a", True, 0.5), ("b", True, 0.5)], 2, 2, 0.0) == ([], [])


@reward
def by_second(trajectory):
    """A tenth of the digit in a text's first line; no verdict for a question mark."""
    first = trajectory.reply.split("\n")[0]
    return Score(None) if first == "?" else int(first) / 10


@reward
def ends_in_one(trajectory):
    return float(trajectory.reply.endswith("1"))


class Recorder(ScriptedPolicy):
    context = 1000

    def write(self, trajectories, texts):
        return [
            t.plus(Turn(self.name, np.array([*map(ord, text), 0]), text=text), "end")
            for t, text in zip(trajectories, texts, strict=True)
        ]


def test_groups_are_pairs_with_their_steps_marked():
    policy = Recorder({"": ["9\n1", "2\n1", "9\n1", "5\n0", "?\n1"]})
    run = Run(policy, models={"reference": policy}, max_new=9, verify=ends_in_one())
    groups = process_pairs(by=by_second(), n=5, margin=0.5)([ask("?")], run)
    assert [[t.reply for t in g] for g in groups] == [["9\n1", "5\n0"], ["2\n1", "5\n0"], ["9\n1", "2\n1"]]
    assert run.metrics["pairs"] == 3
    assert run.metrics["right_pairs"] == pytest.approx(1 / 3)
    assert all(len(t.steps) == 2 for g in groups for t in g)
    # all wrong: a reply with itself
    alone = process_pairs(by=by_second(), n=1)(
        [ask("?")], Run(Recorder({"": ["3\n0"]}), models={"reference": policy}, verify=ends_in_one(), max_new=9)
    )
    assert [a.reply == b.reply for a, b in alone] == [True]


@reward
def even(trajectory):
    return float(len(trajectory.reply) % 2 == 0)


def test_policy_and_model_learn():
    task = registry.task("arithmetic", test_size=2)
    recipe = pdpo_planning(n=4, continuations=2, prm_lr=1e-2, prm_init="value-head", margin=0.0).but(problems=2)
    policy = untrained(hidden=32, layers=1)
    prm = policy.copy("prm", value_head=True)
    start = [{k: v.clone() for k, v in m.state().items()} for m in (policy, prm)]
    run = Run(policy, models={"prm": prm, "reference": policy.copy("reference")}, max_new=6, seed=1, verify=even())
    standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=2)))
    assert all(any(not torch.equal(v, old[k]) for k, v in m.state().items()) for m, old in zip((policy, prm), start, strict=True))
    assert run.metrics["pairs"] > 0
    assert recipe.reward == monte_carlo_steps(n=2)
