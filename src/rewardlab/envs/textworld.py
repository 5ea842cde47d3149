"""Text adventures of TextWorld, made on the fly: a game of a kind and a level, by its seed.

Côté et al. 2018, arXiv:1806.11532 (microsoft/TextWorld, MIT). Games are compiled once, in about a second, and kept in the cache.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rewardlab.core import Message, Problem, Turn, environment
from rewardlab.errors import RewardlabError, unknown
from rewardlab.util.extras import require
from rewardlab.util.files import cached

from .actions import action_in, begun
from .actions import played as play

GAMES = {"coin_collector": 300, "treasure_hunter": 30, "simple": 3}
"""Kinds of games, and their hardest level; of `simple` it is how rarely the player is paid and told: dense, balanced, sparse."""
SIMPLE = ({"rewards": "dense", "goal": "detailed"}, {"rewards": "balanced", "goal": "brief"}, {"rewards": "sparse", "goal": "none"})
# the interpreter of such games writes beyond its memory where a command is longer than its buffer, or holds other characters
_COMMAND = re.compile(r"[A-Za-z0-9 ,.'-]{1,100}")
# what is said to the interpreter and not to the game: it would write files, or end or undo the game
_OUTSIDE = re.compile(r"(?i)(q|quit|save|restore|restart|undo|script|transcript|unscript|verify|version|notify|tw-.*)\b")
_PROMPT = re.compile(r"\n*>[^\n]*$")


def check_game(game: str, level: int) -> None:
    """Raise RewardlabError for a game that TextWorld is not asked for here, and a level that it does not have."""
    require("textworld", "textworld", what="a game of TextWorld")
    if game not in GAMES:
        raise unknown("game of TextWorld", game, GAMES)
    if not 1 <= level <= GAMES[game]:
        raise RewardlabError(f"the level of {game} is 1 to {GAMES[game]}, not {level}")


def file_of(game: str, level: int, number: int) -> Path:
    """The compiled game, made if it is not there."""
    check_game(game, level)
    return cached(f"textworld-{game}-{level}-{number}", partial(_make, game, level, number)) / "game.z8"


def _make(game: str, level: int, number: int, folder: Path) -> None:
    import importlib

    import textworld

    options = textworld.GameOptions()
    options.seeds = number
    settings = {**SIMPLE[level - 1], "test": False} if game == "simple" else {"level": level}
    made = importlib.import_module(f"textworld.challenges.tw_{game}.{game}").make(settings, options)
    options.path = str(folder / "game.z8")
    textworld.generator.compile_game(made, options)


class Adventure:
    """A game that is being played.  commands: whether those that are possible are shown."""

    def __init__(self, game: str, level: int, number: int, commands: bool) -> None:
        import textworld

        asked = ("admissible_commands", "max_score", "score", "won", "lost", "feedback", "policy_commands", "objective")
        self.commands = commands
        file = str(file_of(game, level, number))
        with warnings.catch_warnings():
            # that Jericho does not know the game, which it need not
            warnings.simplefilter("ignore")
            self.env = textworld.start(file, textworld.EnvInfos(**dict.fromkeys(asked, True)))
        self.state, self.paid = self.env.reset(), 0.0
        feedback = str(self.state.feedback)
        # before it comes the name of TextWorld, in letters made of slashes
        begin = feedback.find(self.state.objective[:40]) if self.state.objective else -1
        self.seen = self._told(feedback[max(begin, 0) :])

    def act(self, action: str) -> tuple[str, float, bool]:
        if not _COMMAND.fullmatch(action) or _OUTSIDE.match(action):
            says = "A command is a few English words, such as: go north." if action else "There is no command in this reply."
            return f"{says}\n\n{self.seen}", 0.0, False
        self.state, _, done = self.env.step(action)
        # so that the sum of all payments is 1 at the end, and not a little less
        pay = (self.state.score or 0) / max(1, self.state.max_score or 1) - self.paid
        self.paid += pay
        self.seen = self._told(str(self.state.feedback), over=done)
        return self.seen, pay, bool(done)

    def _told(self, feedback: str, over: bool = False) -> str:
        text = re.sub(r"\n{3,}", "\n\n", _PROMPT.sub("", feedback.strip())).strip()
        if not self.commands or over:
            return text
        return f"{text}\n\nPossible commands: {', '.join(self.state.admissible_commands)}."


def _begin(game: str, level: int, number: int, commands: bool) -> Callable[[], Adventure]:
    return partial(Adventure, game, level, number, commands)


def _start(problem: Problem, seed: int) -> tuple[Message, dict[str, Any]]:
    problem.required("game", "level", "number", by="textworld_game", how="Name the task: --task textworld:GAME")
    meta = problem.meta
    of = str(meta["game"]), int(meta["level"]), int(meta["number"]), bool(meta.get("commands", True))
    return begun(("textworld", *of), _begin(*of))


@environment(start=_start)
def textworld_game(state: dict[str, Any], turn: Turn) -> tuple[Message, dict[str, Any]]:
    """The game that meta["game"], meta["level"] and meta["number"] (its seed) name; what the score rises by, of its most, is paid.

    A command is the last line of a reply, or stands between <action> tags; of a wrong one the game itself says so.
    """
    return play(state, action_in(turn.text), _begin(*state["of"][1:]))


def playing_of(game: str, level: int, number: int, commands: bool = True) -> Adventure:
    """A game at its beginning."""
    return _begin(game, level, number, commands)()


def expert(adventure: Adventure) -> str:
    """The next command of the game's own solution."""
    return str(adventure.state.policy_commands[0])
