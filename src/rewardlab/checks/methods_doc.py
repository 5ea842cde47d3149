"""docs/methods.md: what each method changes, what it claims, and the verdict on that claim. `make docs` writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.checks import results
from rewardlab.checks.levels import levels
from rewardlab.checks.verdict import NOT_RUN, WORDS
from rewardlab.comparisons import league_records
from rewardlab.comparisons.forest import forest
from rewardlab.comparisons.telling import stands
from rewardlab.errors import RewardlabError
from rewardlab.registry import catalogue, details
from rewardlab.registry.describe import FIDELITIES
from rewardlab.registry.verdicts import CHECKED, INERT, inert, last_of, shown
from rewardlab.util.files import write_text

PATH, PLOTS = Path("docs") / "methods.md", Path("docs") / "effects"
EARLIER = ("does not hold", "too noisy")
"""Verdicts of records from before claims were looked at several times."""

INTRODUCTION = """# Methods

Generated from the methods' files and `src/rewardlab/results/` by `make docs`; do not edit it.

{counts}

## How to read this

Every method is a recipe that changes some slots of a **baseline**; the tables show each changed slot as it is in the method.
A **claim** is about how good a policy or an answer becomes, as the paper says of its method; a **check** is about what the
mechanism does, in a number of its own, and says nothing of how good anything becomes. Both are put where the paper's reason is at
work, with the smallest effect that counts (the margin) fixed before the record is run. One that is marked as sanity is true by
construction. `rewardlab reproduce NAME` runs method and baseline in pairs: same seed, same problems, same held-out random numbers,
equal updates (equal tokens where the claim is about cost), and prints one card.

Under its name stands how much of the published method it is:

{fidelities}

Then the columns that it reads of a user's rows, in brackets those that rows may lack; `rewardlab show NAME` says what each holds,
and `rewardlab show NAME --rows` prints template rows.

A result says first what was run, and the levels on both sides, then the effect: the mean difference of pairs, with its interval.
Pairs are looked at after 5, 8, 12 and 20, each time with a 98.4% Student t interval of the effects:

{words}

A check says works, works less than the margin, no effect, opposite, undecided or unfit, by the same rules. A margin counts for no
less than a standard deviation of the effect between seeds; a guard is kept where the whole interval is.

A world is admitted by a gate: the baseline learns by at least 4 standard errors and ends with room to differ, or, where the
claim is not about learning, does not end below its start; the start is neither hopeless nor nearly perfect, the fault that
the method mends is there, and a learnt judge is above chance. "Inert here": the mechanism did not move its own number. These
rules are those of new records; older ones keep the verdict of the rules of their day. Effects are signed: a positive effect
supports the claim. Of claims without any effect, at most 2.5% get a verdict above 0, and as many one below, if effects are
distributed symmetrically. Models and tasks are small: a claim that does not hold here may hold elsewhere, and the reverse. †
marks a result that is older than the last change of the method's file; *95%* one of an earlier rule with one look. The plots
show effects in units of their margins: 0 is no effect, the dashed line the margin. `src/rewardlab/results/NAME.json` contains
every run ever made, of every version of the claim.
"""


def document(record: Path) -> str:
    """The text of docs/methods.md. record: the folder of results."""
    rows = _rows(record)
    words = "\n".join(f"- **{word}**: {meaning};" for word, meaning in WORDS.items())
    fidelities = "\n".join(f"- **{word}**: {meaning};" for word, meaning in FIDELITIES.items()).removesuffix(";") + "."
    parts = [INTRODUCTION.format(counts=_counts(rows), words=words.removesuffix(";") + ".", fidelities=fidelities)]
    # the catalogue is sorted by folder, as groupby needs
    for folder, methods in groupby(rows, key=lambda row: row["folder"]):
        parts.append("\n".join(_table(folder, list(methods))))
    return "\n".join(parts)


def _rows(record: Path) -> list[dict[str, Any]]:
    """The methods of the package, by folder, with their last results."""
    # methods from outside the package (REWARDLAB_METHODS) are not part of this project's document
    names = [row["name"] for row in catalogue.rows() if registry.PACKAGE in Path(row["path"]).parents]
    return [_row(details.details(name), record) for name in names]


def _row(row: Mapping[str, Any], record: Path) -> dict[str, Any]:
    recorded = results.read(row["name"], record)
    last = last_of(recorded) if recorded else None
    finding = getattr(registry.claim_of(row["name"]), "finding", "")
    row = {**row, "finding": finding, "leagues": stands(row["name"], league_records.recorded())}
    if not row["claim"] or last is None:
        return {**row, "last": last, "earlier": None, "word": NOT_RUN if row["claim"] else "no claim"}
    word = shown(last, row["shows"] == "check", row["sanity"])
    # a run of an earlier version says nothing about the claim as it is put now
    if last["claim"].get("version", 1) != row["version"]:
        return {**row, "last": None, "earlier": word, "word": NOT_RUN}
    return {**row, "last": last, "earlier": None, "word": word}


def _counts(rows: list[dict[str, Any]]) -> str:
    """How many there are of each verdict: of checks and of claims apart, since the one says nothing of the other."""
    told = [f"**{len(rows)} methods.**"]
    for shows, title in (("check", "Checks"), ("claim", "Claims"), (None, "Neither")):
        counts = Counter(row["word"] for row in rows if row["shows"] == shows)
        order = (*WORDS, *CHECKED.values(), *EARLIER, "no claim")
        counted = ", ".join(f"{word} {counts[word]}" for word in dict.fromkeys(order) if counts[word])
        told += [f"{title}: {counted}."] if counted else []
    fidelity = Counter(row["fidelity"] or "not yet read" for row in rows)
    told.append("Of the published methods: " + ", ".join(f"{word} {n}" for word, n in fidelity.most_common()) + ".")
    return " ".join(told)


def _table(folder: str, rows: list[dict[str, Any]]) -> Iterator[str]:
    yield f"## {folder}\n"
    if _plotted(rows):
        yield f"![effects of the claims of {folder}, in units of their margins]({PLOTS.name}/{folder}.svg)\n"
    yield "| method | changes | claim | result |"
    yield "| --- | --- | --- | --- |"
    for row in rows:
        where = Path(row["path"]).relative_to(registry.PACKAGE.parents[1])
        cells = (
            f"[{row['name']}](../{where.as_posix()})<br>{_fidelity(row)}{_columns(row)}",
            _changes(row),
            _says(row),
            _result(row),
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


def _fidelity(row: Mapping[str, Any]) -> str:
    """How much of the published method it is, and what it leaves out."""
    left_out = f"; left out: {cell_text(row['left_out'])}" if row["left_out"] else ""
    return f"{row['fidelity'] or 'not yet read'}{left_out}"


def _columns(row: Mapping[str, Any]) -> str:
    """The columns that it reads, those in brackets that rows may lack."""
    if (data := catalogue.data_of(row["name"])) is None:
        return ""
    if data.refuses:
        return f"<br>takes no rows of text: {cell_text(data.refuses)}"
    columns = (name if name in data.required else f"({name})" for name in data.columns)
    return f"<br>rows: {cell_text(', '.join(columns))}"


def _says(row: Mapping[str, Any]) -> str:
    """What is claimed, or checked."""
    return f"{row['shows']}: {cell_text(row['claim'])}" if row["claim"] else "none"


def _changes(row: Mapping[str, Any]) -> str:
    """One line for each slot that differs from the baseline's."""
    if not row["baseline"]:
        return "a starting point"
    changed = [f"{slot}: {_code(after)}" if after else f"no {slot}" for slot, (_, after) in row["changes"].items()]
    return "<br>".join([f"against {cell_text(row['baseline'])}", *(changed or ["nothing but its settings"])])


def _result(row: Mapping[str, Any]) -> str:
    """The verdict on its claim or check, then where it stands in the leagues."""
    leagues = "".join(f"<br>{cell_text(told)}" for told in row["leagues"])
    return f"{_verdict(row)}{leagues}"


def _verdict(row: Mapping[str, Any]) -> str:
    last = row["last"]
    if not row["claim"] or last is None:
        return row["word"] + (f" since it was put anew (before: {row['earlier']})" if row["earlier"] else "")
    # a dagger marks results of other code than the method reaches now
    older = "" if results.of_this_code(last, Path(row["path"])) else " †"
    # before looks were taken, there was one, with a 95% interval
    low, high = last.get("interval") or last["ci95"]
    rule = f"{len(last['effects'])} pairs" if "interval" in last else "*95%*"
    measured = f"{cell_text(last['measure'])} {_signed(last['effect'])} [{_signed(low)}, {_signed(high)}], {rule}"
    moved = f", {INERT}" if inert(last) else ""
    found = f"<br>{cell_text(row['finding'])}" if row["finding"] else ""
    # levels come first: an effect without them does not say whether anybody gained
    told = levels(row["name"], last).replace("|", "\\|")
    return f"**{row['word']}**{moved}{older}<br>{told}{found}<br>{measured}, margin {_margin(last):g}"


def _margin(run: Mapping[str, Any]) -> float:
    """The margin that counted; in records from before a standard deviation was its least, the claim's."""
    return run.get("margin") or run["claim"]["margin"]


def _plotted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The claims of a folder that can be drawn: with an interval, and a margin to measure it in."""
    found = []
    for row in rows:
        last = row["last"]
        bounds = (last.get("interval") or last["ci95"]) if last and row["claim"] else (None, None)
        if last and None not in (*bounds, last["effect"]) and _margin(last) > 0:
            numbers = {"effect": last["effect"], "low": bounds[0], "high": bounds[1], "margin": _margin(last)}
            numbers |= {"measure": last["measure"], "values": _measured(last)}
            found.append({"name": row["name"], "verdict": row["word"], **numbers})
    return found


def _measured(last: Mapping[str, Any]) -> list[float]:
    """What the runs of both sides measured: their range bounds the effect."""
    found = [run.get(last["measure"]) for side in ("method", "baseline") for run in last.get(side) or ()]
    return [value for value in found if isinstance(value, int | float)]


def _signed(value: float | None) -> str:
    return "?" if value is None else f"{value:+.3g}"


def _code(text: str) -> str:
    """A formula on one line, for a cell of a table; a pipe ends the cell even inside backticks, and is escaped."""
    return f"`{'; '.join(' '.join(line.split()) for line in text.splitlines())}`".replace("|", "\\|")


def cell_text(text: str) -> str:
    """Text on one line without Markdown markup, for a cell of a table."""
    # the backslash comes first, or it would escape the escapes of the others
    for mark in "\\|<*_`[":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def plots(record: Path) -> dict[str, str]:
    """The forest plot of each folder of methods, by its name; folders without a recorded effect have none."""
    rows = _rows(record)
    drawn = {folder: _plotted(list(methods)) for folder, methods in groupby(rows, key=lambda row: row["folder"])}
    return {folder: forest(claims) for folder, claims in drawn.items() if claims}


def write() -> Path:
    """Write the document of this checkout, and its plots."""
    root = catalogue.repository()
    if root is None:
        raise RewardlabError("docs/methods.md belongs to a checkout, and this rewardlab was installed without one")
    drawn = plots(catalogue.SHIPPED)
    (root / PLOTS).mkdir(parents=True, exist_ok=True)
    for old in (root / PLOTS).glob("*.svg"):
        # a folder of methods that is gone leaves no plot
        if old.stem not in drawn:
            old.unlink()
    for folder, svg in drawn.items():
        write_text(root / PLOTS / f"{folder}.svg", svg)
    write_text(root / PATH, document(catalogue.SHIPPED))
    return root / PATH


if __name__ == "__main__":
    print(write())
