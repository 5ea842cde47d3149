"""Find methods by name: their files, modules and recipes. Methods are found by walking folders; there is no list to edit.

    methods/baselines/grpo.py   holds   def grpo(base=None, *, group_size=8, ...) -> Recipe

Folders with methods of your own: REWARDLAB_METHODS=DIR, holding DIR/FOLDER/NAME.py.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rewardlab.errors import RewardlabError, located, unknown
from rewardlab.registry.bases import plain_base

if TYPE_CHECKING:
    from rewardlab.core import Recipe
    from rewardlab.registry.settings import Method, Parameter
PACKAGE = Path(__file__).parents[1]
SETTLED = 2_000_000_000
"""Nanoseconds after which a time stamp tells two versions of a file or folder apart: some file systems count in whole seconds."""


def method_roots() -> list[Path]:
    """The package's methods, then the folders in REWARDLAB_METHODS. Raises RewardlabError for one that holds no methods."""
    extra = os.environ.get("REWARDLAB_METHODS", "").split(os.pathsep)
    roots = [Path(folder).resolve() for folder in extra if folder]
    for root in roots:
        if not root.is_dir():
            raise RewardlabError(f"REWARDLAB_METHODS names {root}, which is no folder")
        if not any(root.glob("*/*.py")):
            raise RewardlabError(f"REWARDLAB_METHODS names {root}, which holds no FOLDER/NAME.py; name the folder of such folders")
    return [PACKAGE / "methods", *roots]


def methods() -> dict[str, Path]:
    """Name to file of every method. Of two files of one name it is the first; `file_of` refuses such a name."""
    return {name: paths[0] for name, paths in _files().items() if name.isidentifier()}


def _files() -> Mapping[str, list[Path]]:
    """Name to files that are named so."""
    roots = tuple(method_roots())
    changed = tuple(stamp for root in roots for stamp in _changed(root))
    # a folder that changed just now may change again within one tick of its time stamp
    return (_files_in if time.time_ns() - max(changed) > SETTLED else _files_in.__wrapped__)(roots, changed)


def _changed(root: Path) -> list[int]:
    """When a folder of methods and each folder in it were last changed, in nanoseconds."""
    with os.scandir(root) as found:
        return [os.stat(root).st_mtime_ns, *(one.stat().st_mtime_ns for one in found if one.is_dir())]


@functools.lru_cache(4)
def _files_in(roots: tuple[Path, ...], changed: tuple[int, ...]) -> Mapping[str, list[Path]]:
    """Name to files in these folders, walked once for each time at which one of them changed: names are looked up everywhere."""
    files: dict[str, list[Path]] = {}
    for path in (path for root in roots for path in sorted(root.glob("*/*.py"))):
        # `_100_days` is a method whose name begins with a digit; other names that begin with an underscore are not methods
        if not path.stem.startswith("_") or path.stem[1:2].isdigit():
            files.setdefault(path.stem, []).append(path)
    return files


def spell(name: str) -> str:
    """The file name of a method: `ixc-2.5-reward` is ixc_2_5_reward, and a leading digit follows `_`."""
    name = re.sub(r"[-.]", "_", name.strip())
    return f"_{name}" if name[:1].isdigit() else name


def file_of(name: str) -> Path:
    """The file of a method. Raises RewardlabError for a name that does not exist, with the nearest that do, and for two files."""
    files = _files()
    if paths := files.get(spell(name)):
        if len(paths) > 1:
            raise RewardlabError(f"two methods are named {spell(name)}: {paths[0]} and {paths[1]}; rename one")
        return paths[0]
    if wrong := files.get(name):
        raise RewardlabError(f"{wrong[0]} is no module that can be imported; rename it {spell(name)}.py")
    several = re.split(r"[\s,&]+", name.strip())
    if len(several) > 1 and all(spell(part) in files for part in several):
        raise RewardlabError(f"{name!r} is not one method; methods are stacked with a plus: {'+'.join(several)}")
    raise unknown("method", name, methods())


def module_of(name: str) -> ModuleType:
    """A method's module, imported now."""
    path = file_of(name)
    # folders in REWARDLAB_METHODS join the package, so that their parts are saved under names of the same form
    _join("rewardlab.methods", method_roots())
    try:
        # one of theirs may have the name of one of the package's
        _join(f"rewardlab.methods.{path.parent.name}", [root / path.parent.name for root in method_roots()])
        return importlib.import_module(f"rewardlab.methods.{path.parent.name}.{path.stem}")
    except Exception as e:
        raise RewardlabError(f"cannot import {located(e, str(path))}") from e


def _join(package: str, folders: Iterable[Path]) -> None:
    """Let a package hold the modules of these folders too."""
    known = importlib.import_module(package).__path__
    for folder in map(str, folders):
        if folder not in known:
            known.append(folder)


def method(name: str) -> Callable[..., Recipe]:
    """A method's function, imported now."""
    function = getattr(module_of(name), spell(name), None)
    if not callable(function):
        raise RewardlabError(f"{file_of(name)} has no function {spell(name)}; a method file holds a function of its own name")
    return function


def claim_of(name: str) -> Any:
    """What the file of a method promises: its `check` or its `claim`; None where it makes neither."""
    module = module_of(name)
    return getattr(module, "check", None) or getattr(module, "claim", None)


def parameters(name: str) -> list[Parameter]:
    """(flag, type, default, method) of every setting of a method or a stack."""
    from rewardlab.registry.settings import parameters

    return parameters(stacked(name), beneath(name))


def names_in(stack: str) -> list[str]:
    """The methods of a stack, `grpo+hapo`. Raises RewardlabError where a name is missing."""
    names = stack.split("+")
    if not all(map(str.strip, names)):
        where = " beside a +" if "+" in stack else ""
        raise RewardlabError(f"{stack!r} lacks the name of a method{where}; a stack is written grpo+hapo")
    return names


def stacked(name: str) -> list[Method]:
    return [(spell(n), method(n)) for n in names_in(name)]


def base_of(stack: str) -> str | None:
    """The method that a stack builds on without saying so: `grpo` for hapo, which alone is the stack grpo+hapo."""
    first = names_in(stack)[0]
    try:
        found = plain_base(file_of(first), spell(first))
    except (SyntaxError, ValueError):
        return None
    return found if found in methods() and found not in map(spell, names_in(stack)) else None


def beneath(name: str) -> Method | None:
    """The method that a method or a stack builds on without saying so: grpo for hapo, which alone is the stack grpo+hapo."""
    base = base_of(name)
    return (base, method(base)) if base else None
