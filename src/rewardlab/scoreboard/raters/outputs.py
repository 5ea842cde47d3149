"""Outputs of others: verdicts in a file, scored by the same code as any model's.

    outputs:FILE          all raters in it, each a row of the table;  outputs:FILE#RATER: one of them

A file in a benchmark's own published format is read where the benchmark knows it. Ours has a line for each item: its "id", and
"scores": [...] of the replies in their order, or "orders": [[0, 1, 1.0], [1, 0, 0.0]] (the reply shown first, the other one, how
far the first is preferred), or "steps": [[...]]; with "rater" and "benchmark" where a file holds several.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rewardlab.data.files import rows_of
from rewardlab.errors import RewardlabError, unknown
from rewardlab.scoreboard.items import Item, Verdict
from rewardlab.scoreboard.raters.rater import Rater

if TYPE_CHECKING:
    from rewardlab.scoreboard.benchmark import Benchmark

PREFIX = "outputs:"


class Outputs(Rater):
    """The verdicts of one rater on one benchmark."""

    asks = ("replies", "steps")
    places = True

    def __init__(self, name: str, known: dict[str, Verdict], digest: str):
        super().__init__(name)
        self.known, self.digest = known, digest

    def fingerprint(self) -> str:
        return f"outputs {self.name} {self.digest}"

    def judge(self, items: Sequence[Item], benchmark: Benchmark) -> list[Verdict]:
        return [self.known.get(item.id, Verdict(why="not in the file")) for item in items]


def raters_in(name: str, benchmark: Benchmark, key: str) -> list[Outputs]:
    """The raters of `outputs:FILE` or `outputs:FILE#RATER` on one benchmark, whose name is `key`.

    Raises RewardlabError for a file that is not there or holds nothing of this benchmark, and for an unknown rater.
    """
    place, _, only = name.removeprefix(PREFIX).partition("#")
    path = Path(place).expanduser()
    if not place or path.is_dir():
        raise RewardlabError(f"{name} names no file: outputs:FILE, such as outputs:board/verdicts.jsonl")
    if not path.is_file():
        raise RewardlabError(f"there is no file {path}")
    found: dict[str, dict[str, Verdict]] = {}
    for rater, item, verdict in _read(path, benchmark, key):
        found.setdefault(rater or path.name.split(".")[0], {})[item] = verdict
    if not found:
        raise RewardlabError(f"{path} holds no verdicts on {benchmark.title}")
    if only and only not in found:
        raise unknown(f"rater in {path}", only, found)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return [Outputs(rater, known, digest) for rater, known in found.items() if only in ("", rater)]


def _read(path: Path, benchmark: Benchmark, key: str) -> Iterator[tuple[str, str, Verdict]]:
    first = next((row for _, row in rows_of(path)), {})
    ours = "id" in first and bool({"scores", "orders", "steps"} & first.keys())
    if not ours:
        if benchmark.outputs is None:
            raise RewardlabError(f"{path} has the columns {', '.join(first)}: verdicts have id, and scores, orders or steps")
        try:
            yield from benchmark.outputs(path)
        except (KeyError, TypeError, ValueError) as e:
            has = ", ".join(first)
            raise RewardlabError(f"{path} does not hold released outputs on {benchmark.title} (it has {has}): {e!r}") from None
        return
    for place, row in rows_of(path):
        if row.get("benchmark", key) != key:
            continue
        try:
            yield str(row.get("rater", "")), str(row["id"]), Verdict.from_json(row)
        except (KeyError, TypeError, ValueError) as e:
            raise RewardlabError(f"{path}, {place} is no verdict: {e}") from None
