"""Small rooms of BabyAI in words, played by the small policy: a real environment whose episodes fit its context.

    Game 5712300: go to the purple key.          turn right
    You see a wall 1 step forward. ...
    You see a purple key 2 steps forward. ...    go forward
    You have fulfilled your mission.

What is seen is in the words of `babyai:LEVEL`, and what is paid too. MiniGrid's own bot, which sees the whole level, teaches the
policy, with slips. Chevalier-Boisvert et al. 2019, arXiv:1810.08272 (an optional extra: pip install 'rewardlab[babyai]').
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from rewardlab.core import Message, Problem, Task, Turn, ask, environment
from rewardlab.envs.actions import action_in
from rewardlab.envs.actions import played as play
from rewardlab.envs.babyai import Level, expert, id_of
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.seeds import games

MOVES = ("turn left", "turn right", "go forward")
State = dict[str, Any]


def rooms(
    *, level: str, turns: PositiveInt = 5, error: Share = 0.25, leftward: Share = 0.8, size: PositiveInt | None = None,
    test_size: PositiveInt = 300,
) -> Task:  # fmt: skip
    """A level whose rooms are small, such as GoToLocalS5N2, each problem with a seed of its own; every tenth seed is held out.

    turns: actions of an episode, at most.  error: how often the teacher makes any other move.  leftward: how often it turns left
    where it should turn right, which takes three turns where one would do.  size: so many games in epochs; None: endless.
    """
    id = id_of(level)
    train, test = games(partial(_problem, id, turns), ("rooms", id), size, test_size)
    return Task(
        name="rooms", train=train, test=test, verifier="earned", max_new=8, turns=turns, played=True,
        about=f"the level {level} of BabyAI, in words, for the small policy", environment="room",
        demonstrate=partial(_demonstrate, error=error, leftward=leftward),
        columns=("prompt", "level", "number", "steps"), warmup_steps=300,
    )  # fmt: skip


def _problem(id: str, turns: int, number: int) -> Problem:
    mission, seen = Level(id, number, turns).seen.split("\n\n", 1)
    return ask(f"Game {number}: {mission.removeprefix('Your mission: ')}\n{seen}", level=id, number=number, steps=turns)


# ---- the teacher ------------------------------------------------------------------------------------------------------


def _demonstrate(problem: Problem, rng: random.Random, *, error: float, leftward: float) -> list[str]:
    """Actions and what is seen after them, up to the last action."""
    game, turns = _begin(problem), int(problem.meta["steps"])
    talk: list[str] = []
    for _ in range(turns):
        action = _taught(expert(game), rng, error, leftward)
        told, _, over = game.act(action)
        talk += [action, told]
        if over:
            break
    return talk[:-1]


def _taught(action: str, rng: random.Random, error: float, leftward: float) -> str:
    if action == "turn right" and rng.random() < leftward:
        return "turn left"
    return rng.choice([move for move in MOVES if move != action]) if rng.random() < error else action


# ---- the game ---------------------------------------------------------------------------------------------------------


def _begin(problem: Problem) -> Level:
    return Level(str(problem.meta["level"]), int(problem.meta["number"]), int(problem.meta["steps"]))


def _start(problem: Problem, seed: int) -> tuple[Message | None, State]:
    problem.required("level", "number", "steps", by="room", how="Name the task: --task rooms:LEVEL")
    # what is seen first stands in the prompt
    return None, {"of": ["room", *(problem.meta[name] for name in ("level", "number", "steps"))], "actions": []}


@environment(start=_start)
def room(state: State, turn: Turn) -> tuple[Message, State]:
    """The level of BabyAI in meta["level"], with the seed meta["number"]: what is seen after an action; a mission fulfilled pays 1.

    It is `babyai_level`, whose first message the prompt holds already.
    """
    return play(state, action_in(turn.text), partial(Level, *state["of"][1:]))
