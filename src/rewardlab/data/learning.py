"""Learning impact of problems: how well their rewards follow the average over a run (LIM; Li et al. 2025, arXiv:2502.11886).

    s_i = 1 - sum_k (r_i^k - r^k)^2 / sum_k (1 - r^k)^2

r_i^k is the mean reward of problem i in epoch k, r^k the mean of r_i^k over the problems. A problem that was learnt as the others
were scores near 1; one that was always solved scores 0, one that never was, or that was unlearnt, less.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError

from .drops import Drop, Fates, leaving, staying
from .files import read
from .tables import Places, Table
from .values import list_of, value_of

Curve = Sequence[float | None]


def filled(curve: Curve) -> list[float | None]:
    """The curve with the value of the next epoch where one is missing, as the released code fills it."""
    found = list(curve)
    for k in range(len(found) - 1):
        if found[k] is None:
            found[k] = found[k + 1]
    return found


def lim_scores(curves: Sequence[Curve]) -> list[float | None]:
    """s_i of each curve, all of equal length; None for one that misses an epoch even when filled, which counts for no average."""
    whole = [filled(curve) for curve in curves]
    known = [[r for r in curve if r is not None] for curve in whole if None not in curve]
    if not known:
        return [None] * len(curves)
    average = [sum(column) / len(column) for column in zip(*known, strict=True)]
    room = sum((1 - r) ** 2 for r in average)
    if not room:
        raise RewardlabError("every problem was solved in every epoch: nothing tells one from another")
    return [None if None in curve else 1 - _distance(curve, average) / room for curve in whole]


def _distance(curve: Curve, average: Sequence[float]) -> float:
    return sum(((r or 0.0) - mean) ** 2 for r, mean in zip(curve, average, strict=True))


def learning_file(
    source: Path | str, out: Path | str, run: Path | str, dropped: Path | str | None = None, *, prompt_column: str = "prompt",
    steps_per_epoch: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Rows with the columns curve (the share of right replies in each whole epoch of a run) and lim (the score, see above).

    run: the folder of a run that was trained on these rows and recorded its rollouts at every step (`--record-every 1`).
    steps_per_epoch: None counts the rows and the problems of a step.  Rows that the run did not see in every epoch are left out.
    """
    places = Places("learning", [source], out, dropped)
    table = Table.load(source)
    table.require(prompt_column)
    seen = _recorded(Path(run))
    if not table.rows:
        # how long an epoch of no rows is, nothing says
        return places.finish([table], [], [], epochs=0)
    per_epoch = steps_per_epoch or -(-len(table.rows) // max(1, max(len(groups) for groups in seen.values())))
    epochs = max(seen) // per_epoch
    if not epochs:
        raise RewardlabError(f"{run} has {max(seen)} steps, less than one epoch of {per_epoch}: train for longer")
    curves = _curves(seen, per_epoch, epochs)
    found = [curves.get(_question(value_of(row, prompt_column)), [None] * epochs) for row in table.rows]
    scores = lim_scores(found)
    fates: Fates = [
        None if s is not None else Drop("not seen", f"the run has no reply to it in one of {epochs} epochs") for s in scores
    ]
    rows = [{**row, "curve": filled(curve), "lim": s} for row, curve, s in zip(table.rows, found, scores, strict=True)]
    left_out = leaving(table.places, table.rows, fates)
    return places.finish([table], left_out, staying(rows, fates), epochs=epochs)


def _recorded(run: Path) -> dict[int, dict[str, list[float]]]:
    """By step, for each question the verdicts of its replies: 1 for a right one."""
    files = sorted((run / "rollouts").glob("step-*.parquet"))
    if not files:
        raise RewardlabError(f"{run} holds no rollouts of a run; train with --record-every 1")
    seen: dict[int, dict[str, list[float]]] = {}
    for file in files:
        groups: dict[str, list[float]] = defaultdict(list)
        for row in (entry.row for entry in read(file) if entry.row):
            verdict = row.get("truth") if row.get("truth") is not None else row.get("reward")
            if verdict is not None:
                groups[row["question"]].append(float(verdict >= 1.0))
        seen[int(file.stem[5:])] = groups
    missing = [step for step in range(1, max(seen) + 1) if step not in seen]
    if missing:
        raise RewardlabError(f"{run} did not record step {missing[0]}, and {len(missing) - 1} others; train with --record-every 1")
    return seen


def _curves(seen: Mapping[int, Mapping[str, list[float]]], per_epoch: int, epochs: int) -> dict[str, list[float | None]]:
    verdicts: dict[str, list[list[float]]] = defaultdict(lambda: [[] for _ in range(epochs)])
    for step, groups in seen.items():
        epoch = (step - 1) // per_epoch
        # an epoch that the run did not finish is in no curve
        for question, row in groups.items() if epoch < epochs else ():
            verdicts[question][epoch] += row
    return {question: [sum(row) / len(row) if row else None for row in rows] for question, rows in verdicts.items()}


def _question(prompt: Any) -> str:
    """The text of a prompt, or of the last user message of a conversation."""
    messages = list_of(prompt)
    if messages is None:
        return str(prompt)
    asked = [str(m.get("content", "")) for m in messages if isinstance(m, Mapping) and m.get("role") == "user"]
    return asked[-1] if asked else ""
