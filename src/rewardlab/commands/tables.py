"""Tables and lists for people to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Print a table; cells are shown as they are, never read as markup."""
    grid = Table(*columns, box=box.SIMPLE_HEAD)
    for row in rows:
        grid.add_row(*(Text(value(cell)) for cell in row))
    # a new console at each call, since stdout may have been redirected in between
    Console().print(grid)


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


def value(x: Any) -> str:
    """A value as people read it: `0.512 [0.48, 0.55]` for a measured one."""
    if isinstance(x, Mapping) and "value" in x:
        return " ".join(value(x[k]) for k in ("value", "ci95") if x.get(k) is not None)
    if isinstance(x, Mapping):
        return ", ".join(f"{k} {value(v)}" for k, v in x.items())
    if isinstance(x, list | tuple):
        return f"[{', '.join(value(v) for v in x)}]"
    if isinstance(x, float):
        return f"{x:.4g}"
    return "" if x is None else str(x)


def outcome(summary: Mapping[str, Any]) -> None:
    """Print the summary of a run: the measures before and after, then everything else."""
    sides = {side: summary[side] for side in ("before", "after") if isinstance(summary.get(side), Mapping)}
    if sides:
        # measures in the order in which they first occur: the two sides may have different ones
        columns = list(dict.fromkeys(k for scores in sides.values() for k in scores))
        table(["", *columns], [[side, *(scores.get(k) for k in columns)] for side, scores in sides.items()])
    facts({k: v for k, v in summary.items() if k not in sides})
