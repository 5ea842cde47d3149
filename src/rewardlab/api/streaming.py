"""Answers that are written as they come, by work that resumes where it was stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rewardlab.data.work import Work, work_file


class Answers:
    """The batches that are done, by key, and the file of rows; without a file, both are in memory alone."""

    def __init__(self, work: Work | None = None, path: Path | None = None):
        self.work, self.path = work, path
        self.done: dict[str, Any] = {} if work is None else work.done
        if path:
            # what was written before is written again from the work that is done: half a line may have been left
            path.write_text("", "utf-8")

    def add(self, key: str, result: Any) -> None:
        # as it will be read again
        plain = json.loads(json.dumps(result))
        if self.work:
            self.work.add(key, plain)
        else:
            self.done[key] = plain

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        if self.path:
            with open(self.path, "a", encoding="utf-8") as file:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
                file.flush()
                os.fsync(file.fileno())


@contextmanager
def answers_file(out: Path | str | None, settings: Mapping[str, Any]) -> Iterator[Answers]:
    """Open a file of answers and, beside it, OUT.work with what is done, which is removed at the end (see `data.work`)."""
    if out is None:
        yield Answers()
        return
    path = Path(out).resolve()
    with work_file(path.with_name(f"{path.name}.work"), settings) as work:
        yield Answers(work, path)
