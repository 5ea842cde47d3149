"""Levels of BabyAI in words, by name.

    babyai:GoToLocal
    babyai:PickupLoc,turns=40
    babyai:MiniGrid-Empty-5x5-v0

Chevalier-Boisvert et al. 2019, arXiv:1810.08272 (an optional extra: pip install 'rewardlab[babyai]').
"""

from __future__ import annotations

from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.envs.actions import HOW
from rewardlab.envs.babyai import ACTIONS, id_of
from rewardlab.settings.domain import PositiveInt
from rewardlab.tasks.seeds import games

RULES = (
    "You walk through rooms and fulfil a mission. You see what lies ahead of you, in steps forward and to your left or right. To "
    "turn does not move you; to toggle opens the door, or the box, right in front of you; what you pick up must be right in front "
    "of you.\n"
    f"Actions: {', '.join(ACTIONS)}.\n{HOW}"
)


def babyai(*, level: str, turns: PositiveInt = 64, size: PositiveInt | None = None, test_size: PositiveInt = 100) -> Task:
    """The level, each problem with a seed of its own; every tenth seed is held out.

    turns: actions of an episode, at most.  size: so many games in epochs; None: endless. Right is an episode that fulfils its
    mission.
    """
    id = id_of(level)
    train, test = games(partial(_problem, id, turns), ("babyai", id), size, test_size)
    return Task(
        name=f"babyai_{level.replace('-', '_')}", train=train, test=test, verifier="earned", max_new=128, turns=turns, played=True,
        about=f"the level {level} of BabyAI, in words", environment="babyai_level", columns=("prompt", "level", "number", "steps"),
    )  # fmt: skip


def _problem(id: str, turns: int, number: int) -> Problem:
    return ask(f"{RULES}\nThis is game {number}.", level=id, number=number, steps=turns)
