"""A hash of the code that a definition reaches, invariant under moves, renames and documentation.

    hash = H(sorted round-3 hashes of all definitions reached)
    round 0 of a definition: H(its syntax tree, without docstrings, with numbers for the names of definitions of the package)
    round k: H(the same, the round k-1 hashes of those that it names)

A definition is a function, a class, or what is assigned to a name at the top of a file. It reaches the definitions of the package
that its names stand for, through imports. Records and caches are kept by such hashes: a piece that moves to another file, or gets a
better name, confirms them; one that computes something else does not.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rewardlab.registry.definitions import skeleton
from rewardlab.registry.find import PACKAGE, methods
from rewardlab.registry.index import kept_while
from rewardlab.registry.modules import Key, module

ROUNDS = 3
"""How far around a definition its hash tells which of two definitions stands where."""
Start = tuple[Path, str | None]
"""Where to begin: a definition, or, without a name, all definitions of a file."""


def hash_of(starts: Iterable[Start], settings: Any = None, follow: Callable[[Path], bool] = lambda path: True) -> str:
    """The hash of what these definitions reach in the files that `follow` accepts, and of `settings`."""
    reach = frozenset(starts)
    hashes = _kept(reach, follow) if reach else ""
    return _digest("\n".join([*filter(None, [hashes]), repr(settings)]))


@functools.lru_cache(256)
def _kept(starts: frozenset[Start], follow: Callable[[Path], bool]) -> str:
    """The hashes of all definitions that these reach: the same for many settings, as of the runs of a league, and in every process
    while no file changes; to compute them takes seconds.
    """
    files = _package()
    # a user's own files too: a text may name a part in any of them
    own = sorted({*methods().values(), *(path for path, _ in starts)} - set(files))
    told = [(str(path), _digest(path.read_text("utf-8")), follow(path)) for path in own]
    asked = repr((sorted((str(path), name or "") for path, name in starts), [follow(path) for path in files], told))
    return kept_while(files, "code", asked, lambda: "\n".join(_hashes(starts, follow)))


@functools.cache
def _package() -> tuple[Path, ...]:
    return tuple(sorted(PACKAGE.rglob("*.py")))


def _hashes(starts: frozenset[Start], follow: Callable[[Path], bool]) -> list[str]:
    keys = reached(starts, follow)
    hashes = {key: _digest(skeleton(key)[0]) for key in keys}
    for _ in range(ROUNDS):
        around = {key: [hashes.get(other, "") for other in skeleton(key)[1]] for key in keys}
        hashes = {key: _digest("\n".join([skeleton(key)[0], *around[key]])) for key in keys}
    return sorted(hashes.values())


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def reached(starts: Iterable[Start], follow: Callable[[Path], bool] = lambda path: True) -> set[Key]:
    """The definitions that these reach, themselves among them."""
    waiting = [key for path, name in starts for key in _keys(path, name)]
    found: set[Key] = set()
    while waiting:
        key = waiting.pop()
        if key not in found:
            found.add(key)
            waiting += [other for other in skeleton(key)[1] if follow(other[0])]
    return found


@functools.cache
def room_of(path: Path) -> str:
    """The first folder of a file of the package; "" outside it."""
    return path.relative_to(PACKAGE).parts[0] if PACKAGE in path.parents else ""


def changed() -> None:
    """Forget what was read: files have changed since."""
    for cached in (module, skeleton, _kept, _package):
        cached.cache_clear()


def _keys(path: Path, name: str | None) -> list[Key]:
    return [(path, own) for own in module(path).own] if name is None else [(path, name)]
