"""Python functions as tools: a function with type hints and a docstring is one, and the policy calls it as its model has learnt to.

    def search(query: str, limit: int = 3) -> str:
        \"""Search the handbook.

        Args:
            query: what to look for
            limit: how many passages are shown
        \"""

    rewardlab train grpo --task problems.jsonl --model hf:Qwen/Qwen3-0.6B --tools mine.py:search,mine.py:lookup

Schemas follow from the functions (transformers.utils.get_json_schema) and reach the model through its chat template. Calls are
read in every form that models write (`tool_messages.py`). What goes wrong is told to the policy, which may try again.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache, partial
from pathlib import Path
from types import NoneType
from typing import Any

from rewardlab.core import Message, Problem, Trajectory, Turn, environment
from rewardlab.envs.own_tools import Tool
from rewardlab.envs.tool_messages import SHOWN, answered, calls_of, cut, told_of
from rewardlab.errors import RewardlabError
from rewardlab.rewards.user.functions import find, only_function
from rewardlab.settings.domain import NonNegativeInt, PositiveFloat, PositiveInt
from rewardlab.util.extras import require
from rewardlab.verifiers.calls.calls import Call, Malformed

State = dict[str, Any]

ERROR = "error: "
OVER = "no call is left: answer with what you know"
JSON = (dict, list, tuple, int, float, bool, NoneType)


def place_of(written: str) -> tuple[Path, str]:
    """The file and the name of a tool: FILE.py:NAME, or FILE.py with one function. Raises RewardlabError for anything else."""
    if written.endswith(".py"):
        path = Path(written).expanduser()
        return path, only_function(path, "tool", "def search(query: str) -> str, with a docstring")
    where, _, name = written.rpartition(":")
    if not where.endswith(".py"):
        raise RewardlabError(f"a tool is written FILE.py:NAME, not {written!r}")
    return Path(where).expanduser(), name


@lru_cache(maxsize=32)
def tools_of(names: tuple[str, ...]) -> dict[str, Tool]:
    """The tools FILE.py:NAME, by their functions' names. Raises RewardlabError for one that is none, and for two of one name."""
    require("verify", "jsonschema", what="a tool")
    if not names:
        raise RewardlabError("functions needs tools: --tools FILE.py:NAME, several with commas between them")
    tools: dict[str, Tool] = {}
    for written in names:
        path, name = place_of(written)
        tool = Tool(find(path, name, "tool"), path, name)
        if tool.name in tools:
            raise RewardlabError(f"two tools are called {tool.name}: {tools[tool.name].path} and {path}")
        tools[tool.name] = tool
    return tools


def _start(
    problem: Problem, seed: int, *, tools: Sequence[str], calls: int, at_once: int, seconds: float, shown: int
) -> tuple[Message | None, State]:
    return told_of([tool.schema for tool in tools_of(tuple(tools)).values()]), {"calls": 0}


def _calls(episodes: Sequence[Trajectory], **_: Any) -> dict[str, float]:
    """calls: replies of an episode that call.  failed_calls: of these, the share of which an error was told."""
    answers = [turn.text for t in episodes for turn in t.turns[1:] if turn.author is None]
    failed = [any(text.startswith(ERROR) for text in told.split("\n\n")) for told in answers]
    return {"calls": len(answers) / max(1, len(episodes)), "failed_calls": sum(failed) / max(1, len(answers))}


@environment(start=_start, waits=True, logged=_calls)
def functions(
    state: State, turn: Turn, *, tools: tuple[str, ...] = (), calls: NonNegativeInt = 16, at_once: PositiveInt = 8,
    seconds: PositiveFloat = 30.0, shown: PositiveInt = SHOWN,
) -> tuple[Message | None, State]:  # fmt: skip
    """Runs the calls of a reply, all at the same time, and answers with what they give. A reply without calls is final.

    tools: functions FILE.py:NAME, which run in this process: they are yours, and trusted.  calls: the most of an episode, and
    at_once: of one reply; those above are not run, and the policy is told.  seconds: for one call.  shown: characters of a result.
    Logged: calls, the replies of an episode that call; failed_calls, the share of them of which an error was told.
    """
    known = tools_of(tuple(tools))
    asked = calls_of(turn.text, known)
    if asked is None:
        return None, state
    if isinstance(asked, Malformed):
        return answered([f"{ERROR}the calls cannot be read: {asked}"]), state
    left = calls - state["calls"]
    if left <= 0:
        return answered([f"{ERROR}{OVER}"]), state
    run = asked[: min(left, at_once)]
    told = [f"{ERROR}not run, as one reply may hold {at_once} calls and {left} of the episode are left"] * (len(asked) - len(run))
    results = _results([partial(_called, known, call, shown) for call in run], seconds)
    return answered(results + told), {"calls": state["calls"] + len(run)}


def _called(known: dict[str, Tool], call: Call, shown: int) -> str:
    """What a call gives, as a text, also where it fails."""
    if call.name not in known:
        return f"{ERROR}there is no function {call.name[:60]!r}; there are {', '.join(known)}"
    tool = known[call.name]
    try:
        return cut(_told(tool(call)), shown)
    # also what ends a program: a parser of arguments exits, and only this thread would end
    except BaseException as problem:
        return cut(f"{ERROR}{type(problem).__name__}: {_says(problem)}", shown)


def _told(value: Any) -> str:
    """What a function returned, as a text: in JSON what JSON knows, and any other thing (a table, an array) as Python shows it."""
    # as the policy writes it
    value = value.value if isinstance(value, Enum) else value
    if isinstance(value, str) or not isinstance(value, JSON):
        return str(value)
    try:
        return json.dumps(value, ensure_ascii=False, default=lambda inner: inner.value if isinstance(inner, Enum) else str(inner))
    except (TypeError, ValueError):
        # keys that are no texts, or a list within itself
        return str(value)


def _says(problem: BaseException) -> str:
    try:
        return str(problem)
    except Exception:
        return "an error without words"


def _results(works: Sequence[Callable[[], str]], seconds: float) -> list[str]:
    """What each gives, all at once; one that takes longer is left behind, since a thread cannot be stopped."""
    found: list[str | None] = [None] * len(works)

    def work(i: int) -> None:
        found[i] = works[i]()

    # daemons, so that one that never returns does not keep the process from ending
    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(len(works))]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return [f"{ERROR}it took longer than {seconds:g} seconds" if text is None else text for text in found]
