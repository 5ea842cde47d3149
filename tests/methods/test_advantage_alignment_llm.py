"""Advantage Alignment: the credit by hand, self-play whose sides find each other, and what players learn by it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from rows import batch_of, steps

from rewardlab import registry
from rewardlab.core import Run, ask
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.methods.credit.advantage_alignment_llm import (
    DEFECTS,
    PLAYERS,
    advantage_alignment_llm,
    align_with_other,
    check,
    learnt_strategies,
    mean_payoff,
    other_players,
)
from rewardlab.models.embedded import untrained
from rewardlab.runs.config import RunConfig

FIRST, SECOND = PLAYERS


def played(*groups, seats):
    """Groups of (pattern, payoffs), the rows of which sit in (question, game, tag), one after another."""
    batch = batch_of([[(pattern, {"paid": steps(pay)}) for pattern, pay in group] for group in groups])
    batch.rows = [
        (replace(row, problem=ask(question), path=(game,), tag=tag), score)
        for (row, score), (question, game, tag) in zip(batch.rows, seats, strict=True)
    ]
    return batch


def turns_of(a, batch):
    return [row[mask].tolist() for row, mask in zip(a, batch.mask, strict=True)]


def test_the_credit_by_hand():
    # two games of two rounds; payoffs 3 0, 5 1 and 1 5, 0 3
    seats = [("?", 0, FIRST), ("?", 1, FIRST), ("?", 0, SECOND), ("?", 1, SECOND)]
    firsts = [("rdrd", {1: 3.0, 3: 0.0}), ("rdrd", {1: 1.0, 3: 5.0})]
    seconds = [("rdrd", {1: 5.0, 3: 1.0}), ("rdrd", {1: 0.0, 3: 3.0})]
    batch = played(firsts, seconds, seats=seats)
    recipe = advantage_alignment_llm(beta=2.0, gamma=0.5, scale=1.0)
    found = turns_of(recipe.credit(batch.reward, batch, Run(None)), batch)
    # returns 3 0 | 3.5 5 and 5.5 1 | 1.5 3; against the other game: -.5 -5 | .5 5 and 4 -2 | -4 2
    # A* of round 2: A1 + beta gamma (gamma A1 of round 1) A2 of round 2
    expected = [
        [-0.5, -5 + 2 * 0.5 * (0.5 * -0.5) * -2],
        [0.5, 5 + 2 * 0.5 * (0.5 * 0.5) * 2],
        [4, -2 + 2 * 0.5 * (0.5 * 4) * -5],
        [-4, 2 + 2 * 0.5 * (0.5 * -4) * 5],
    ]
    assert [x for row in found for x in row] == pytest.approx([x for row in expected for x in row])


def test_the_past_is_discounted_round_by_round_and_a_turn_may_have_several_tokens():
    seats = [("?", 0, FIRST), ("?", 0, SECOND)]
    batch = played([("rddrdrd", {})], [("rdrddrd", {})], seats=seats)
    batch.rewarded[:] = batch.mask
    a = torch.tensor([[0, 1.0, 1, 0, 2, 0, 4], [0, 3.0, 0, 1, 1, 0, -1]])
    found = turns_of(align_with_other(beta=1.0, gamma=0.5)(a, batch, Run(None)), batch)
    # past of the first: 0, .5 * 1, .5 * (.5 + 2);  of the second: 0, .5 * 3, .5 * (1.5 + 1)
    assert found[0] == pytest.approx([1, 1, 2 + 0.5 * 0.5 * 1, 4 + 0.5 * 1.25 * -1])
    assert found[1] == pytest.approx([3, 1 + 0.5 * 1.5 * 2, 1 + 0.5 * 1.5 * 2, -1 + 0.5 * 1.25 * 4])


def test_where_the_other_is_missing_a_turn_keeps_its_advantage():
    # the other of game 1 was dropped; the other of game 0 made one turn less; game 2 has no verdict on the other
    seats = [("?", 0, FIRST), ("?", 1, FIRST), ("?", 2, FIRST), ("?", 0, SECOND), ("?", 2, SECOND)]
    batch = played([("rdrd", {3: 1.0})] * 3, [("rd", {1: 1.0}), ("rdrd", {})], seats=seats)
    assert other_players(batch) == [3, None, 4, 0, 2]
    a = torch.where(batch.mask, 2.0, 0.0)
    found = turns_of(align_with_other()(a, batch, Run(None)), batch)
    assert found == [[2, 2], [2, 2], [2, 2], [2], [0, 0]]


def test_a_problem_that_comes_twice_has_games_of_its_own():
    seats = [("?", 0, FIRST), ("?", 0, SECOND), ("!", 0, FIRST), ("!", 0, SECOND), ("?", 0, FIRST), ("?", 0, SECOND)]
    groups = [[("rd", {1: 1.0})]] * 6
    assert other_players(played(*groups, seats=seats)) == [1, 0, 3, 2, 5, 4]
    # with one side of them gone nobody knows which game is left
    assert other_players(played(*groups[:5], seats=seats[:5])) == [None, None, 3, 2, None]
    assert other_players(played(*groups[:2], seats=[("?", 0, ""), ("?", 0, "")])) == [None, None]


def test_expected_payoffs_by_hand():
    copies = torch.tensor([1.0, 0, 1, 0, 1], dtype=torch.float64)
    always = torch.ones(5, dtype=torch.float64)
    half = torch.full((5,), 0.5, dtype=torch.float64)
    assert mean_payoff(copies, always, 4) == 3.0
    # 0 once, then 1 each; and 5 once
    assert mean_payoff(copies, DEFECTS, 4) == pytest.approx(3 / 4)
    assert mean_payoff(DEFECTS, copies, 4) == pytest.approx(8 / 4)
    assert mean_payoff(half, half, 3) == pytest.approx((3 + 0 + 5 + 1) / 4)


@pytest.mark.slow
def test_aligned_players_learn_to_answer_in_kind_and_plain_ones_to_defect():
    measure = check.by.function
    found = measure([], Run(None, seed=3), **{**check.by.settings, "games": 48, "updates": 60, "lr": 0.1})
    assert found["payoff.plain"] < 1.3 < 2.4 < found["payoff.aligned"]
    assert min(found["kind.aligned"], found["harsh.aligned"]) > 0.8
    assert 0.85 < found["against_defector.aligned"] <= 1.0
    # the same credit twice is the same luck twice
    same = learnt_strategies(aligned=check.by.settings["plain"], plain=check.by.settings["plain"], games=8, updates=3)
    twice = same([], Run(None, seed=3))
    assert twice["payoff.aligned"] == twice["payoff.plain"]


def test_a_step_of_self_play_changes_the_policy():
    task = registry.task("dilemmas:rounds=2,test_size=2")
    policy = untrained(hidden=32, layers=1)
    before = {k: v.clone() for k, v in policy.state().items()}
    recipe = advantage_alignment_llm(n=2, turns=5).but(problems=2)
    run = Run(policy, max_new=3, seed=1)
    standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=2)))
    assert any(not torch.equal(before[k], v) for k, v in policy.state().items())
    assert "return" in recipe.measure(task.test, run.for_evaluation())
