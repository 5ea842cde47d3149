"""What is kept of a comparison in results/objectives: its record, and the tables of all kept ones in README.md beside it.

python benchmarks/_kept_comparison.py runs/FOLDER "rewardlab compare ..." --out results/objectives/NAME.json
python benchmarks/_kept_comparison.py results/objectives/NAME.json --page NAME.html      the page of curves, from the kept record
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from rewardlab.comparisons.page import page

POINTS = 20
"""Of a curve: enough to draw it."""
BEGIN, END = "<!-- tables: written by benchmarks/_kept_comparison.py -->", "<!-- end of the tables -->"
Record = dict[str, Any]


def kept(folder: Path, command: str) -> Record:
    record = json.loads((folder / "compare.json").read_text("utf-8"))
    return {"command": command, **_rounded(record | {"methods": [_thinned(row) for row in record["methods"]]})}


def _thinned(row: Record) -> Record:
    curves = {name: _every(curve) for name, curve in row["watched"].items()}
    # the points of single seeds are in the curve
    return {k: v for k, v in row.items() if k != "points"} | {"curve": _every(row["curve"]), "watched": curves}


def _every(curve: Record) -> Record:
    """At most POINTS of a curve, its first and last among them."""
    length = len(next(iter(curve.values()), []))
    last = min(POINTS, length) - 1
    chosen = [round(i * (length - 1) / last) for i in range(last + 1)] if last > 0 else range(length)
    return {name: [values[i] for i in chosen] for name, values in curve.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    return [_rounded(v) for v in value] if isinstance(value, list) else value


def table(record: Record) -> str:
    """Methods by what was compared, the best first, with what they differ by from the first of the comparison."""
    rows = sorted(record["methods"], key=lambda row: -(row["mean"] or 0.0))
    ks = [k for k in rows[0]["pass_at"] if k != "1"][-1:]
    head = ["method", "rate", record["measure"], f"against {record['methods'][0]['method']}", "p, adjusted", "decided"]
    head += [*(f"pass@{k}" for k in ks), "entropy", "KL", "length"]
    lines = [head, ["---"] * len(head), *(_cells(row, ks) for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cells(row: Record, ks: list[str]) -> list[str]:
    change, beside = row["difference"], row["beside"]
    against = [_with(change, "+"), f"{change['p_adjusted']:.2g}", change["decision"]] if change else ["", "", ""]
    logged = [_known(beside[name]["mean"]) for name in ("entropy", "kl", "length")]
    rate = f"{row['rate']:g}" if row["rate"] else "its own"
    return [row["method"], rate, _with(row), *against, *(_known(row["pass_at"][k]["mean"]) for k in ks), *logged]


def _with(found: Record, sign: str = "") -> str:
    bounds = found["ci95"]
    return _known(found["mean"], sign) + (f" [{bounds[0]:{sign}.3f}, {bounds[1]:{sign}.3f}]" if bounds else "")


def _known(value: float | None, sign: str = "") -> str:
    return "–" if value is None else f"{value:{sign}.3f}" if abs(value) < 10 else f"{value:{sign}.1f}"


def tables(folder: Path) -> str:
    sections = []
    for file in sorted(folder.glob("*.json")):
        record = json.loads(file.read_text("utf-8"))
        seeds, size = len(record["seeds"]), f"{record['problems']} held-out problems"
        facts = f"{seeds} seeds, {record['steps']} steps each, {size}, model {record['model']}; [{file.name}]({file.name})"
        sections.append(f"### {file.stem}\n\n{facts}\n\n    {record['command']}\n\n{table(record)}")
    return "\n\n".join(sections)


def write_tables(folder: Path) -> None:
    readme = folder / "README.md"
    text = readme.read_text("utf-8") if readme.exists() else f"{BEGIN}\n{END}\n"
    block = f"{BEGIN}\n\n{tables(folder)}\n\n{END}"
    readme.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: block, text, flags=re.S), "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("comparison", type=Path, help="its folder, or a record that is kept")
    parser.add_argument("command", nargs="?", default="")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--page", type=Path)
    args = parser.parse_args()
    found = kept(args.comparison, args.command) if args.comparison.is_dir() else json.loads(args.comparison.read_text("utf-8"))
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        write_tables(args.out.parent)
    if args.page:
        args.page.write_text(page(found), "utf-8")
