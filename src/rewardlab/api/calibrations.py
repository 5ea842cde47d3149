"""Scores of the pairs in a file, calibrated by the Elo ratings of the models that wrote the replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.core import Problem
from rewardlab.data.drops import Drop, Fates, leaving, staying
from rewardlab.data.elo import calibrating_offsets, elo_table, mismatch_degrees, scores_by_model
from rewardlab.data.files import Row
from rewardlab.data.strength import SIDES, flipped
from rewardlab.data.tables import Places, Table
from rewardlab.data.values import number_of
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import ABOVE_ZERO

from .strengths import FLIPPED, OF_LABELS, Scorer, loader_of, pair_problems, scored_pairs

MODELS, RATINGS = (tuple(f"{side}_{what}" for side in SIDES) for what in ("model", "elo"))


def calibrate_file(
    source: Path | str, out: Path | str, dropped: Path | str | None = None, *, model: str | Scorer | None = None,
    elo: Path | str | None = None, temperature: float = 0.1, prompt_column: str = "prompt", device: str = "auto",
    dtype: str = "auto",
) -> dict[str, Any]:  # fmt: skip
    """Calibrate the scores of replies, so that the models that wrote them win as often as their Elo ratings say, and relabel pairs.

    Rows say who wrote what in `chosen_model` and `rejected_model`. chosen_score and rejected_score become the calibrated scores,
    and the reply with the higher one the chosen one: where it was the other one, the replies change places, and the column
    flipped says so.

    model: a reward model by name, or a function that scores; None: the columns chosen_score and rejected_score hold scores.
    elo: a file of ratings with columns model and elo; None: the columns chosen_elo and rejected_elo.  temperature: of win rates.
    Rows that are no pairs of texts, or do not say who wrote them, are dropped. The document has the offset of each model, and the
    mismatch degrees before and after.
    """
    ABOVE_ZERO.check("temperature", temperature)
    places = Places("calibrate", [source], out, dropped, kept=[elo] if elo else [])
    load = loader_of(model, device, dtype) if model is not None else None
    ratings, table = elo_table(elo) if elo else None, Table.load(source)
    needed = (*MODELS, *(() if load else OF_LABELS), *(() if ratings else RATINGS))
    table.require(*needed)
    if own := [name for name in (FLIPPED, *(OF_LABELS if load else ())) if table.has(name)]:
        raise RewardlabError(f"the rows of {table.source} have a column {own[0]}, which would be overwritten; rename that column")
    problems, fates = _complete(table, prompt_column, needed)
    rows = staying(table.rows, fates)
    scores = scored_pairs(load(), problems, "the reward model") if load else _numbers(rows, OF_LABELS)
    wrote = [(str(row[MODELS[0]]), str(row[MODELS[1]])) for row in rows]
    ratings = ratings or dict(zip(np.ravel(wrote).tolist(), np.ravel(_numbers(rows, RATINGS)).tolist(), strict=True))
    offsets = calibrating_offsets(scores_by_model(scores, wrote), ratings, temperature)
    calibrated = scores + np.array([[offsets[name] for name in names] for names in wrote])
    done = [_row(row, both, names) for row, both, names in zip(rows, calibrated.tolist(), wrote, strict=True)]
    left_out = leaving(table.places, table.rows, fates)
    return places.finish(
        [table], left_out, done, flipped=float(np.mean([row[FLIPPED] for row in done])), offsets=offsets,
        mismatch_before=mismatch_degrees(scores, wrote, ratings), mismatch_after=mismatch_degrees(calibrated, wrote, ratings),
    )  # fmt: skip


def _complete(table: Table, prompt_column: str, needed: Sequence[str]) -> tuple[list[Problem], Fates]:
    """The pairs whose rows have all columns that are needed, and for each row why it is not one of them."""
    pairs, fates = pair_problems(table, prompt_column)
    of_pairs = iter(pairs)
    # a row that is no pair has no problem
    problems = [next(of_pairs) if fate is None else None for fate in fates]
    fates = [fate or _lacking(row, needed) for row, fate in zip(table.rows, fates, strict=True)]
    kept = [p for p, fate in zip(problems, fates, strict=True) if p is not None and fate is None]
    if not kept:
        why = next((f"{place}: {fate.why}" for place, fate in zip(table.places, fates, strict=True) if fate), table.why_empty)
        raise RewardlabError(f"{table.source} holds no pair that can be calibrated: {why}")
    return kept, fates


def _lacking(row: Row, needed: Sequence[str]) -> Drop | None:
    absent = [name for name in needed if not (row.get(name) if name in MODELS else number_of(row.get(name)) is not None)]
    return Drop("incomplete", f"column {absent[0]} is empty, or is no number") if absent else None


def _numbers(rows: Sequence[Row], columns: Sequence[str]) -> np.ndarray:
    return np.array([[number_of(row[column]) for column in columns] for row in rows], float)


def _row(row: Row, scores: Sequence[float], names: tuple[str, str]) -> dict[str, Any]:
    """The row with its calibrated scores; of two replies by one model the label stays, whatever the scores."""
    turned = scores[1] > scores[0] and names[0] != names[1]
    whole: Mapping[str, Any] = {**row, **dict(zip(OF_LABELS, scores, strict=True))}
    return {**(flipped(whole) if turned else whole), FLIPPED: turned}
