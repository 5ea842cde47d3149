"""CAPO: tokens of wrong steps are paid less than the others of their reply."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rows import batch_of, outcome, steps

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.credit.tokens import over_steps
from rewardlab.engine.collate import collate
from rewardlab.rewards.critiques import wrong_steps
from rewardlab.rewards.reward import reward

RUN = Run(policy=None)


def row(pattern: str, right: float | None, wrong: dict[int, float]):
    return pattern, {"correct": outcome(right, 2.0), "wrong_steps": steps(wrong, -1.0)}


def credit(*groups):
    batch = batch_of(groups)
    return registry.build("capo_genprm").credit(batch.reward, batch, RUN), batch


def test_tokens_of_a_step_get_what_stands_at_its_end():
    reward = torch.tensor([[0.0, 0.0, 3.0, 0.0, 4.0, 0.0]])
    rewarded = torch.tensor([[False, False, True, False, True, False]])
    mask = torch.tensor([[False, True, True, True, True, True]])
    assert over_steps(reward, rewarded, mask).tolist() == [[0, 3, 3, 4, 4, 0]]


def test_token_rewards_are_normalised_over_the_tokens_of_the_group():
    # right, its second step (1 token) wrong: 2 2 1;  wrong, its only step (2 tokens) wrong: -1 -1
    # mean 3/5; squares of 1.4, 1.4, .4, -1.6, -1.6: 9.2, over 4: 2.3, std 1.516575
    found, _ = credit([row("rddd", 1.0, {2: 0.0, 3: 1.0}), row("rdd", 0.0, {2: 1.0})])
    assert found[0].tolist() == pytest.approx([0, 1.4 / 1.5167, 1.4 / 1.5167, 0.4 / 1.5167], abs=1e-4)
    assert found[1].tolist() == pytest.approx([0, -1.6 / 1.5167, -1.6 / 1.5167, 0], abs=1e-4)


def test_a_group_in_which_all_are_right_still_learns_from_its_flawed_steps():
    found, _ = credit([row("rdd", 1.0, {1: 1.0, 2: 0.0}), row("rdd", 1.0, {1: 0.0, 2: 0.0})])
    # 1 2 / 2 2: mean 7/4, squares 9/16 + 3/16 = 3/4 over 3: std 1/2
    assert found[:, 1:].flatten().tolist() == pytest.approx([-1.5, 0.5, 0.5, 0.5], abs=1e-3)
    nothing, _ = credit([row("rdd", 1.0, {1: 0.0, 2: 0.0}), row("rddd", 1.0, {3: 0.0})])
    assert nothing.abs().max() == 0


def test_a_reply_without_a_verdict_is_in_no_mean_and_one_alone_gets_nothing():
    with_it, _ = credit([row("rdd", 1.0, {1: 1.0, 2: 0.0}), row("rdd", 1.0, {1: 0.0, 2: 0.0}), row("rd", None, {})])
    assert with_it[:2, 1:].flatten().tolist() == pytest.approx([-1.5, 0.5, 0.5, 0.5], abs=1e-3)
    assert with_it[2].tolist() == [0, 0, 0]
    assert credit([row("rd", 1.0, {1: 0.0})])[0].abs().max() == 0


@reward
def verify(trajectory):
    return float("right" in trajectory.reply)


@reward(steps=True)
def said_wrong(trajectory):
    """The first of two steps is wrong where the reply says so."""
    return [(1, float("flawed" in trajectory.reply)), (2, 0.0)]


def test_a_right_reply_with_a_flawed_step_stays_above_a_wrong_one_and_only_that_step_is_paid_less():
    ids, texts = np.zeros(2, np.int64), ("flawed right", "right", "wrong")
    prompt = Turn(None, np.zeros(1, np.int64))
    group = [Trajectory(ask("?"), (prompt, Turn("policy", ids, np.zeros(2, np.float32), text=text)), "end") for text in texts]
    run, recipe = Run(policy=None, verify=verify()), registry.build("capo_genprm", {"critiques": said_wrong()})
    batch = collate([group], recipe.reward([group], run), torch.device("cpu"))
    found = recipe.credit(batch.reward, batch, run)[:, 1:].flatten().tolist()
    # 1 2, 2 2, 0 0: mean 7/6; squares of -1/6, 5/6 three times, and -7/6 twice: 4 5/6, over 5: std .983192
    assert found == pytest.approx([x / 0.98329 for x in (-1 / 6, 5 / 6, 5 / 6, 5 / 6, -7 / 6, -7 / 6)], abs=1e-3)


@reward(over="groups")
def unreadable(groups, run):
    """A critic that lists a wrong step in the first reply alone, and nothing that can be read elsewhere."""
    return [[said_wrong()([[t]], run)[0][0] if "flawed" in t.reply else Score(None, why="unreadable") for t in g] for g in groups]


def test_a_reply_whose_critiques_cannot_be_read_is_paid_for_its_outcome():
    ids, texts = np.zeros(2, np.int64), ("flawed right", "right", "wrong")
    prompt = Turn(None, np.zeros(1, np.int64))
    group = [
        Trajectory(ask("?"), (prompt, Turn("policy", ids, np.zeros(2, np.float32), text=text)), "end", steps=(1, 2))
        for text in texts
    ]
    run, recipe = Run(policy=None, verify=verify()), registry.build("capo_genprm", {"critiques": unreadable()})
    scores = recipe.reward([group], run)
    assert not any(s.missing for s in scores[0])
    batch = collate([group], scores, torch.device("cpu"))
    found = recipe.credit(batch.reward, batch, run)[:, 1:].flatten().tolist()
    # as where the critic finds no fault in the second and the third: 1 2, 2 2, 0 0
    assert found == pytest.approx([x / 0.98329 for x in (-1 / 6, 5 / 6, 5 / 6, 5 / 6, -7 / 6, -7 / 6)], abs=1e-3)
    assert run.metrics["uncriticised"] == pytest.approx(2 / 3)


def test_critics_are_copies_of_the_start():
    recipe = registry.build("capo_genprm", {"votes": 3})
    assert [(x.name, x.init, x.every) for x in recipe.also] == [("critic", "copy:policy", 0)]
    assert recipe.rollout.settings["steps"] == "newline"
    given = registry.build("capo_genprm", {"critiques": wrong_steps(model="reference")})
    assert given.also == ()
