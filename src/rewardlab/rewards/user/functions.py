"""The user's functions: found in a file or a module, and how their signatures want them called."""

from __future__ import annotations

import ast
import difflib
import functools
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from rewardlab.core.part import PartFactory
from rewardlab.errors import RewardlabError, unknown
from rewardlab.rewards.completion_types import says_text, takes_messages
from rewardlab.rewards.user.conventions import GROUPS, Rubric, is_rubric, meanings, recognised
from rewardlab.rewards.user.held import name_of
from rewardlab.verifiers.contract import GOLD, REPLY

QUESTION = ("prompt", "question")
SINGULAR = ("trajectory", "completion_id", "query", *REPLY, *QUESTION, *GOLD, "meta", "data_source", "extra_info")
PLURAL = {(name[:-1] + "ies" if name[-1] == "y" else name + "s"): name for name in SINGULAR if name != "meta"} | {"metas": "meta"}
"""Arguments that hold a list, one entry for each rollout, and what an entry is."""


class Call:
    """A user's function, its file, and how it is called.

    convention: whose manner it is written in (None: as its arguments tell).  means: what each of its arguments is, by name.
    messages: prompts and completions are handed over as lists of {"role", "content"}.  batched: one call scores many rollouts,
    with a list for every argument; `grouped`: those of one prompt.  open: it has **columns, so it gets every column of the data.
    """

    def __init__(self, function: Callable, path: Path, convention: str | None = None):
        self.function, self.path = function, path
        self.name = name_of(function)
        try:
            self.parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError) as e:
            raise RewardlabError(f"{self.who} has no signature to read its arguments from: {e}") from e
        self.open = any(p.kind is p.VAR_KEYWORD for p in self.parameters)
        self.named = [p for p in self.parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        self.convention = convention or recognised({p.name for p in self.named})
        self.means = meanings(self.named, convention)
        # to functions of verifiers, lists are of one group
        of_verifiers = self.convention == "verifiers"
        self.plural = {**PLURAL, **GROUPS} if of_verifiers else PLURAL
        listed = not self.plural.keys().isdisjoint(self.means.values())
        self.grouped = "group" in self.means.values() or (of_verifiers and listed)
        self.batched = self.grouped or listed or convention == "trl"
        self.messages = takes_messages(function) or (of_verifiers and not says_text(function))

    def singular(self, parameter: inspect.Parameter) -> str:
        """What one entry of an argument is."""
        meaning = self.means[parameter.name]
        return self.plural.get(meaning, meaning)

    @property
    def who(self) -> str:
        return f"the reward {self.name} of {self.path}"

    @property
    def gold(self) -> list[str]:
        """The arguments without a default that hold the gold answer."""
        return [p.name for p in self.named if self.singular(p) in GOLD and p.default is p.empty]


def find(path: Path, name: str, what: str = "reward") -> Any:
    """The function, or decorated reward, of this name in a Python file. If there is none, raises RewardlabError that lists those
    there.  what: it is to be, for the error.
    """
    return _named(module_in(path, what), str(existing(path, what)), name)


def module_in(path: Path, what: str = "reward") -> ModuleType:
    """The module that a Python file is, imported anew where it has changed."""
    path = existing(path, what)
    return _load(path, path.stat().st_mtime_ns)


def find_in_module(module: str, name: str, path: str | None = None) -> Any:
    """The function, or decorated reward, of this name in a module that can be imported.

    path: its file, which is read where no module of this name is found, or another one.
    """
    try:
        loaded = importlib.import_module(module)
    except Exception as e:
        if path is None or not Path(path).is_file():
            raise RewardlabError(f"cannot import {module}: {type(e).__name__}: {e}") from e
        return find(Path(path), name)
    elsewhere = path is not None and Path(path).is_file() and getattr(loaded, "__file__", None) != path
    return find(Path(str(path)), name) if elsewhere else _named(loaded, module, name)


def only_function(path: Path, what: str = "reward", such_as: str = "def score(completion, answer)") -> str:
    """The name of the only function in a Python file. Raises RewardlabError that lists them if there are several, or none."""
    return only(functions_in(path, what), path, "function", f"to use as a {what}; write one, such as: {such_as}")


def only(names: list[str], path: Path, what: str, lacking: str) -> str:
    """The only one of these names. Raises RewardlabError that lists them if there are several, or none.

    lacking: what to do where there is none.
    """
    if len(names) == 1:
        return names[0]
    if not names:
        raise RewardlabError(f"{path} has no {what} {lacking}")
    commands = ", ".join(f"{path.name}:{name}" for name in names)
    raise RewardlabError(f"which {what} of {path}? It has {len(names)}; give one of {commands}")


def functions_in(path: Path, what: str = "reward") -> list[str]:
    """The names of the functions of a Python file, in order. Raises RewardlabError where it cannot be read."""
    path = existing(path, what)
    try:
        # read, not imported: an audit imports the file in a process of its own
        tree = ast.parse(path.read_text("utf-8"))
    except (SyntaxError, ValueError) as e:
        raise RewardlabError(f"cannot read {path}, line {getattr(e, 'lineno', None) or 1}: {type(e).__name__}: {e}") from e
    return [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) and n.name[0] != "_"]


def prepared(found: Any, path: Path, settings: Mapping[str, Any] | None, convention: str | None = None) -> Any:
    """A function, or a rubric of verifiers, as a `Call`, and a decorated reward as a part.

    settings: of the decorated reward, or those for which the function returns the function to use; None: the function itself.
    convention: whose manner the function is written in; None: as its arguments tell.
    """
    if isinstance(found, PartFactory):
        return found(**(settings or {}))
    if is_rubric(found):
        return Call(Rubric(found, "rubric"), path, "verifiers")
    if settings is None:
        if inspect.isclass(found):
            made = f"{path.name}:{found.__name__}({_needed(found)})"
            raise RewardlabError(f"{found.__name__} of {path} is a class, and an object of it is the reward: {made}")
        return Call(found, path, convention)
    try:
        made = found(**settings)
    except Exception as e:
        raise RewardlabError(f"{found.__name__} of {path} cannot be called with {settings}: {type(e).__name__}: {e}") from e
    if not callable(made) and not is_rubric(made):
        raise RewardlabError(f"{found.__name__}(...) of {path} returned {made!r}, not a function; leave the brackets away?")
    return prepared(made, path, None, convention) if is_rubric(made) else Call(made, path, convention)


def _needed(found: type) -> str:
    """The settings without which no object of a class is made."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return ""
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return ", ".join(f"{p.name}=..." for p in parameters if p.default is p.empty and p.kind in by_name)


def existing(path: Path, what: str = "reward") -> Path:
    """The absolute path of a file; RewardlabError where there is none, by what it is to hold."""
    if (found := path.expanduser().resolve()).is_file():
        return found
    near = difflib.get_close_matches(found.name, [p.name for p in found.parent.glob("*.py")], n=1)
    raise RewardlabError(f"there is no {what} file {path}" + (f"; did you mean {near[0]}?" if near else ""))


def _named(module: ModuleType, where: str, name: str) -> Any:
    function: Any = module
    # a method of an object is named with it: desk.lookup
    for part in name.split("."):
        function = getattr(function, part, None)
    if callable(function) or is_rubric(function):
        return function
    found = _functions(module)
    if function is None and not hasattr(module, name):
        raise unknown(f"function in {where}:", name, found)
    there = f"; functions there: {', '.join(found)}" if found else ""
    raise RewardlabError(f"{name} of {where} is no function but {_kind(function)}{there}")


def _kind(value: Any) -> str:
    """What something is, in words."""
    if value is None or isinstance(value, ModuleType):
        return "None" if value is None else f"the module {value.__name__}"
    return f"of the type {type(value).__name__}"


def _functions(module: ModuleType) -> list[str]:
    """The names of the functions and decorated rewards that a module defines itself, in their order."""
    found = {k: getattr(v, "function", v) if isinstance(v, PartFactory) else v for k, v in vars(module).items() if k[0] != "_"}
    return [k for k, v in found.items() if inspect.isfunction(v) and v.__module__ == module.__name__]


class _FromSource(SourceFileLoader):
    """Reads the source each time: Python would take a file of the same second and length for the one that it has compiled."""

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.get_data(self.path), self.path)


@functools.lru_cache(maxsize=16)
def _load(path: Path, changed: int) -> ModuleType:
    """Import a file. `changed`, its modification time, is part of the cache's key, so an edited file is imported again."""
    # the hash tells apart two files of the same name
    name = f"rewardlab_user_{path.stem}_{abs(hash(path))}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_FromSource(name, str(path)))
    if spec is None or spec.loader is None:
        raise RewardlabError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    # dataclasses and pickle look up the module of a class in sys.modules
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as e:
        lines = [f.lineno for f in traceback.extract_tb(e.__traceback__) if f.filename == str(path)]
        line = e.lineno if isinstance(e, SyntaxError) else lines[-1] if lines else None
        raise RewardlabError(f"cannot import {path}" + (f", line {line}" if line else "") + f": {type(e).__name__}: {e}") from e
    return module
