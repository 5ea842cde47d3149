"""Raters that could not be asked, or failed on every item: the others' scoreboard comes out, and says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rewardlab.errors import RewardlabError, reason_of
from rewardlab.util.progress import console


class Lost:
    """rows: {"rater", "benchmark" ("": on none), "why"} of each rater that is left out.  alone: no other one is asked, so that its
    error is the whole answer."""

    def __init__(self, alone: bool = False):
        self.alone = alone
        self.rows: list[dict[str, str]] = []
        self.problems: list[Exception] = []

    @contextmanager
    def noting(self, rater: str, benchmark: str = "") -> Iterator[None]:
        """Around what is asked of a rater: an error is noted, and told at once, since others may take hours."""
        try:
            yield
        except Exception as problem:
            row = {"rater": rater, "benchmark": benchmark, "why": reason_of(problem)}
            self.rows.append(row)
            self.problems.append(problem)
            if not self.alone:
                console.print(f"left out: {told(row)}", markup=False, highlight=False, soft_wrap=True)

    def error(self) -> Exception:
        """The error where nothing came out: the rater's own where it was the only one, and could not be loaded."""
        if len(self.problems) == 1 and not self.rows[0]["benchmark"]:
            return self.problems[0]
        several = ["no rater could be asked:"] if len(self.rows) > 1 else []
        error = RewardlabError("\n".join([*several, *map(told, self.rows)]))
        # for --debug
        error.__cause__ = self.problems[0]
        return error


def told(row: Mapping[str, str]) -> str:
    """A rater that is left out, in a line."""
    on = f" on {row['benchmark']}" if row["benchmark"] else ""
    return f"{row['rater']}{on}: {row['why']}"
