"""Streamed answers of work that resumes after interruption."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rewardlab.data.work import Work, work_file
from rewardlab.errors import RewardlabError
from rewardlab.util.files import write_json
from rewardlab.util.progress import console

SHOWN = 200
"""Characters of a setting that are told where it has changed."""

# ----------------------------------------------------------------------------------------------------------------------
#
# A file that grows batch by batch, with what was asked for kept beside it, so that a process that was killed resumes it.


@dataclass
class Kept:
    """The file, and the batches that are in it.  summary: of the whole, set once all of it is there."""

    file: IO[bytes]
    work: Work
    summary: dict[str, Any] | None = None

    def done(self, key: str) -> dict[str, Any] | None:
        """The facts of a batch that is in the file already."""
        found = self.work.done.get(key)
        return found["facts"] if found else None

    def add(self, key: str, lines: Sequence[str], facts: Mapping[str, Any]) -> None:
        """Append the lines of a batch. Only then is it noted as done, with the size of the file: half a batch is cut off again."""
        self.file.write("".join(lines).encode())
        self.file.flush()
        os.fsync(self.file.fileno())
        self.work.add(key, {"end": self.file.tell(), "facts": dict(facts)})


def finished(out: Path, request: Mapping[str, Any]) -> dict[str, Any] | None:
    """The summary of a file that was finished for this request; None if it is new, or was begun and not finished.

    Raises RewardlabError for a file that was written for another request, or by something else.
    """
    done, begun = _beside(out)
    if begun.exists():
        # the first line, unless it was not even written whole
        text = begun.read_text("utf-8").partition("\n")
        if text[1]:
            _refuse_another(out, begun, json.loads(text[0]), request)
        return None
    if not out.exists():
        return None
    if not done.exists():
        raise RewardlabError(f"{out} exists, and nothing beside it says what it was made for: remove it, or give another --out")
    document = json.loads(done.read_text("utf-8"))
    _refuse_another(out, done, document["request"], request)
    return document["summary"]


@contextmanager
def kept_beside(out: Path, request: Mapping[str, Any]) -> Iterator[Kept]:
    """The file as far as it was written for the same request. While it grows, OUT.work says how far; when it is done,
    OUT.request.json says what was asked for, with the summary that the caller sets."""
    done, begun = _beside(out)
    with work_file(begun, request) as work, open(out, "ab+") as file:
        end = max((found["end"] for found in work.done.values()), default=0)
        if file.seek(0, os.SEEK_END) < end:
            raise RewardlabError(f"{out} is shorter than {begun} says: it was changed; remove both to begin anew")
        file.truncate(end)
        kept = Kept(file, work)
        try:
            yield kept
        except BaseException:
            if not work.done:
                # nothing to resume from: what was wrong may be put right in the next call
                out.unlink()
                begun.unlink()
            raise
        write_json(done, {"request": request, "summary": kept.summary})


def _beside(out: Path) -> tuple[Path, Path]:
    """The file of what was asked for and found, and that of the work as long as it is not done."""
    out = out.resolve()
    return out.with_name(f"{out.name}.request.json"), out.with_name(f"{out.name}.work")


def _refuse_another(out: Path, source: Path, was: Mapping[str, Any], request: Mapping[str, Any]) -> None:
    now = json.loads(json.dumps(request, default=str))
    if changed := [name for name in {**was, **now} if was.get(name) != now.get(name)]:
        said = ", ".join(_difference(name, was.get(name), now.get(name)) for name in changed)
        raise RewardlabError(
            f"{out} was made with other settings ({said}): give those, or another --out, or remove it and {source.name}"
        )


def _difference(name: str, was: Any, now: Any) -> str:
    # of what is long, such as whole recipes, the name says more than all of it
    long = max(len(repr(was)), len(repr(now))) > SHOWN
    return f"other {name}" if long else f"{name} {was!r}, now {now!r}"


class Answers:
    """The batches that are done, by key, and the file of rows; without a file, both are in memory alone.

    summary: of the whole, set once all of it is there.
    """

    summary: dict[str, Any] | None = None

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


def answered(out: Path | str | None, settings: Mapping[str, Any], repeats: bool) -> dict[str, Any] | None:
    """The summary of a file of answers that is complete under the same settings; None for one that is new, or was begun.

    repeats: the settings say all, so that its summary is what the same call would find.
    Raises RewardlabError for a file of another call, or of something else.
    """
    if out is None:
        return None
    path = Path(out).resolve()
    done, begun = _beside(path)
    if path.is_file() and path.stat().st_size and not begun.exists() and not (repeats and done.exists()):
        raise RewardlabError(f"{out} exists, and would be overwritten: remove it, or give another --out")
    if path.is_file() and not path.stat().st_size and not begun.exists():
        return None
    summary = finished(path, settings)
    if summary is not None:
        console.print(
            f"note: {out} holds the answers to this very call, and its result is given again; if a file or a model that "
            "it names has changed since, remove it to begin anew",
            highlight=False, markup=False, soft_wrap=True,
        )  # fmt: skip
    return summary


@contextmanager
def answers_file(out: Path | str | None, settings: Mapping[str, Any]) -> Iterator[Answers]:
    """Open a file of answers that `answered` has let pass, and beside it OUT.work with what is done (see `data.work`).

    At the end OUT.request.json takes its place, with what was asked for, and the summary that the caller has set.
    """
    if out is None:
        yield Answers()
        return
    path = Path(out).resolve()
    done, begun = _beside(path)
    with work_file(begun, settings) as work:
        answers = Answers(work, path)
        try:
            yield answers
        except BaseException:
            if not work.done:
                # nothing to resume from: what was wrong may be put right in the next call
                path.unlink(missing_ok=True)
                begun.unlink(missing_ok=True)
            raise
        write_json(done, {"request": json.loads(json.dumps(settings, default=str)), "summary": answers.summary})
