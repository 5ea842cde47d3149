"""Tables and lists for people to read."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

MANY = 0.1
"""Of the replies, cut off: what is measured is then the accuracy of shorter replies than the model would give."""
UNBOUNDED = 100_000
"""Columns of an output that is not a terminal."""


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Print a table; cells are shown as they are, never read as markup. Cells wrap between words; no word is cut or split."""
    names, cells = list(columns), [[value(cell) for cell in row] for row in rows]
    grid = Table(box=box.SIMPLE_HEAD)
    for i, name in enumerate(names):
        # what is copied from a table is one word: a name, a flag, a path
        words = [word for text in (name, *(row[i] for row in cells)) for word in text.split()]
        grid.add_column(name, min_width=max(map(cell_len, words), default=0), overflow="fold")
    for row in cells:
        grid.add_row(*map(Text, row))
    # a new console at each call, since stdout may have been redirected in between
    console = Console()
    # a terminal breaks longer lines itself; in a pipe nothing needs to wrap
    least = Measurement.get(console, console.options.update(max_width=UNBOUNDED), grid)
    console.width = max(console.width, least.minimum) if console.is_terminal else least.maximum
    console.print(grid, crop=False)


def listing(entries: Iterable[tuple[str, str]]) -> None:
    """Print names and what they are: in a terminal wrapped to its width, in a pipe one line each."""
    pairs = list(entries)
    width = max((len(name) for name, _ in pairs), default=0)
    for name, about in pairs:
        wrapped(f"  {name:<{width}}  ", about)


def wrapped(start: str, text: str) -> None:
    """Print a start and a text, indented to it where it wraps. Words are never split, and in a pipe nothing wraps."""
    room = shutil.get_terminal_size().columns - len(start) if sys.stdout.isatty() else UNBOUNDED
    # in a terminal too narrow to indent, its own wrapping reads better
    parts = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) if room > 20 else [text]
    for i, line in enumerate(parts or [""]):
        print(f"{start if i == 0 else ' ' * len(start)}{line}".rstrip())


def heading(text: str) -> None:
    """Print a bold line, with an empty one above it."""
    Console().print(Text(f"\n{text}", style="bold"))


def lines(text: str, indent: int = 2) -> None:
    """Print text as it is written, indented, long lines unbroken."""
    for line in text.splitlines():
        Console(soft_wrap=True).print(Text(" " * indent + line if line else ""))


def facts(document: Mapping[str, Any]) -> None:
    """Print names and values, one per line; further lines of a value are indented to its column."""
    width = max((len(name) for name in document), default=0)
    for name, x in document.items():
        first_line, *more_lines = value(x).splitlines() or [""]
        lines(f"{name:<{width}}  {first_line}")
        lines("\n".join(f"{'':<{width}}  {line}" for line in more_lines))


def warn_of_cut_off(document: Mapping[str, Any], of: str = "") -> None:
    """Print a warning where more than `MANY` of the replies that were measured were cut off.  of: whose replies they are."""
    if (share := document.get("cut_off", 0.0)) > MANY:
        whose = f"the replies of {of}" if of else "the replies"
        print(f"warning: {share:.0%} of {whose} were cut off at the length limit, and judged unfinished; raise --max-new")


def value(x: Any) -> str:
    """A value as people read it: `0.512 [0.48, 0.55]` for a measured one, without an interval that nobody measured."""
    if isinstance(x, Mapping):
        x = {k: v for k, v in x.items() if k != "ci95" or (v and any(bound is not None for bound in v))}
    if isinstance(x, Mapping) and "value" in x:
        return " ".join(value(x[k]) for k in ("value", "ci95") if x.get(k) is not None)
    if isinstance(x, Mapping):
        return ", ".join(f"{k} {value(v)}" for k, v in x.items())
    if isinstance(x, list | tuple) and x and all(part is None for part in x):
        # an interval that nobody measured
        return ""
    if isinstance(x, list | tuple):
        return f"[{', '.join(value(v) for v in x)}]"
    if isinstance(x, float):
        return number(x)
    if isinstance(x, int) and not isinstance(x, bool):
        return f"{x:,}"
    return "" if x is None else str(x)


def number(x: float, digits: int = 4, sign: bool = False) -> str:
    """A number as people write it: 33,100 and not 3.31e+04; small ones to some significant digits, very small ones as 3e-05."""
    plus = "+" if sign else ""
    # at 10 ** digits, format g would turn to powers of ten
    return f"{x:{plus},.0f}" if math.isfinite(x) and abs(x) >= 10**digits - 0.5 else f"{x:{plus}.{digits}g}"


ACROSS = 8
"""Measures that stand side by side in a terminal; more of them stand in lines of their own."""


def outcome(summary: Mapping[str, Any]) -> None:
    """Print the summary of a run: the measures before and after, then everything else."""
    sides = {side: summary[side] for side in ("before", "after") if isinstance(summary.get(side), Mapping)}
    if sides:
        # measures in the order in which they first occur: the two sides may have different ones
        columns = list(dict.fromkeys(k for scores in sides.values() for k in scores))
        if len(columns) <= ACROSS:
            table(["", *columns], [[side, *(scores.get(k) for k in columns)] for side, scores in sides.items()])
        else:
            table(["", *sides], [[k, *(scores.get(k) for scores in sides.values())] for k in columns])
    facts({k: v for k, v in summary.items() if k not in sides})
