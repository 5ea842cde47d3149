"""Goal-conditioned reward models: the contrastive loss by hand, values of prefixes, votes without replies that go astray."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from rows import batch_of, row_of

from rewardlab.api import train
from rewardlab.core import Message, Outputs, Run, Task, ask
from rewardlab.methods.reward_models import goal_conditioned_rm as module
from rewardlab.methods.reward_models.goal_conditioned_rm import (
    GOAL,
    contrast,
    goal_conditioned_rm,
    goal_contrast,
    goal_value,
    prefix_values,
    pruned,
)
from rewardlab.models.embedded import untrained
from rewardlab.models.reward_model import load_reward_model
from rewardlab.tasks.sources import Listed

PAIRS = [ask(f"What is {i} + 1?", "", chosen=f"It is {i + 1}.", rejected=f"Perhaps {i + 2}, sir.") for i in range(8)]
TASK = Task("pairs", Listed(PAIRS), PAIRS[:4], "final_number")
E1, E2 = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_states_of_one_direction_by_hand():
    rng = torch.Generator().manual_seed(0)
    # all of the preferred reply point one way, whatever their lengths, and the rejected ones across it: cosines of 1 and of 0
    found = contrast(torch.stack([E1, 2 * E1, 5 * E1]), torch.stack([E2, E2]), 16, rng)
    assert float(found) == pytest.approx(-math.log(sigmoid(1)) - math.log(1 - sigmoid(0)), abs=1e-5)
    # the rejected reply in the same direction costs more, in the opposite one less
    same, opposite = (float(contrast(E1[None], x[None], 4, rng)) for x in (E1, -E1))
    assert same == pytest.approx(-math.log(sigmoid(1)) - math.log(1 - sigmoid(1)), abs=1e-5)
    assert opposite == pytest.approx(-math.log(sigmoid(1)) - math.log(1 - sigmoid(-1)), abs=1e-5)


def test_sources_come_before_goals():
    # one sample, so that its source and goal are not crossed with others: a source is never of the later half alone
    states, seen = torch.eye(40), []

    def noted(a, b):
        seen.append((int(a.argmax()), int(b.argmax())))
        return a @ b.T

    original, module._cosines = module._cosines, noted
    try:
        for seed in range(30):
            contrast(states, states, 1, torch.Generator().manual_seed(seed))
    finally:
        module._cosines = original
    assert all(source <= goal for source, goal in seen[::2])
    # of a rejected reply, states anywhere
    assert any(source > other for source, other in seen[1::2])


def test_only_replies_count_and_an_empty_one_teaches_nothing():
    batch = batch_of([[("rdd", {}), ("rd", {})], [("rd", {}), ("rr", {})]])
    hidden = torch.stack([torch.stack([-E1, E1, E1]), torch.stack([E1, E2, E1]), torch.zeros(3, 2), torch.zeros(3, 2)])
    found = goal_contrast(samples=8)(Outputs(hidden=hidden.requires_grad_()), batch, Run(None))
    # the prompt's state, -E1 and E1, is not looked at
    assert found.tolist() == pytest.approx([-math.log(sigmoid(1)) - math.log(0.5), 0.0], abs=1e-5)
    found.sum().backward()
    assert torch.isfinite(hidden.grad).all()


def test_a_reply_is_dropped_at_its_first_low_value():
    values = [np.array([0.5, 0.2, 0.9]), np.array([0.5, 0.0, 0.9, 0.9]), np.array([-0.1, 0.8])]
    # the second falls to the threshold at its second token, of four; the third at its first, of two
    assert pruned(values, 0.0) == ([True, False, False], 3 + 2)
    assert pruned(values, 0.95) == ([True, True, True], 0)
    assert pruned(values, -0.5) == ([True, True, True], 0)


class States:
    """A model with states that are written down."""

    device = torch.device("cpu")

    def __init__(self, table):
        self.table = torch.tensor(table)

    def evaluate(self, batch, wants):
        return Outputs(hidden=self.table)


def test_values_are_cosines_to_the_goal():
    run = Run(None, models={"reward": States([[[9.0, 9.0], [3.0, 4.0], [0.0, -2.0]]])})
    run.memory[GOAL] = [0.0, 5.0]
    assert prefix_values(run, [row_of("rdd")])[0] == pytest.approx([0.8, -1.0])
    ((score,),) = goal_value()([[row_of("rdd")]], run)
    assert dict(score.steps) == pytest.approx({1: 0.8, 2: -1.0})
    run.memory.clear()
    assert goal_value()([[row_of("rdd")]], run)[0][0].missing


def test_it_trains_and_others_load_it(tmp_path):
    result = train(
        goal_conditioned_rm(problems=4, reward_lr=1e-2), untrained(), TASK, out=tmp_path / "run", steps=8, eval_problems=4,
        max_new=6, device="cpu",
    )  # fmt: skip
    first, *_, last = [json.loads(line) for line in (result.out / "metrics.jsonl").read_text().splitlines()][1:]
    assert last["reward/loss/goal_contrast"] < first["reward/loss/goal_contrast"]
    # the goal is a direction that rejected replies do not take
    assert last["eval/goal_auroc"] > 0.9
    assert len(load_reward_model(str(result.out)).score([([Message("user", "What is 1 + 1?")], "It is 2.")])) == 1
