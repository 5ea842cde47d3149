"""Prisoner's dilemmas that are played several times in a row, under words that say nothing of what they do.

    You and another say red or blue, 5 times.          ->   red
    Both red: 3 each. Both blue: 1 each.                    The other: blue. You get 0.
    Only one blue: 5, and 0 for the other.             ->   blue ...

In each round it pays more to defect (here: blue), whatever the other says; over all rounds both get most by cooperating. How
much is paid, and which words stand for what, differs from problem to problem; the first of the two words cooperates.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from rewardlab.core import Problem, Task, ask
from rewardlab.core.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

from .environment import move_of, outcome

WORDS = ("red", "blue", "green", "black", "white", "pink", "gold", "grey", "brown", "lime", "teal", "plum")


def dilemmas(
    *, rounds: PositiveInt = 5, kind: Share = 0.8, hard: Share = 0.5, test_size: PositiveInt = 1000, size: PositiveInt | None = None
) -> Task:  # fmt: skip
    """Games of so many rounds. Right is a player that cooperates in every round.

    kind, hard: how often the teacher cooperates after the other did, or at first, and how often after the other defected.
    size: so many training problems, in epochs; None: endless.
    """
    sample, key = partial(_sample, rounds=rounds), ("dilemmas", rounds)
    return Task(
        name="dilemmas",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="cooperates",
        max_new=6,
        about="iterated prisoner's dilemmas, in words; the other player is a strategy, or the policy itself",
        demonstrate=partial(_demonstrate, kind=kind, hard=hard),
        columns=("prompt", "moves", "payoffs", "rounds", "solution"),
        environment="dilemma",
        turns=rounds,
        warmup_steps=300,
    )


def _sample(rng: random.Random, *, rounds: int) -> Problem:
    give, keep = rng.sample(WORDS, 2)
    sucker = rng.randint(0, 4)
    punishment = sucker + rng.randint(1, 3)
    reward = punishment + rng.randint(2, 4)
    # below 2 reward - sucker, or players would get more by taking turns to exploit each other
    temptation = reward + rng.randint(1, reward - sucker - 1)
    said = (
        f"You and another say {give} or {keep}, {rounds} times.\nBoth {give}: {reward} each. Both {keep}: {punishment} each.\n"
        f"Only one {keep}: {temptation}, and {sucker} for the other."
    )
    payoffs = {"temptation": temptation, "reward": reward, "punishment": punishment, "sucker": sucker}
    return ask(said, None, moves=[give, keep], payoffs=payoffs, rounds=rounds, solution=give)


def _demonstrate(problem: Problem, rng: random.Random, *, kind: float, hard: float) -> list[str]:
    """A game between two players that answer what the other said last."""
    moves, talk = problem.meta["moves"], []
    last: tuple[Any, Any] = (0, 0)
    for _ in range(problem.meta["rounds"]):
        # each answers the other's last move
        said = [moves[0] if rng.random() < (hard if other else kind) else moves[1] for other in reversed(last)]
        last = (move_of(said[0], moves), move_of(said[1], moves))
        talk += [said[0], outcome(problem.meta["payoffs"], moves, *last)[0]]
    # the last round's outcome ends the game: nobody reads it
    return talk[:-1]
