"""How strong the preferences in a file of pairs are, by several reward models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rewardlab.core import Message, Problem
from rewardlab.data.drops import Drop, Fates, leaving, staying
from rewardlab.data.files import Row
from rewardlab.data.picture_rows import folder_of
from rewardlab.data.pictures import refuse_pictures
from rewardlab.data.strength import SIDES, Fate, Strength, by_strength, flipped, shares, strengths
from rewardlab.data.tables import Places, Table
from rewardlab.data.whole_pairs import Told
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import SHARE
from rewardlab.tasks.records import problems_of
from rewardlab.tasks.row_columns import Columns
from rewardlab.util.progress import in_batches

Scorer = Callable[[Sequence[tuple[Sequence[Message], str]]], list[float]]
"""The score of each reply to a conversation."""
COLUMNS, FLIPPED = ("strength", "strength_std"), "flipped"
OF_LABELS = tuple(f"{side}_score" for side in SIDES)
BATCH = 64


def strength_file(
    source: Path | str, out: Path | str, dropped: Path | str | None = None, *, models: Sequence[str | Scorer], flip: float = 0.0,
    labels: Literal["margins", "votes"] | None = None, prompt_column: str = "prompt", device: str = "auto", dtype: str = "auto",
) -> dict[str, Any]:  # fmt: skip
    """Add columns to each pair: strength, the mean over the models of r(chosen) - r(rejected), and strength_std, its standard
    deviation over them.

    models: reward models by name, loaded one after another, or functions that score.  flip: share of the pairs, those of the lowest
    strength but none at or above 0, in which the replies change places; then the column flipped says in which.  labels: columns
    chosen_score and rejected_score as `bradley_terry --labels` reads them: "margins", the strength and 0; "votes", how many models
    prefer each reply, a tie half to both. Rows that are no pairs of texts are dropped.
    """
    SHARE.check("flip", flip)
    if not models:
        raise RewardlabError("strengths need reward models: name at least one")
    places = Places("strength", [source], out, dropped)
    loaders = [loader_of(model, device, dtype) for model in models]
    table = Table.load(source)
    added = (*COLUMNS, *([FLIPPED] if flip else []), *(OF_LABELS if labels else ()))
    if own := [name for name in added if table.has(name)]:
        raise RewardlabError(f"the rows of {table.source} have a column {own[0]}, which would be overwritten; rename that column")
    problems, fate = pair_problems(table, prompt_column)
    scores = np.stack([scored_pairs(load(), problems, f"model {i} of {len(models)}") for i, load in enumerate(loaders, 1)])
    gaps = scores[..., 0] - scores[..., 1]
    found = strengths(gaps)
    becomes = by_strength([mean for mean, _ in found], flip, soften=False)
    kept = staying(table.rows, fate)
    each = zip(kept, found, gaps.T, becomes, strict=True)
    rows = [_row(row, strength, of_row, becoming, labels, flip > 0) for row, strength, of_row, becoming in each]
    left_out = leaving(table.places, table.rows, fate)
    return places.finish([table], left_out, rows, **_facts(found, becomes))


def loader_of(model: str | Scorer, device: str, dtype: str) -> Callable[[], Scorer]:
    """What loads a model when its turn comes. Raises RewardlabError at once for a name that is none of a reward model."""
    if not isinstance(model, str):
        return lambda: model
    from rewardlab.models.reward_model import load_reward_model, reward_settings_of

    reward_settings_of(model)
    return lambda: load_reward_model(model, device, dtype).score


def pair_problems(table: Table, prompt_column: str) -> tuple[list[Problem], Fates]:
    """The pairs of the rows, read as for training, and for each row why it is none."""
    columns = Columns(prompt_column, "answer", None, None, folder=folder_of(table.source))
    found = list(problems_of(zip(table.places, table.rows, strict=True), columns, told := Told()))
    told.tell()
    fates = [Drop("no problem", str(of)) if isinstance(of, RewardlabError) else _no_pair(of) for of in found]
    problems = [of for of, drop in zip(found, fates, strict=True) if drop is None and isinstance(of, Problem)]
    for problem in problems:
        refuse_pictures(problem.prompt, "a reward model")
    if not problems:
        why = next((f"{place}: {drop.why}" for place, drop in zip(table.places, fates, strict=True) if drop), table.why_empty)
        raise RewardlabError(f"{table.source} holds no pair: {why}")
    return problems, fates


def _no_pair(problem: Problem) -> Drop | None:
    lacking = [side for side in SIDES if not isinstance(text := problem.meta.get(side), str) or not text.strip()]
    return Drop("no pair", f"there is no text in column {' or '.join(lacking)}") if lacking else None


def scored_pairs(score: Scorer, problems: Sequence[Problem], doing: str) -> np.ndarray:
    """(n, 2) the scores of the chosen and the rejected reply of each pair."""
    said: list[float] = []
    for batch in in_batches(f"scoring by {doing}", problems, BATCH):
        said += score([(p.prompt, p.meta[side]) for p in batch for side in SIDES])
    return np.array(said, float).reshape(-1, len(SIDES))


def _row(row: Row, strength: Strength, gaps: np.ndarray, fate: Fate, labels: str | None, flips: bool) -> Row:
    """The row with its new columns, its replies in each other's place where it is flipped."""
    told = dict(zip(COLUMNS, strength, strict=True))
    if labels == "margins":
        told |= dict(zip(OF_LABELS, (max(strength.mean, 0.0), max(-strength.mean, 0.0)), strict=True))
    elif labels == "votes":
        prefer = float((gaps > 0).sum() + (gaps == 0).sum() / 2)
        told |= dict(zip(OF_LABELS, (prefer, len(gaps) - prefer), strict=True))
    whole = {**row, **told}
    return {**(flipped(whole) if fate == "flipped" else whole), **({FLIPPED: fate == "flipped"} if flips else {})}


def _facts(found: Sequence[Strength], fates: Sequence[Fate]) -> dict[str, Any]:
    means = np.array([mean for mean, _ in found])
    told = {"strength": float(means.mean()), "below_0": float((means < 0).mean())}
    return told | ({"flipped": share} if (share := shares(fates).get("flipped")) else {})
