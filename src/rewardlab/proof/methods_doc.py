"""docs/methods.md: what each method changes, what it claims, and the verdict on that claim. `make docs` writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.errors import RewardlabError
from rewardlab.registry import catalogue, details
from rewardlab.util.files import write_text

from . import results

PATH = Path("docs") / "methods.md"

INTRODUCTION = """# Methods

Generated from the methods' files and `src/rewardlab/results/` by `make docs`; do not edit it.

{counts}

## How to read this

Every method is a recipe that changes some slots of a **baseline**; the tables show each changed slot as it is in the method.
A **claim** is what its paper says of it, restated for a task on which runs take minutes, with the smallest effect that counts
(the margin) fixed before the first run. `rewardlab reproduce NAME` runs method and baseline in pairs: same seed, same problems,
same budget of tokens (a run ends with the step that reaches it).

- **holds**: the 95% Student t interval of the paired effects lies above 0, and their mean reaches the margin;
- **does not hold**: the interval lies below the margin;
- **too noisy**: anything else, and always with fewer than 5 pairs;
- **incomplete**: a run failed; **not run**: there is no recorded run.

Effects are signed: a positive effect supports the claim. Models and tasks are small: a claim that does not hold here may hold
elsewhere, and the reverse. Of claims without any effect, at most 2.5% are reported as "holds" if the effects of pairs are
distributed symmetrically; where one side's runs mostly agree and occasionally collapse, five pairs can miss the collapse, and
the share is higher (one in eight in a simulation). † marks a result that is older than the last change of the method's file.
`src/rewardlab/results/NAME.json` contains every run ever made.
"""


def document(record: Path) -> str:
    """The text of docs/methods.md. record: the folder of results."""
    # methods from outside the package (REWARDLAB_METHODS) are not part of this project's document
    names = [row["name"] for row in catalogue.rows() if registry.PACKAGE in Path(row["path"]).parents]
    rows = [_row(details.details(name), record) for name in names]
    parts = [INTRODUCTION.format(counts=_counts(rows))]
    # the catalogue is sorted by folder, as groupby needs
    for folder, methods in groupby(rows, key=lambda row: row["folder"]):
        parts.append("\n".join(_table(folder, list(methods))))
    return "\n".join(parts)


def _row(row: Mapping[str, Any], record: Path) -> dict[str, Any]:
    recorded = results.read(row["name"], record)
    last = recorded["runs"][-1] if recorded else None
    return {**row, "last": last, "word": (last["verdict"] if last else "not run") if row["claim"] else "no claim"}


def _counts(rows: list[dict[str, Any]]) -> str:
    counts = Counter(row["word"] for row in rows)
    order = ("holds", "does not hold", "too noisy", "incomplete", "not run", "no claim")
    counted = [f"{word} {counts[word]}" for word in order if counts[word]]
    return f"**{len(rows)} methods.** Claims: {', '.join(counted)}."


def _table(folder: str, rows: list[dict[str, Any]]) -> Iterator[str]:
    yield f"## {folder}\n"
    yield "| method | changes | claim | result |"
    yield "| --- | --- | --- | --- |"
    for row in rows:
        where = Path(row["path"]).relative_to(registry.PACKAGE.parents[1])
        cells = (f"[{row['name']}](../{where.as_posix()})", _changes(row), _text(row["claim"] or "none"), _result(row))
        yield f"| {' | '.join(cells)} |"
    yield ""


def _changes(row: Mapping[str, Any]) -> str:
    """One line for each slot that differs from the baseline's."""
    if not row["baseline"]:
        return "a starting point"
    changed = [f"{slot}: {_code(after)}" if after else f"no {slot}" for slot, (_, after) in row["changes"].items()]
    return "<br>".join([f"against {_text(row['baseline'])}", *(changed or ["nothing but its settings"])])


def _result(row: Mapping[str, Any]) -> str:
    last = row["last"]
    if not row["claim"] or last is None:
        return row["word"]
    # a dagger marks results of an earlier version of the file
    older = "" if last["code"]["method"] == results.hash_of(Path(row["path"])) else " †"
    effect, (low, high) = last["effect"], last["ci95"]
    measured = f"{_text(last['measure'])} {_signed(effect)} [{_signed(low)}, {_signed(high)}]"
    return f"**{row['word']}**{older}<br>{measured}, margin {last['claim']['margin']:g}"


def _signed(value: float | None) -> str:
    return "?" if value is None else f"{value:+.3g}"


def _code(text: str) -> str:
    """A formula on one line, for a cell of a table; a pipe ends the cell even inside backticks, and is escaped."""
    return f"`{'; '.join(' '.join(line.split()) for line in text.splitlines())}`".replace("|", "\\|")


def _text(text: str) -> str:
    """Text on one line without Markdown markup, for a cell of a table."""
    # the backslash comes first, or it would escape the escapes of the others
    for mark in "\\|<*_`[":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def write() -> Path:
    """Write the document of this checkout."""
    root = catalogue.repository()
    if root is None:
        raise RewardlabError("docs/methods.md belongs to a checkout, and this rewardlab was installed without one")
    write_text(root / PATH, document(catalogue.SHIPPED))
    return root / PATH


if __name__ == "__main__":
    print(write())
