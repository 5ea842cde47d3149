"""Rewards written by the user: a Python function in a file.

    def my_reward(completion, answer): return float(answer in completion)            one call per rollout
    def my_reward(completions, answers, **columns): return [...]                     one call for all, as in TRL
    def compute_score(data_source, solution_str, ground_truth, extra_info): ...      as in verl

Arguments are passed by name: the names below, their plurals, `run`, and every column of the data.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.errors import RewardlabError, unknown
from rewardlab.verifiers.contract import GOLD

from .reward import reward

REPLY = ("response", "completion", "reply", "text", "solution_str")
QUESTION = ("prompt", "question")
SINGULAR = ("trajectory", "completion_id", *REPLY, *QUESTION, *GOLD, "meta", "data_source", "extra_info")
PLURAL = {(name[:-1] + "ies" if name[-1] == "y" else name + "s"): name for name in SINGULAR if name != "meta"} | {"metas": "meta"}

_MISSING = inspect.Parameter.empty


@reward(over="groups")
def from_file(groups: list[Group], run: Run, *, path: str, function: str) -> Scores:
    """The result of `function` in the Python file `path`: a number, a bool, None for no verdict, or {"score": number}.

    A function with an argument of any plural name (completions, answers) is called once, with a list for every argument, and
    returns a list. A column of the data takes precedence over an alias of the same name, except for the reply. The term is named
    after the function. Raises RewardlabError, with file and line, for any error in the function.
    """
    return score_by(find(Path(path), function), groups, run)


def score_by(call: Call, groups: list[Group], run: Run) -> Scores:
    """The scores of a user's function. Raises RewardlabError as `from_file` does."""
    flat = [(f"rollout {i} of group {g}", trajectory) for g, group in enumerate(groups) for i, trajectory in enumerate(group)]
    results = iter(_together(call, flat, run) if _plural(call) else [_alone(call, *rollout, run) for rollout in flat])
    return [[next(results) for _ in group] for group in groups]


class Call:
    """A user's function and its file.

    messages: pass prompts and completions as lists of {"role", "content"}, as TRL does in conversations.
    """

    def __init__(self, function: Callable, path: Path, messages: bool = False):
        self.function, self.path, self.messages = function, path, messages
        self.name = getattr(function, "__name__", type(function).__name__)
        self.parameters = inspect.signature(function).parameters.values()
        # takes **columns, so it gets every column of the data
        self.open = any(p.kind is p.VAR_KEYWORD for p in self.parameters)
        self.named = [p for p in self.parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]

    def __call__(self, values: dict[str, Any], place: str) -> Any:
        first = [values[p.name] for p in self.named if p.kind is p.POSITIONAL_ONLY and p.name in values]
        keywords = {k: v for k, v in values.items() if not any(p.name == k and p.kind is p.POSITIONAL_ONLY for p in self.named)}
        try:
            # the user's code may raise anything; the error names their file and line instead of ours
            return self.function(*first, **keywords)
        except Exception as e:
            raise RewardlabError(f"{self.where(e)}: {type(e).__name__}: {e} ({place})") from e

    def where(self, error: BaseException | None = None) -> str:
        frames = traceback.extract_tb(error.__traceback__) if error else []
        # the last frame in the user's file: deeper ones are in libraries that it called
        lines = [frame.lineno for frame in frames if frame.filename == str(self.path)]
        return f"the reward {self.name} of {self.path}" + (f", line {lines[-1]}" if lines else "")


def _plural(call: Call) -> bool:
    return any(p.name in PLURAL for p in call.named)


def _alone(call: Call, place: str, trajectory: Trajectory, run: Run) -> Score:
    """The score of one rollout by one call. place: how messages name the rollout."""
    values = {p.name: _value(call, p, p.name, trajectory, run, place) for p in call.named}
    if call.open:
        values = {
            "prompt": _prompt(call, trajectory),
            "answer": trajectory.problem.answer,
            **trajectory.problem.meta,
        } | values
    return _score(call, call({k: v for k, v in values.items() if v is not _MISSING}, place), place)


def _together(call: Call, flat: list[tuple[str, Trajectory]], run: Run) -> list[Score]:
    """The scores of all rollouts, given as (place, trajectory), by one call with a list for every argument."""
    if not flat:
        return []
    values: dict[str, Any] = {}
    if call.open:
        # problems may differ in their columns; a column that one lacks is None for it
        columns = dict.fromkeys(k for _, t in flat for k in t.problem.meta)
        values = {k: [t.problem.meta.get(k) for _, t in flat] for k in columns}
        values |= {
            "prompts": [_prompt(call, t) for _, t in flat],
            "answer": [t.problem.answer for _, t in flat],
        } | values
    for p in call.named:
        name = PLURAL.get(p.name, p.name)
        column = [_value(call, p, name, t, run, place) for place, t in flat]
        if any(v is not _MISSING for v in column):
            # there is one run, not one per rollout; a name that no rollout has keeps its default
            values[p.name] = run if p.name == "run" else [None if v is _MISSING else v for v in column]
    results = call(values, f"{len(flat)} rollouts at once")
    try:
        results = list(results)
    except TypeError:
        raise RewardlabError(f"{call.where()} takes lists, so it must return a list, not {results!r}") from None
    if len(results) != len(flat):
        raise RewardlabError(f"{call.where()} returned {len(results)} rewards for {len(flat)} rollouts")
    return [_score(call, result, place) for result, (place, _) in zip(results, flat, strict=True)]


def _value(call: Call, p: inspect.Parameter, name: str, trajectory: Trajectory, run: Run, place: str) -> Any:
    """The value for the argument `p`, by its singular name; `_MISSING` if it keeps its default."""
    problem = trajectory.problem
    fixed = {"trajectory": trajectory, "run": run, "meta": dict(problem.meta)} | dict.fromkeys(REPLY, trajectory.reply)
    fixed["completion"] = _completion(call, trajectory)
    if name == "completion_id":
        fixed[name] = _ids(trajectory)
    aliases = dict.fromkeys(QUESTION, _prompt(call, trajectory)) | dict.fromkeys(GOLD, problem.answer)
    extra = {"data_source": "", "extra_info": dict(problem.meta)}
    # later tables win: a column replaces an alias such as `prompt`, but not the reply
    known = extra | aliases | dict(problem.meta) | fixed
    if name in known:
        return known[name]
    if p.default is _MISSING:
        raise RewardlabError(f"{call.where()} asks for {unknown('argument', p.name, {*known, *PLURAL})} ({place})")
    return _MISSING


def _prompt(call: Call, trajectory: Trajectory) -> Any:
    question = trajectory.problem.question
    return [{"role": "user", "content": question}] if call.messages else question


def _completion(call: Call, trajectory: Trajectory) -> Any:
    return [{"role": "assistant", "content": trajectory.reply}] if call.messages else trajectory.reply


def _ids(trajectory: Trajectory) -> list[int]:
    """The tokens of the reply, as TRL passes them."""
    return [int(i) for turn in trajectory.turns[-1:] for i in turn.ids]


def _score(call: Call, result: Any, place: str) -> Score:
    plain = result.get("score", _MISSING) if isinstance(result, dict) else result
    try:
        value = None if plain is None else float(plain)
        # float("1") would accept text, which is more likely a returned reply than a score
        if isinstance(plain, str | bytes):
            raise TypeError
    except (TypeError, ValueError):
        expected = 'a number, a bool, None or {"score": number}'
        raise RewardlabError(f"{call.where()} returned {result!r}, not {expected} ({place})") from None
    return Score(value).named(call.name)


def find(path: Path, name: str) -> Call:
    """The function of this name in a Python file. If there is none, raises RewardlabError that lists the functions there."""
    path = path.resolve()
    if not path.is_file():
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*.py")], n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise RewardlabError(f"there is no reward file {path}{hint}")
    module = _load(path, path.stat().st_mtime_ns)
    functions = [k for k, v in vars(module).items() if inspect.isfunction(v) and not k.startswith("_")]
    if not callable(function := getattr(module, name, None)):
        raise unknown(f"function in {path}:", name, functions)
    return Call(function, path)


def find_in_module(module: str, name: str) -> Call:
    """The function of this name in an installed module."""
    try:
        loaded = importlib.import_module(module)
    except Exception as e:
        raise RewardlabError(f"cannot import {module}: {type(e).__name__}: {e}") from e
    if not callable(function := getattr(loaded, name, None)):
        functions = [k for k, v in vars(loaded).items() if inspect.isfunction(v) and not k.startswith("_")]
        raise unknown(f"function in {module}:", name, functions)
    return Call(function, Path(loaded.__file__ or module))


@functools.lru_cache(maxsize=16)
def _load(path: Path, changed: int) -> ModuleType:
    """Import a file. `changed`, its modification time, is part of the cache's key, so an edited file is imported again."""
    # the hash tells apart two files of the same name
    name = f"rewardlab_user_{path.stem}_{abs(hash(path))}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RewardlabError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    # dataclasses and pickle look up the module of a class in sys.modules
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        lines = [f.lineno for f in traceback.extract_tb(e.__traceback__) if f.filename == str(path)]
        line = e.lineno if isinstance(e, SyntaxError) else lines[-1] if lines else None
        raise RewardlabError(f"cannot import {path}" + (f", line {line}" if line else "") + f": {type(e).__name__}: {e}") from e
    return module
