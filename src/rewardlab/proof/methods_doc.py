"""docs/methods.md: what each method changes, what it promises, and whether that came out here. Made from files and results.

python -m rewardlab.proof.methods_doc --write    make it;    --check    exit 1 if it is stale
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.registry import catalogue

from . import results

PATH = Path("docs") / "methods.md"

INTRODUCTION = """# Methods

Generated from the methods' files and `results/` by `make docs`; not to be edited.

{counts}

## How to read this

Every method is a recipe that changes some slots of a **baseline**; the tables show each changed slot as it is in the method.
A **claim** is what its paper says of it, brought down to a world in which minutes show it, with the least effect that counts
(the margin) fixed before it was run. `rewardlab reproduce NAME` runs method and baseline in pairs: same seed, same problems,
same budget of tokens (a run ends with the step that uses it up).

- **holds**: the 95% Student t interval of the paired effects lies above 0, and their mean reaches the margin;
- **does not hold**: the interval lies below the margin;
- **too noisy**: anything else, and always with fewer than 5 pairs;
- **incomplete**: a run failed; **not run**: nothing is recorded yet.

Effects are signed: positive speaks for the claim. The models are small and so are the worlds: a claim that does not hold here
may hold elsewhere, and the other way round. Of claims without any effect, at most 2.5% come out as "holds", as long as the effects
of pairs scatter evenly to both sides; where one side's runs mostly agree and now and then collapse, five pairs can miss the
collapse, and the share is higher (one in eight, in a simulation of ours). † marks a result from before
the method's file was last changed. `results/NAME.json` holds every run ever made.
"""


def document(record: Path) -> str:
    """The whole text. record: the folder of results."""
    own = (row for row in catalogue.rows() if registry.PACKAGE in Path(row["path"]).parents)
    rows = [_row(row, record) for row in own]
    parts = [INTRODUCTION.format(counts=_counts(rows))]
    for folder, held in groupby(rows, key=lambda row: row["folder"]):
        parts.append("\n".join(_table(folder, list(held))))
    return "\n".join(parts)


def _row(row: Mapping[str, Any], record: Path) -> dict[str, Any]:
    held = results.read(row["name"], record)
    last = held["runs"][-1] if held else None
    return {**row, "last": last, "word": (last["verdict"] if last else "not run") if row["claim"] else "no claim"}


def _counts(rows: list[dict[str, Any]]) -> str:
    found = Counter(row["word"] for row in rows)
    order = ("holds", "does not hold", "too noisy", "incomplete", "not run", "no claim")
    counted = [f"{word} {found[word]}" for word in order if found[word]]
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
    told = [f"{slot}: {_code(after)}" if after else f"no {slot}" for slot, (_, after) in row["changes"].items()]
    return "<br>".join([f"against {_text(row['baseline'])}", *(told or ["nothing but its settings"])])


def _result(row: Mapping[str, Any]) -> str:
    last = row["last"]
    if not row["claim"] or last is None:
        return row["word"]
    older = "" if last["code"]["method"] == catalogue.hash_of(Path(row["path"])) else " †"
    effect, (low, high) = last["effect"], last["ci95"]
    told = f"{_text(last['measure'])} {_signed(effect)} [{_signed(low)}, {_signed(high)}]"
    return f"**{row['word']}**{older}<br>{told}, margin {last['claim']['margin']:g}"


def _signed(value: float | None) -> str:
    return "?" if value is None else f"{value:+.3g}"


def _code(text: str) -> str:
    """A formula on one line, in a table's cell."""
    return f"`{'; '.join(' '.join(line.split()) for line in text.splitlines())}`".replace("|", "\\|")


def _text(text: str) -> str:
    for mark in "\\|<*_`[":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def main(argv: list[str]) -> int:
    """Write the document of this checkout, or check it."""
    root = catalogue.repository()
    if argv not in (["--write"], ["--check"]) or root is None:
        print("usage, in a checkout: python -m rewardlab.proof.methods_doc --write | --check", file=sys.stderr)
        return 2
    path, text = root / PATH, document(results.folder())
    if argv == ["--write"]:
        path.write_text(text, encoding="utf-8")
        return 0
    stale = not path.is_file() or path.read_text("utf-8") != text
    if stale:
        print(f"{path} is stale; run: make docs", file=sys.stderr)
    return int(stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
