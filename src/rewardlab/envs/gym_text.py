"""Gymnasium's environments in words: those whose observations are texts, numbers, or small tables of numbers.

The toy texts that come with Gymnasium are told as a person would tell them, with actions by name; any other shows its observation,
and has actions by number. Towers et al. 2024, arXiv:2407.17032 (Gymnasium).
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from rewardlab.core import Message, Problem, Turn, environment
from rewardlab.errors import RewardlabError
from rewardlab.util.extras import require

from .actions import action_in, begun, invalid, named
from .actions import played as play

MOST = 256
"""Numbers that an observation may have, to be shown as text."""
NAMES = {
    "FrozenLake": ("left", "down", "right", "up"),
    "CliffWalking": ("up", "right", "down", "left"),
    "Taxi": ("south", "north", "east", "west", "pick up", "drop off"),
    "Blackjack": ("stick", "hit"),
}
"""Actions of the toy texts, in Gymnasium's order."""
ABOUT = {
    "FrozenLake": "You cross a frozen lake: S is the start, F is frozen, H is a hole that ends the game, G is the goal. You stand "
    "where the brackets are.",
    "CliffWalking": "You walk along a cliff: x is you, C is the cliff, from which you fall back to the start, T is the goal.",
    "Taxi": "You drive a taxi: fetch the passenger and drop them off at their destination. | is a wall, : can be passed. "
    "Rows and columns are counted from 0, from the top left.",
    "Blackjack": "You play blackjack against a dealer: come closer to 21 than the dealer, without going above it.",
}
PLACES = ("R (red)", "G (green)", "Y (yellow)", "B (blue)")
_COLOURED = re.compile(r"\x1b\[[\d;]+m(.)\x1b\[0m", re.S)
_CODES = re.compile(r"\x1b\[[\d;]*m")


def kind_of(id: str) -> str:
    """The name of an environment without its version."""
    return id.rpartition("/")[2].partition("-")[0]


def made(id: str, options: Mapping[str, Any] | None = None) -> Any:
    """The environment. Raises RewardlabError where it cannot be told in words."""
    require("control", "gymnasium", what="an environment of Gymnasium")
    import gymnasium

    if ":" in id:
        _import(id.partition(":")[0])
    known = gymnasium.registry.get(id.rpartition(":")[2])
    modes = getattr(getattr(known, "entry_point", None), "metadata", None) or {}
    ansi = kind_of(id) in ("FrozenLake", "Taxi", "CliffWalking") or "ansi" in modes.get("render_modes", ())
    try:
        env = gymnasium.make(id, **({"render_mode": "ansi"} if ansi else {}), **(options or {}))
    except (gymnasium.error.Error, TypeError) as e:
        raise RewardlabError(f"Gymnasium makes no {id}: {' '.join(str(e).split())}") from e
    if why := _untellable(env, gymnasium.spaces):
        raise RewardlabError(f"{id} cannot be told in words: {why}. With an actor that reads arrays: gym_world(id={id!r})")
    return env


def _import(module: str) -> None:
    """Import the module that registers an environment, MODULE:ID as Gymnasium writes it."""
    try:
        importlib.import_module(module)
    except Exception as e:
        raise RewardlabError(
            f"{module}, which is to register an environment, cannot be imported: {type(e).__name__}: {e}. It must be installed, or "
            "its folder stand in PYTHONPATH"
        ) from e


def _untellable(env: Any, spaces: Any) -> str:
    actions, seen = env.action_space, env.observation_space
    if not isinstance(actions, spaces.Discrete | spaces.Text):
        return f"its actions are {actions}, neither numbered nor texts"
    parts = list(seen.spaces.values()) if isinstance(seen, spaces.Dict) else list(getattr(seen, "spaces", [seen]))
    large = [p for p in parts if isinstance(p, spaces.Box | spaces.MultiDiscrete) and int(np.prod(p.shape)) > MOST]
    return f"an observation has more than {MOST} numbers" if large else ""


def actions_of(env: Any, id: str) -> tuple[str, ...]:
    """The names of its actions; of texts none."""
    space = env.action_space
    if not hasattr(space, "n"):
        return ()
    names = NAMES.get(kind_of(id), ())
    return names if len(names) == space.n else tuple(str(i + int(space.start)) for i in range(int(space.n)))


class TextGame:
    """An environment of Gymnasium that is being played."""

    def __init__(self, id: str, options: Mapping[str, Any], seed: int) -> None:
        self.env, self.id = made(id, options), id
        self.names = actions_of(self.env, id)
        observation, _ = self.env.reset(seed=seed)
        self.seen = self._told(observation)

    def act(self, action: str) -> tuple[str, float, bool]:
        if not self.names:
            if self.env.action_space.contains(action):
                return self._step(action)
            says = f"{action[:60]!r} is not an action here, which are of the form {self.env.action_space}."
            return f"{says}\n\n{self.seen}", 0.0, False
        name = named(action, self.names)
        if name is None:
            return f"{invalid(action, self.names)}\n\n{self.seen}", 0.0, False
        return self._step(self.names.index(name) + int(self.env.action_space.start))

    def _step(self, action: Any) -> tuple[str, float, bool]:
        observation, pay, terminated, truncated, _ = self.env.step(action)
        self.seen = self._told(observation)
        return f"{self.seen}\nThis paid {pay:g}.", float(pay), bool(terminated or truncated)

    def _told(self, observation: Any) -> str:
        kind = kind_of(self.id)
        if kind == "Blackjack":
            mine, dealer, ace = map(int, observation)
            return f"Your cards count {mine}{' with an ace as 11' if ace else ''}; the dealer shows {dealer}."
        drawn = self.env.render() if self.env.render_mode == "ansi" else None
        if not isinstance(drawn, str):
            return _shown(observation)
        # the colour says where the player is
        drawn = _CODES.sub("", _COLOURED.sub(r"[\1]", drawn)) if kind == "FrozenLake" else _CODES.sub("", drawn)
        drawn = "\n".join(line for line in drawn.splitlines() if line.strip() and not line.strip().startswith("("))
        return f"{drawn}\n{_taxi(self.env, int(observation))}" if kind == "Taxi" else drawn


def _taxi(env: Any, observation: int) -> str:
    row, column, passenger, destination = env.unwrapped.decode(observation)
    where = "in the taxi" if passenger == 4 else f"at {PLACES[passenger]}"
    return f"The taxi is in row {row}, column {column}; the passenger is {where}, and goes to {PLACES[destination]}."


def _shown(observation: Any) -> str:
    if isinstance(observation, dict):
        return "\n".join(f"{name}: {_shown(part)}" for name, part in observation.items())
    if isinstance(observation, str):
        return observation
    if isinstance(observation, tuple):
        return ", ".join(map(_shown, observation))
    array = np.asarray(observation)
    return f"{array.item():g}" if array.ndim == 0 else np.array2string(array, precision=3, threshold=MOST)


def _begin(id: str, options: str, number: int) -> Callable[[], TextGame]:
    return partial(TextGame, id, json.loads(options), number)


def _start(problem: Problem, seed: int) -> tuple[Message, dict[str, Any]]:
    problem.required("id", "number", by="gym_text", how="Name the task: --task gym_text:ID")
    of = str(problem.meta["id"]), json.dumps(problem.meta.get("options") or {}), int(problem.meta["number"])
    return begun(("gym_text", *of), _begin(*of))


@environment(start=_start)
def gym_text(state: dict[str, Any], turn: Turn) -> tuple[Message, dict[str, Any]]:
    """The environment of Gymnasium that meta["id"] names, with the seed meta["number"]; what it pays is the reward of a message.

    An action is the last line of a reply, or stands between <action> tags; what is none is answered with those that there are.
    """
    return play(state, action_in(turn.text), _begin(*state["of"][1:]))
