"""Implicit PRM: outcomes teach a ratio of likelihoods, whose partial sums score steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from rows import batch_of, outcome

from rewardlab import registry
from rewardlab.core import Outputs, Run, Trajectory
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.methods.process.implicit_prm import implicit_prm
from rewardlab.models.embedded import untrained
from rewardlab.rewards.implicit import implicit_steps
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig

RUN = Run(policy=None)

# sums of beta (log prm - log ref) at beta 1/2: 1 | 2 | -1/2 | not judged || 3 || not judged
GROUPS = [
    [
        ("rdd", {"correct": outcome(1.0)}), ("rd", {"correct": outcome(0.0)}), ("rddd", {"correct": outcome(1.0)}),
        ("rd", {"correct": outcome(None)}),
    ],
    [("rdd", {"correct": outcome(0.0)})],
    [("rd", {"correct": outcome(None)})],
]  # fmt: skip
PRM = [[7, 2, 1], [7, 3], [7, 0, 0, 0], [7, 9], [7, 4, 4], [7, 5]]
REF = [[0, 1, 0], [0, -1], [0, 0, 2, -1], [0, 0], [0, 1, 1], [0, 0]]


def loss_of(name: str) -> list[float]:
    (prm,) = implicit_prm(loss=name, beta=0.5).also
    batch = batch_of(GROUPS, {"prm": PRM, "ref": REF})
    return prm.recipe.objective(Outputs(logprobs=batch.columns["prm"]), batch, RUN).tolist()


def minus_log_sigmoid(x: float) -> float:
    return math.log(1 + math.exp(-x))


def test_cross_entropy_takes_every_reply_that_was_judged():
    first = (minus_log_sigmoid(1) + minus_log_sigmoid(-2) + minus_log_sigmoid(-0.5)) / 3
    assert loss_of("ce") == pytest.approx([first, minus_log_sigmoid(-3), 0.0])


def test_pairs_are_of_a_right_and_a_wrong_reply_to_one_problem():
    # the wrong reply has 2, the right ones 1 and -1/2; a problem without both teaches nothing
    assert loss_of("dpo") == pytest.approx([(minus_log_sigmoid(1 - 2) + minus_log_sigmoid(-0.5 - 2)) / 2, 0.0, 0.0])
    each = [minus_log_sigmoid(w) + (minus_log_sigmoid(-w) + minus_log_sigmoid(-2)) / 2 for w in (1, -0.5)]
    assert loss_of("nca") == pytest.approx([sum(each) / 2, 0.0, 0.0])


def test_kto_measures_gains_from_the_groups_mean():
    z, sigmoid = (1 + 2 - 0.5) / 3, lambda x: 1 / (1 + math.exp(-x))
    first = (1 - sigmoid(1 - z) + 1 - sigmoid(z - 2) + 1 - sigmoid(-0.5 - z)) / 3
    # the one wrong reply is its own reference point
    assert loss_of("kto") == pytest.approx([first, 0.5, 0.0])


class Says:
    """A model that gives the tokens of every row these log-probs."""

    def __init__(self, *logprobs: float):
        self.logprobs = logprobs

    def score(self, rows):
        return [np.array(self.logprobs[: len(t)], np.float32) for t in rows]


def test_steps_are_worth_what_their_tokens_add():
    batch = batch_of([[("rrddddd", {}), ("r", {})]])
    row, empty = (t for t, _ in batch.rows)
    object.__setattr__(row, "steps", (3, 6))
    policy = untrained(hidden=32, layers=1)
    run = Run(policy, models={"prm": Says(9, 9, 1, 2, 3, 4, 5), "reference": Says(0, 0, 2, 0, 1, 1, 9)})
    # log-ratios of decisions: -1, 2 | 2, 3, -4; what was only read does not count
    gains, values = (implicit_steps(beta=0.5, form=form)([[row, empty]], run)[0] for form in ("gain", "value"))
    assert [x.steps for x in gains] == [((3, 0.5), (6, 0.5)), ()]
    assert values[0].steps == ((3, 0.5), (6, 1.0))
    assert gains[1].missing


@reward
def even(trajectory):
    return float(len(trajectory.reply) % 2 == 0)


@pytest.mark.parametrize("loss", ["ce", "kto"])
def test_the_model_learns_from_outcomes_and_the_least_value_chooses(loss):
    task, policy = registry.task("arithmetic", test_size=2), untrained(hidden=32, layers=1)
    recipe = implicit_prm(loss=loss, n=3, choose=2, lr=1e-2).but(problems=2)
    before = {k: v.clone() for k, v in policy.state().items()}
    models = {"prm": policy.copy("prm"), "reference": policy.copy("reference")}
    run = Run(policy, models=models, max_new=6, seed=1, verify=even())
    standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=2)))
    assert all(torch.equal(v, before[k]) for k, v in policy.state().items())
    assert any(not torch.equal(v, before[k]) for k, v in models["prm"].state().items())
    by, (problem, *_) = recipe.measure.settings["by"], task.test
    (row,) = policy.write(policy.read([Trajectory(problem)], [problem.prompt]), ["1+1=2\n2+2=5\n3"])
    (said,), (score,) = by.operands[0]([[row]], run)[0], by([[row]], run)[0]
    assert len(said.steps) == 3
    assert score.total == pytest.approx(min(q for _, q in said.steps))
    # the last value is the whole reply's reward, by which the model learnt
    whole = (models["prm"].score([row])[0] - models["reference"].score([row])[0])[row.mask].sum()
    assert said.steps[-1][1] == pytest.approx(0.05 * whole, abs=1e-6)
    assert recipe.measure(task.test, run.detached())["judged"] == 1.0
