"""Environments of Gymnasium in words, by their ids.

    gym_text:FrozenLake-v1
    gym_text:FrozenLake-v1,map_name=8x8,is_slippery=false

Towers et al. 2024, arXiv:2407.17032 (an optional extra: pip install 'rewardlab[control]').
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rewardlab.core import Problem, Task, ask
from rewardlab.envs.actions import HOW
from rewardlab.envs.gym_text import ABOUT, actions_of, kind_of, made
from rewardlab.settings.domain import PositiveInt
from rewardlab.tasks.seeds import games


def gym_text(
    *, id: str, options: Mapping[str, Any] | None = None, turns: PositiveInt = 50, size: PositiveInt | None = None,
    test_size: PositiveInt = 100,
) -> Task:  # fmt: skip
    """The environment `id`, each problem with a seed of its own; every tenth seed is held out.

    options: the environment's own.  turns: actions of an episode, at most.  size: so many games in epochs; None: endless. A game is
    won, and right, if it pays at least 1 in all.
    """
    given = dict(options or {})
    env = made(id, given)
    actions = actions_of(env, id)
    rules = "\n".join(
        filter(
            None,
            [
                ABOUT.get(kind_of(id), f"You play {id}."),
                f"Actions: {', '.join(actions)}." if actions else "",
                HOW,
            ],
        )
    )
    make = partial(_problem, rules, id, given)
    train, test = games(make, ("gym_text", id, sorted(given.items())), size, test_size)
    return Task(
        name=f"gym_text_{kind_of(id)}", train=train, test=test, verifier="earned", max_new=128, turns=turns, played=True,
        about=f"{id} of Gymnasium, in words", environment="gym_text", columns=("prompt", "id", "options", "number"),
    )  # fmt: skip


def _problem(rules: str, id: str, options: dict[str, Any], number: int) -> Problem:
    return ask(f"{rules}\nThis is game {number}.", id=id, options=options, number=number)
