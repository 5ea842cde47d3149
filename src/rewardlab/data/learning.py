"""Learning impact of problems: how well their rewards follow the average over a run (LIM; Li et al. 2025, arXiv:2502.11886).

    s_i = 1 - sum_k (r_i^k - r^k)^2 / sum_k (1 - r^k)^2

r_i^k is the mean reward of problem i in epoch k, r^k the mean of r_i^k over the problems. A problem that was learnt as the others
were scores near 1; one that was always solved scores 0, one that never was, or that was unlearnt, less.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError

from .conversations import text_in
from .drops import Drop, Fates, leaving, staying
from .files import read
from .picture_rows import folder_of, shown_by
from .pictures import named
from .tables import Places, Table
from .values import list_of, value_of

Curve = Sequence[float | None]
SEEN = 0.75
"""The share of a file's rows that a run sees in its first epoch, at least: a tenth is held out."""


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
    steps_per_epoch: None counts by the rows that the run has seen: in its first epoch each comes up for the first time, in its
    second for the second; an epoch may end within a step.  Rows that the run did not see in every epoch are left out.
    """
    places = Places("learning", [source], out, dropped)
    table = Table.load(source)
    table.require(prompt_column)
    seen = _recorded(Path(run))
    if not table.rows:
        # how long an epoch of no rows is, nothing says
        return places.finish([table], [], [], epochs=0)
    folder = folder_of(table.source)
    asked = [_question(value_of(row, prompt_column)) + named(shown_by(row, prompt_column, folder)) for row in table.rows]
    epochs, curves = _by_visits(seen, asked, run) if steps_per_epoch is None else _by_steps(seen, steps_per_epoch, run)
    found = [curves.get(question, [None] * epochs) for question in asked]
    scores = lim_scores(found)
    fates: Fates = [
        None if s is not None else Drop("not seen", f"the run has no reply to it in one of {epochs} epochs") for s in scores
    ]
    rows = [{**row, "curve": filled(curve), "lim": s} for row, curve, s in zip(table.rows, found, scores, strict=True)]
    left_out = leaving(table.places, table.rows, fates)
    return places.finish([table], left_out, staying(rows, fates), epochs=epochs)


Visits = list[tuple[str, list[float]]]
"""The questions of a step, each with the verdicts of its replies; of rows that ask the same, each is one."""


def _recorded(run: Path) -> dict[int, Visits]:
    """By step, its questions with the verdicts of their replies: 1 for a right one."""
    files = sorted((run / "rollouts").glob("step-*.parquet"))
    if not files:
        raise RewardlabError(f"{run} holds no rollouts of a run; train with --record-every 1")
    seen: dict[int, Visits] = {}
    for file in files:
        groups: dict[tuple[str, Any], list[float]] = defaultdict(list)
        for row in (entry.row for entry in read(file) if entry.row):
            verdict = row.get("truth") if row.get("truth") is not None else row.get("reward")
            groups[row["question"], row.get("group")] += [] if verdict is None else [float(verdict >= 1.0)]
        seen[int(file.stem[5:])] = [(question, verdicts) for (question, _), verdicts in groups.items()]
    missing = [step for step in range(1, max(seen) + 1) if step not in seen]
    if missing:
        raise RewardlabError(f"{run} did not record step {missing[0]}, and {len(missing) - 1} others; train with --record-every 1")
    return seen


def _by_steps(seen: Mapping[int, Visits], per_epoch: int, run: Path | str) -> tuple[int, dict[str, list[float | None]]]:
    """The number of whole epochs of so many steps, and the curve of each question."""
    epochs = max(seen) // per_epoch
    if not epochs:
        raise RewardlabError(f"{run} has {max(seen)} steps, less than one epoch of {per_epoch}: train for longer")
    return epochs, _curves((((step - 1) // per_epoch, *of) for step in sorted(seen) for of in seen[step]), epochs)


def _by_visits(seen: Mapping[int, Visits], asked: Sequence[str], run: Path | str) -> tuple[int, dict[str, list[float | None]]]:
    """The same, where a question that one row asks is in each epoch once."""
    visits = [of for step in sorted(seen) for of in seen[step]]
    questions = {question for question, _ in visits}
    copies = Counter(question for question in asked if question in questions)
    rows = copies.total()
    if not rows:
        raise RewardlabError(f"{run} has no reply to any of these rows: it was trained on others, or --prompt-column is another")
    epochs = sum(question in copies for question, _ in visits) // rows
    if epochs < 2 and rows < SEEN * len(asked):
        raise RewardlabError(f"{run} has seen {rows} of {len(asked)} rows, less than one epoch of them: train for longer")
    times: Counter[str] = Counter()
    placed: list[tuple[int, str, list[float]]] = []
    for question, verdicts in visits:
        if question in copies:
            placed.append((times[question] // copies[question], question, verdicts))
            times[question] += 1
    return epochs, _curves(placed, epochs)


def _curves(placed: Iterable[tuple[int, str, list[float]]], epochs: int) -> dict[str, list[float | None]]:
    """The share of right replies in each epoch, for each question. placed: epoch, question and verdicts."""
    verdicts: dict[str, list[list[float]]] = defaultdict(lambda: [[] for _ in range(epochs)])
    for epoch, question, row in placed:
        # an epoch that the run did not finish is in no curve
        if epoch < epochs:
            verdicts[question][epoch] += row
    return {question: [sum(row) / len(row) if row else None for row in rows] for question, rows in verdicts.items()}


def _question(prompt: Any) -> str:
    """The text of a prompt, or of the last user message of a conversation."""
    messages = list_of(prompt)
    if messages is None:
        return str(prompt)
    asked = [str(text_in(m)) for m in messages if isinstance(m, Mapping) and m.get("role") == "user"]
    return asked[-1] if asked else ""
