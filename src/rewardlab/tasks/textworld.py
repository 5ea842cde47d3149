"""Text adventures of TextWorld, by kind and level.

    textworld:coin_collector,level=3
    textworld:treasure_hunter,level=5,commands=false
    textworld:simple

Côté et al. 2018, arXiv:1806.11532 (microsoft/TextWorld, MIT; an optional extra: pip install 'rewardlab[textworld]').
"""

from __future__ import annotations

from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.envs.actions import HOW
from rewardlab.envs.textworld import check_game
from rewardlab.settings.domain import PositiveInt
from rewardlab.tasks.seeds import games

RULES = (
    "You play a text adventure. Commands are such as: look, inventory, go north, open chest, take coin, take key from chest, "
    f"unlock door with key, put apple on table.\n{HOW}"
)


def textworld(
    *, game: str, level: PositiveInt = 1, commands: bool = True, turns: PositiveInt = 30, size: PositiveInt | None = None,
    test_size: PositiveInt = 50,
) -> Task:  # fmt: skip
    """A kind of game (coin_collector, treasure_hunter, simple) at a level, each problem with a seed; every tenth seed is held out.

    commands: whether the possible commands are shown each time.  turns: commands of an episode, at most.  size: so many games in
    epochs; None: endless. The reward is the share of the highest score; right is all of it.
    """
    check_game(game, level)
    make = partial(_problem, game, level, commands)
    train, test = games(make, ("textworld", game, level), size, test_size)
    return Task(
        name=f"textworld_{game}", train=train, test=test, verifier="earned", max_new=128, turns=turns, played=True,
        about=f"{game} of TextWorld, level {level}", environment="textworld_game",
        columns=("prompt", "game", "level", "number", "commands"),
    )  # fmt: skip


def _problem(game: str, level: int, commands: bool, number: int) -> Problem:
    return ask(f"{RULES}\nThis is game {number}.", game=game, level=level, number=number, commands=commands)
