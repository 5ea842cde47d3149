"""BabyAI's levels, and others of MiniGrid, in words: what is seen ahead, how far, and on which side.

Chevalier-Boisvert et al. 2019, arXiv:1810.08272 (BabyAI); Carta et al. 2023, arXiv:2302.02662, told them as text first. The words
of actions and of what is seen are BALROG's (Paglieri et al. 2024, arXiv:2411.13543): "a red ball 2 steps forward and 1 step left".
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from rewardlab.core import Message, Problem, Turn, environment
from rewardlab.errors import RewardlabError, unknown
from rewardlab.util.extras import require

from .actions import action_in, begun, invalid, named
from .actions import played as play

ACTIONS = ("turn left", "turn right", "go forward", "pick up", "drop", "toggle")
"""In MiniGrid's order; its seventh, "done", changes nothing."""
SEEN = ("door", "key", "ball", "box", "goal", "lava")
DOORS = ("open", "closed", "locked")


def id_of(level: str) -> str:
    """The id of a level: GoToLocal is BabyAI-GoToLocal-v0. Raises RewardlabError for one that MiniGrid does not have."""
    require("babyai", "minigrid", what="a level of BabyAI")
    import gymnasium
    import minigrid  # noqa: F401  it registers its levels

    known = [id for id in gymnasium.registry if id.startswith(("BabyAI-", "MiniGrid-"))]
    names = {id: id for id in known} | {id.removeprefix("BabyAI-").rpartition("-v")[0]: id for id in known if id[0] == "B"}
    if level not in names:
        raise unknown("level of BabyAI", level, names)
    return names[level]


class Level:
    """A level that is being played."""

    def __init__(self, id: str, number: int, steps: int) -> None:
        import gymnasium

        id_of(id)
        # its own limit is long enough for a player who wanders
        self.env = gymnasium.make(id, **({"max_steps": steps} if steps else {}))
        # it prints which layouts it has rejected
        with contextlib.redirect_stdout(io.StringIO()):
            observation, _ = self.env.reset(seed=number)
        self.mission = str(observation["mission"])
        self.seen = f"Your mission: {self.mission}.\n\n{self._told(observation)}"

    def act(self, action: str) -> tuple[str, float, bool]:
        name = named(action, ACTIONS)
        if name is None:
            return f"{invalid(action, ACTIONS)}\n\n{self.seen}", 0.0, False
        observation, pay, terminated, truncated, _ = self.env.step(ACTIONS.index(name))
        self.seen = self._told(observation)
        won = pay > 0
        # MiniGrid pays less the longer it took: success is success here, as BALROG counts it
        told = "You have fulfilled your mission." if won else self.seen
        return told, float(won), bool(terminated or truncated)

    def _told(self, observation: Any) -> str:
        seen = [*_things(observation["image"]), *_walls(observation["image"])]
        lines = [f"You see {thing}." for thing in seen] or ["You see nothing but the floor."]
        carried = self.env.unwrapped.carrying  # type: ignore[attr-defined]
        return "\n".join([*lines, *([f"You carry {_a(carried.color, carried.type)}."] if carried else [])])


def _things(image: Any) -> Iterator[str]:
    """What is in view, nearest first, from the grid (columns, rows, 3) around the player, who looks up from the middle below."""
    from minigrid.core.constants import IDX_TO_COLOR, IDX_TO_OBJECT

    columns, rows, _ = image.shape
    found = []
    for i in range(columns):
        for j in range(rows):
            kind = IDX_TO_OBJECT[int(image[i, j, 0])]
            ahead, right = rows - 1 - j, i - columns // 2
            # the player's own place holds what they carry
            if kind in SEEN and (ahead or right):
                state = f"{DOORS[int(image[i, j, 2])]} " if kind == "door" else ""
                found.append(
                    (ahead + abs(right), right, f"{_a(state + IDX_TO_COLOR[int(image[i, j, 1])], kind)} {_where(ahead, right)}")
                )
    return (text for _, _, text in sorted(found))


def _walls(image: Any) -> Iterator[str]:
    """The first wall in each direction that nothing hides."""
    from minigrid.core.constants import OBJECT_TO_IDX

    columns, rows, _ = image.shape
    here, middle, wall = rows - 1, columns // 2, OBJECT_TO_IDX["wall"]
    ways = {"forward": [(middle, here - k) for k in range(1, rows)], "left": [(middle - k, here) for k in range(1, middle + 1)],
            "right": [(middle + k, here) for k in range(1, middle + 1)]}  # fmt: skip
    for way, places in ways.items():
        steps = next((k for k, (i, j) in enumerate(places, 1) if image[i, j, 0] == wall), None)
        if steps:
            yield f"a wall {_steps(steps)} {way}"


def _a(colour: str, kind: str) -> str:
    return f"{'an' if colour[0] in 'aeiou' else 'a'} {colour} {kind}"


def _where(ahead: int, right: int) -> str:
    sideways = f"{_steps(abs(right))} {'right' if right > 0 else 'left'}"
    return " and ".join([*([f"{_steps(ahead)} forward"] if ahead else []), *([sideways] if right else [])])


def _steps(n: int) -> str:
    return f"{n} step{'s' if n > 1 else ''}"


def _begin(id: str, number: int, steps: int) -> Callable[[], Level]:
    return partial(Level, id, number, steps)


def _start(problem: Problem, seed: int) -> tuple[Message, dict[str, Any]]:
    problem.required("level", "number", by="babyai_level", how="Name the task: --task babyai:LEVEL")
    of = id_of(str(problem.meta["level"])), int(problem.meta["number"]), int(problem.meta.get("steps") or 0)
    return begun(("babyai", *of), _begin(*of))


@environment(start=_start)
def babyai_level(state: dict[str, Any], turn: Turn) -> tuple[Message, dict[str, Any]]:
    """The level of BabyAI that meta["level"] names, with the seed meta["number"]; the last message pays 1 if it is done.

    An action is the last line of a reply, or stands between <action> tags; what is none is answered with those that there are.
    """
    return play(state, action_in(turn.text), _begin(*state["of"][1:]))


def expert(level: Level) -> str:
    """What MiniGrid's own bot, which sees the whole level, does next. Raises RewardlabError where it knows no way."""
    from minigrid.utils.baby_ai_bot import BabyAIBot

    if not hasattr(level, "bot"):
        level.bot = BabyAIBot(level.env.unwrapped)  # type: ignore[attr-defined]
    try:
        return ACTIONS[int(level.bot.replan())]  # type: ignore[attr-defined]
    except Exception as e:
        raise RewardlabError(f"MiniGrid's bot knows no way: {e}") from e
