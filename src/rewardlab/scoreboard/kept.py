"""Verdicts that were given before, kept on disk: a run that was killed resumes, and no reply is scored twice.

A file a rater, in the cache folder, under the hash of all that its verdicts depend on; a line an item, under the hash of all that
is read of it. A line that was cut off by a kill is passed over.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rewardlab.data.files import read
from rewardlab.scoreboard.benchmark import Benchmark
from rewardlab.scoreboard.items import Item, Verdict
from rewardlab.scoreboard.raters.rater import Rater
from rewardlab.util.files import cache


@contextmanager
def resumable(verdicts: Sequence[Verdict | None]) -> Iterator[None]:
    """Around the asking for verdicts: an error that ends it, or Ctrl-C, says how many there are, which the next run begins with."""
    try:
        yield
    except BaseException as stop:
        if known := sum(v is not None and not v.failed for v in verdicts):
            stop.add_note(f"{known:,} of {len(verdicts):,} items are scored and kept: the same command resumes there")
        raise


class Kept:
    """The verdicts of one rater."""

    def __init__(self, rater: Rater, folder: Path | None = None):
        self.rater = rater
        name = hashlib.sha256(rater.fingerprint().encode()).hexdigest()[:24]
        self.path = (folder or cache() / "scoreboard") / f"{name}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows = [entry.row for entry in read(self.path) if entry.row] if self.path.is_file() else []
        self.known = {row["key"]: Verdict.from_json(row) for row in rows if "key" in row}

    def of(self, items: Sequence[Item], benchmark: Benchmark) -> list[Verdict | None]:
        return [self.known.get(self._key(item, benchmark)) for item in items]

    def add(self, items: Sequence[Item], benchmark: Benchmark, verdicts: Sequence[Verdict]) -> None:
        """Keep verdicts; written at once, so that a kill loses none of them. One that failed is asked for again next time."""
        given = {self._key(i, benchmark): v for i, v in zip(items, verdicts, strict=True) if not v.failed}
        if not given:
            return
        lines = [json.dumps({"key": key, **verdict.to_json()}) + "\n" for key, verdict in given.items()]
        with open(self.path, "a+b") as file:
            file.seek(0, 2)
            if file.tell():
                file.seek(-1, 2)
                # a line that was cut off must not swallow the next one
                lines.insert(0, "" if file.read(1) == b"\n" else "\n")
            file.write("".join(lines).encode())
        self.known |= given

    def _key(self, item: Item, benchmark: Benchmark) -> str:
        return item.key(benchmark.asks + benchmark.prompt + self.rater.reads(item))
