"""Dilemmas: what moves pay, strategies that play the other side, and a policy that plays both."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from rewardlab.core import Environment, Run, Trajectory, Turn, ask
from rewardlab.envs.search import search
from rewardlab.errors import RewardlabError
from rewardlab.methods.credit.advantage_alignment_llm import PLAYERS, against_itself
from rewardlab.models.embedded import untrained
from rewardlab.rollouts.interactive import interactive
from rewardlab.worlds.dilemmas import cooperates, dilemma, dilemmas

PAYOFFS = {"temptation": 5, "reward": 3, "punishment": 1, "sucker": 0}


def game(rounds=3, question="?"):
    return ask(question, moves=["red", "blue"], payoffs=PAYOFFS, rounds=rounds)


class Says:
    """A policy of one token a reply, which says what `said` gives for (game, player, round)."""

    name, context = "policy", 100

    def __init__(self, said):
        self.said = said

    def read(self, trajectories, messages):
        last, ids = [m[-1] for m in messages], np.zeros(1, np.int64)
        return [t.plus(Turn(None, ids, text=m.text, reward=m.reward)) for t, m in zip(trajectories, last, strict=True)]

    def extend(self, trajectories, sampling, rng):
        texts = [self.said(t.path[0], PLAYERS.index(t.tag) if t.tag else 0, len(t.replies)) for t in trajectories]
        ids = np.zeros(1, np.int64)
        return [t.plus(Turn("policy", ids, text=text)) for t, text in zip(trajectories, texts, strict=True)]


def test_every_problem_is_a_dilemma():
    task = dilemmas(test_size=10)
    for i in range(300):
        p = task.train[i].meta["payoffs"]
        assert p["temptation"] > p["reward"] > p["punishment"] > p["sucker"] >= 0
        assert 2 * p["reward"] > p["temptation"] + p["sucker"]
    problem = task.train[0]
    assert all(str(x) in problem.question for x in problem.meta["payoffs"].values())


def test_a_teacher_plays_in_kind():
    problem = dilemmas(test_size=1, rounds=4).train[0]
    give, keep = problem.meta["moves"]
    assert dilemmas(kind=1.0, test_size=1).demonstrate(problem, random.Random(1))[::2] == [give] * 4
    assert dilemmas(kind=0.0, hard=0.0, test_size=1).demonstrate(problem, random.Random(1))[::2] == [keep] * 4
    # who defects at first and forgives: so do both, by turns
    talk = dilemmas(kind=0.0, hard=1.0, test_size=1).demonstrate(problem, random.Random(1))
    assert talk[::2] == [keep, give, keep, give]
    assert len(talk) == 7
    assert talk[1] == f"The other: {keep}. You get {problem.meta['payoffs']['punishment']}."


@pytest.mark.parametrize(
    ("opponent", "pays"), [("tit-for-tat", [5, 0, 3]), ("cooperates", [5, 3, 3]), ("defects", [1, 0, 0])]
)  # fmt: skip
def test_strategies_on_the_other_side(opponent, pays):
    policy = Says(lambda g, p, k: ["blue", " red\n", "red"][k])
    ((t,),) = interactive(env=dilemma(opponent=opponent), n=1, turns=9)([game()], Run(policy, seed=1, max_new=1))
    assert [r for _, r in t.paid] == pays
    assert t.stop == "end"
    assert cooperates()([[t]])[0][0].value == pytest.approx(2 / 3)


def test_a_random_strategy_is_one_of_both_and_repeats():
    env, moves = dilemma(opponent="random"), set()
    for seed in range(8):
        first, again = (env(env.start(game(), seed)[1], Turn("policy", np.zeros(1), text="red"))[0].reward for _ in range(2))
        assert first == again
        moves.add(first)
    assert moves == {3.0, 0.0}


def test_both_sides_of_all_moves_and_none():
    said = ["red", "blue", "Blue, I think"]
    table = {(0, 0): (3, 3), (0, 1): (0, 5), (1, 0): (5, 0), (1, 1): (1, 1)}
    pairs = list(product(range(3), repeat=2))
    policy = Says(lambda g, p, k: said[pairs[k][p]])
    groups = against_itself(env=dilemma(), n=2, turns=99)([game(9), game(9, "other")], Run(policy, seed=1, max_new=1))
    assert [[(t.path, t.tag) for t in g] for g in groups] == [[((0,), tag), ((1,), tag)] for tag in PLAYERS] * 2
    assert [g[0].problem.question for g in groups] == ["?", "?", "other", "other"]
    # who says no move gets least, 0, and the other what both get for defecting
    expected = [table.get(pair, (0 if pair[0] == 2 else 1, 0 if pair[1] == 2 else 1)) for pair in pairs]
    for player, group in enumerate(groups):
        assert all([r for _, r in t.paid] == [pay[player % 2] for pay in expected] for t in group)
    assert "The other: nothing. You get 1." in [turn.text for turn in groups[0][0].turns]


def test_a_game_ends_for_both_where_it_ends_for_one():
    class Short(Says):
        context = 6

        def extend(self, trajectories, sampling, rng):
            """The second player's replies are longer."""
            grown = super().extend(trajectories, sampling, rng)
            return [t if t.tag == PLAYERS[0] else t.plus(Turn("policy", np.zeros(2, np.int64))) for t in grown]

    first, second = against_itself(env=dilemma(), n=1)([game()], Run(Short(lambda g, p, k: "red"), max_new=2, seed=1))
    assert [len(t[0].replies) for t in (first, second)] == [1, 1]
    assert [t[0].stop for t in (first, second)] == ["context", "context"]


def test_a_policy_plays_itself_and_a_seed_repeats_it():
    policy, play = untrained(hidden=32, layers=1), against_itself(env=dilemma(), n=2, turns=2)
    first, again = (play([game(), game(2, "again")], Run(policy, seed=5, max_new=3)) for _ in range(2))
    assert [t.replies for g in first for t in g] == [t.replies for g in again for t in g]
    assert all(len(t.paid) == 2 for g in first for t in g)
    assert (play.rows_per_problem, play.groups_per_problem) == (4, 2)


def test_what_is_no_game_of_two_is_refused():
    env: Environment = search()
    with pytest.raises(RewardlabError, match="search is no game of two players: its state has no entry 'other'"):
        against_itself(env=env)([ask("?", facts=["a"])], Run(untrained(hidden=32, layers=1)))
    with pytest.raises(RewardlabError, match=r"a dilemma has the columns .* lacks \['payoffs', 'rounds'\]"):
        dilemma().start(ask("?", moves=["a", "b"]), 0)


def test_no_moves_no_verdict():
    assert cooperates()([[Trajectory(ask("?"))]])[0][0].missing
    assert cooperates()([[Trajectory(game())]])[0][0].value == 0.0
