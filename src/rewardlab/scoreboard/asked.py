"""Benchmarks of rewards by their names, and which of their items are asked."""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab import registry
from rewardlab.errors import RewardlabError, unknown
from rewardlab.registry.find import PACKAGE
from rewardlab.registry.index import kept_while
from rewardlab.scoreboard import figures, own_pairs
from rewardlab.scoreboard.benchmark import Benchmark, data_folder
from rewardlab.scoreboard.items import Item
from rewardlab.settings.domain import POSITIVE
from rewardlab.util.progress import Bar

EVERY = ""
"""In limits by benchmark: of each that is not named."""


@dataclass(frozen=True)
class Asked:
    """A benchmark with the items that are asked, of so many (`of`), and the resamples (`index`) of its intervals.  equal: rows
    that count once with an earlier one.  other: rows that are left out since an earlier one, which asks something else, has their
    id; the first is at `where`."""

    name: str
    benchmark: Benchmark
    items: list[Item]
    seed: int
    of: int = 0
    equal: int = 0
    other: int = 0
    where: str = ""

    @cached_property
    def index(self) -> list[np.ndarray]:
        return figures.resamples(self.items, self.seed)

    def only(self, places: Sequence[int]) -> Asked:
        """The same with some of its items: those that a file of outputs is about."""
        return self if len(places) == len(self.items) else replace(self, items=[self.items[i] for i in places])

    def with_texts(self) -> Asked:
        """The same without items whose texts are not at hand. Raises RewardlabError where none is left."""
        known = [i for i, item in enumerate(self.items) if not item.blank]
        if not known:
            raise RewardlabError(
                f"the replies of {self.benchmark.title} are not among the data at hand: give --data FILE, or outputs:FILE of others"
            )
        return self.only(known)


def benchmarks() -> list[str]:
    """The names of all benchmarks of rewards; the last is a file of pairs of one's own. Those of other things make none."""
    return [*sorted(name for name in _of_that_kind() if _of_module(name) is not None), own_pairs.NAME]


def benchmark_of(name: str) -> Benchmark:
    """The benchmark of rewards of this name, in either spelling. Raises RewardlabError for another one."""
    plain = plain_name(name)
    if plain == own_pairs.NAME:
        return own_pairs.benchmark
    known = _of_that_kind()
    found = _of_module(plain) if plain in known else None
    if found is None and plain in known:
        raise RewardlabError(f"{plain} is a benchmark of other things than rewards; run it with: rewardlab study {plain}")
    if found is None:
        raise unknown("benchmark", name, benchmarks())
    return found


def _of_that_kind() -> list[str]:
    """The names of all benchmarks, of whatever."""
    return [row["name"] for row in registry.rows() if row["kind"] == "benchmark"]


def _of_module(name: str) -> Benchmark | None:
    return getattr(importlib.import_module(registry.method(name).__module__), "benchmark", None)


def plain_name(name: str) -> str:
    """A benchmark's name as its file has it, from either spelling."""
    return name.replace("-", "_").replace(".", "_").lower()


def asked(name: str, data: str | Path | None = None, limit: int | None = None, seed: int = 0) -> Asked:
    """A benchmark with its items, or some of them, chosen by chance."""
    benchmark = benchmark_of(name)
    items, equal, other, where = benchmark.counted(data)
    of = len(items)
    if limit is not None and limit < len(items):
        from rewardlab.core import seed_of

        # in the order of the file, whichever are chosen
        chosen = random.Random(seed_of("scoreboard", seed)).sample(range(len(items)), limit)
        items = [items[i] for i in sorted(chosen)]
    return Asked(plain_name(name), benchmark, items, seed, of, equal, other, where)


def limits(limit: int | Mapping[str, int] | None, on: Sequence[str]) -> dict[str, int]:
    """How many items are asked of those benchmarks that are not asked whole. Raises RewardlabError for one that is not asked."""
    said = {} if limit is None else {EVERY: limit} if isinstance(limit, int) else limit
    known = {plain_name(name) for name in on}
    found = dict.fromkeys(known, said[EVERY]) if EVERY in said else {}
    for name, count in said.items():
        if name != EVERY and plain_name(name) not in known:
            raise unknown("benchmark with a limit", name, known)
        POSITIVE.check(f"the limit of {name or 'each benchmark'}", count)
    return found | {plain_name(name): count for name, count in said.items() if name != EVERY}


def at_hand() -> dict[str, dict[str, Any]]:
    """Each benchmark: its title, how many items are at hand, and where (or what its file is called on the hub).

    To count them all are read; what came out is kept while neither the data nor the code changes.
    """
    root = data_folder()
    files = [path for path in root.glob("*/*") if path.is_file()]
    code = [*PACKAGE.rglob("*.py"), *registry.methods().values()]
    # a folder may be named from where the command runs
    where = f"{root} in {Path.cwd()}"
    return json.loads(kept_while(sorted({*files, *code}), "benchmarks", where, lambda: json.dumps(_counted())))


def _counted() -> dict[str, dict[str, Any]]:
    found, names = {}, benchmarks()
    with Bar("counting items", len(names)) as bar:
        for name in names:
            one = benchmark_of(name)
            try:
                files, items = one.files(), one.made or sum(not item.blank for item in one.items())
                where = str(files[0].parent) if items else f"{files[0].parent}: no replies, but outputs of others"
            except RewardlabError:
                items, where = 0, f"not here: --data FILE{f' or hf:{one.hub}' if '/' in one.hub and not one.load else ''}"
            found[name] = {"title": one.title, "items": items, "where": where}
            bar.advance()
    return found


def with_data() -> list[str]:
    """The benchmarks whose data is at hand. Raises RewardlabError where there is none."""
    found = [name for name, about in at_hand().items() if about["items"]]
    if not found:
        raise RewardlabError("no benchmark's data is at hand: set REWARDLAB_DATA to its folder, or name one with --on and --data")
    return found
