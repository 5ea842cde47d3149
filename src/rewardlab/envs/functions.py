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

import inspect
import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import NoneType
from typing import Any

from rewardlab.core import Message, Problem, Trajectory, Turn, environment
from rewardlab.envs.tool_messages import SHOWN, answered, calls_of, cut, told_of
from rewardlab.errors import RewardlabError
from rewardlab.rewards.user.functions import find, functions_in
from rewardlab.settings.domain import NonNegativeInt, PositiveFloat, PositiveInt
from rewardlab.util.background import wait_for
from rewardlab.util.extras import require
from rewardlab.verifiers.calls.calls import Call, Malformed, tools_from

State = dict[str, Any]

ERROR = "error: "
OVER = "no call is left: answer with what you know"
JSON = (dict, list, tuple, int, float, bool, NoneType)


class Tool:
    """A function that the policy may call.  schema: as chat templates take it, {"type": "function", "function": ...}."""

    def __init__(self, function: Callable, path: Path):
        import jsonschema

        self.function, self.name = function, function.__name__
        self.path, self.schema = path, schema_of(function, path)
        # made here, since its import would count among the seconds of the first call
        self.check = jsonschema.Draft202012Validator(_with_null(self.schema["function"]["parameters"]))

    def __call__(self, call: Call) -> Any:
        """What it returns. Raises TypeError where the arguments do not fit, and whatever the function raises."""
        given = call.bound(tools_from([self.schema]), defaults=False).arguments
        # before it runs, so that a TypeError within it is not taken for wrong arguments
        inspect.signature(self.function).bind(**given)
        _check_types(given, self.check)
        made = self.function(**given)
        # of asynchronous tools all run in one loop, to which their clients belong
        return wait_for(made, "tools") if inspect.iscoroutine(made) else made


def schema_of(function: Callable, path: Path) -> dict[str, Any]:
    """The JSON schema of a function. Raises RewardlabError that says what its hints or its docstring lack."""
    from transformers.utils import get_json_schema

    lacking, cause = _lacks(function), None
    try:
        if not lacking:
            return get_json_schema(function)
    except Exception as problem:
        # some of its errors hold the words and the hint apart
        says = "".join(map(str, problem.args)).replace(f"{function.__module__}.", "")
        # its first sentence: the others advise what cannot be done here
        lacking, cause = re.split(r"[.!] |[.!]?$", says, maxsplit=1)[0], problem
    raise RewardlabError(
        f"{function.__name__} of {path} cannot be a tool: {lacking}. A tool has type hints (int, str, list[str], Literal ...), and "
        "a docstring that says what it does and, under Args:, what each argument is (`name: what it is`)"
    ) from cause


def _lacks(function: Callable) -> str:
    """What keeps a function from being a tool that is seen from its signature; "" for nothing."""
    arguments = inspect.signature(function).parameters.values()
    if gathered := [str(p) for p in arguments if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]:
        return f"its arguments are given by name, and {gathered[0].partition(':')[0]} names none"
    if by_place := [p.name for p in arguments if p.kind is p.POSITIONAL_ONLY]:
        return f"its arguments are given by name, and {by_place[0]} comes before a /"
    if bare := [p.name for p in arguments if p.annotation is p.empty]:
        return f"the argument {bare[0]} has no type hint"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return "it yields, and a tool returns its result"
    return "" if inspect.getdoc(function) else "it has no docstring"


@lru_cache(maxsize=32)
def tools_of(names: tuple[str, ...]) -> dict[str, Tool]:
    """The tools FILE.py:NAME, by their functions' names. Raises RewardlabError for one that is none, and for two of one name."""
    require("verify", "jsonschema", what="a tool")
    if not names:
        raise RewardlabError("functions needs tools: --tools FILE.py:NAME, several with commas between them")
    tools: dict[str, Tool] = {}
    for written in names:
        where, _, name = written.rpartition(":")
        if not where.endswith(".py"):
            has = functions_in(Path(name), "tool")[:8] if name.endswith(".py") else []
            of_file = f"; there are {', '.join(f'{Path(name).name}:{x}' for x in has)}" if has else ""
            raise RewardlabError(f"a tool is written FILE.py:NAME, not {written!r}{of_file}")
        path = Path(where).expanduser()
        function = find(path, name, "tool")
        if not inspect.isfunction(function):
            raise RewardlabError(f"{name} of {path} is no function, and tools are functions")
        tool = Tool(function, path)
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
    if isinstance(value, str) or not isinstance(value, JSON):
        return str(value)
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
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


def _with_null(schema: Any) -> Any:
    """The schema as it is checked. `nullable`, by which models are told of Optional, is no word of JSON Schema."""
    if isinstance(schema, list):
        return [_with_null(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: _with_null(value) for name, value in schema.items()}
    # True: an argument may be called nullable
    if inner.get("nullable") is True:
        types = inner.get("type", ())
        more = {"type": [*([types] if isinstance(types, str) else types), "null"], "enum": [*inner.get("enum", ()), None]}
        more["anyOf"] = [*inner.get("anyOf", ()), {"type": "null"}]
        inner |= {name: value for name, value in more.items() if name in inner}
    return inner


def _check_types(given: Mapping[str, Any], check: Any) -> None:
    """Raise TypeError where an argument is not of the type that its hint says.  check: the tool's validator of jsonschema."""
    from jsonschema.exceptions import best_match

    if problem := best_match(check.iter_errors(given)):
        raise TypeError(f"{'.'.join(map(str, problem.absolute_path)) or 'the arguments'}: {problem.message[:200]}")
