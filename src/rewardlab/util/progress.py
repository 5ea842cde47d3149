"""Progress bars. They go to stderr, so that stdout carries results only."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rewardlab.util.ranks import is_first

T = TypeVar("T")

console = Console(stderr=True)
WHOLE = 1e9  # seconds: longer than any bar


class Bar:
    """A progress bar on a terminal; elsewhere (a log file) one line every `every` seconds.  total: None if it is unknown.

    Of processes that were started together only the first shows its own.
    """

    def __init__(self, what: str, total: int | None, done: int = 0, every: float = 10.0, hidden: bool = False):
        hidden = hidden or not is_first()
        self.what, self.total, self.done, self.every, self.hidden = what, total, done, every, hidden
        self.printed = self.began = time.monotonic()
        self.before = done
        self.bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
            TextColumn("[dim]{task.fields[note]}"), console=console, disable=hidden or not console.is_terminal,
            # rich forgets what is older than 30 s, and would never tell the time left of runs that take minutes each
            speed_estimate_period=WHOLE,
        )  # fmt: skip

    def __enter__(self) -> Self:
        self.bar.start()
        self.row = self.bar.add_task(self.what, total=self.total, completed=self.done, note="")
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def advance(self, note: str = "", n: int = 1) -> None:
        self.done += n
        self.bar.update(self.row, advance=n, note=note)
        # the last line is always printed, so that a log file says how it ended
        due = time.monotonic() - self.printed > self.every or self.done == self.total
        if not self.hidden and not console.is_terminal and due:
            self.printed = time.monotonic()
            console.print(f"{self.what} {self.done}{self._left()}  {note}", highlight=False)

    def _left(self) -> str:
        """The total, and the time that the rest will take at the pace so far."""
        if self.total is None:
            return ""
        advanced, remaining = self.done - self.before, self.total - self.done
        if not remaining or advanced <= 0:
            return f"/{self.total}"
        seconds = round((time.monotonic() - self.began) / advanced * remaining)
        return f"/{self.total}, {timedelta(seconds=seconds)} left"


def unless_quick(what: str, items: Sequence[T], size: int = 512, seconds: float = 2.0) -> Iterator[Sequence[T]]:
    """Yield the items `size` at a time; a progress bar appears if the first batch shows that all take longer than `seconds`."""
    started = time.monotonic()
    yield items[:size]
    quick = (time.monotonic() - started) * len(items) / size < seconds
    with Bar(what, len(items), done=min(size, len(items)), hidden=quick or len(items) <= size) as bar:
        for i in range(size, len(items), size):
            yield items[i : i + size]
            bar.advance(n=len(items[i : i + size]))


def in_batches(what: str, items: Sequence[T], size: int = 32) -> Iterator[Sequence[T]]:
    """Yield the items `size` at a time, with a progress bar if there is more than one item."""
    with Bar(what, len(items), hidden=len(items) == 1) as bar:
        for i in range(0, len(items), size):
            yield items[i : i + size]
            bar.advance(n=len(items[i : i + size]))
