"""Elo ratings of the models that wrote replies, and scores calibrated by them.

    P(a beats b) = 1 / (1 + 10^((elo_b - elo_a) / 400))
    W_ab = mean over replies of a and of b of sigmoid((r + o_a - r' - o_b) / temperature)
    offsets o = argmin of the mean over all pairs (a, b), a = b with 0 on both sides, of (W_ab - P(a beats b))^2
    mismatch degree of a = (share of a's pairs that r says a wins - expected share) / max(expected, 1 - expected)

So a model whose replies a reward model overrates as a whole is moved down until it wins as often as people say.

Zhu et al. 2025, arXiv:2504.10045, as in src/calibrate.py and src/utils.py of the released code (HexagonStar/CHARM, 38daa5e). There
the offsets are the output of a network for a constant input, N free numbers in another form, after 100 steps of Adam; here the
minimum of the same loss is solved for. Only differences of offsets count; here their mean is 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from rewardlab.errors import RewardlabError

from .files import read
from .values import number_of

NAMES, RATINGS = ("model", "model_name", "name"), ("elo", "arena_score", "rating")
AT_MOST, CHUNK = 1000, 250
"""Scores of a model that are compared with all of another's, and rows of that table at once."""
LEAST_DAMPING = 1e-9
"""Of least squares, relative to the sum of all curvatures."""


def expected_win_rate(elo: float, other: float) -> float:
    """How often a model of this rating is preferred to another one."""
    return float(1 / (1 + 10 ** ((other - elo) / 400)))


def mismatch_degree(won: float, expected: float) -> float:
    """How much more of its pairs a model wins than expected, as a share of the most by which it could differ; both from 0 to 1."""
    return (won - expected) / max(expected, 1 - expected)


def scores_by_model(scores: np.ndarray, wrote: Sequence[tuple[str, str]]) -> dict[str, list[float]]:
    """The scores of each model's replies, from (n, 2) scores of the replies of pairs and the names of who wrote them."""
    found: dict[str, list[float]] = defaultdict(list)
    for row, names in zip(scores.tolist(), wrote, strict=True):
        for score, name in zip(row, names, strict=True):
            found[name].append(score)
    return dict(found)


def mismatch_degrees(
    scores: np.ndarray, wrote: Sequence[tuple[str, str]], elo: Mapping[str, float]
) -> dict[str, float]:  # fmt: skip
    """The mismatch degree of each model over its pairs with others; a tie is no win, as in the released code."""
    won: dict[str, list[float]] = defaultdict(list)
    expected: dict[str, list[float]] = defaultdict(list)
    for (a, b), (first, second) in zip(scores.tolist(), wrote, strict=True):
        if first == second:
            continue
        for name, other, wins in ((first, second, a > b), (second, first, b > a)):
            _rated((name, other), elo)
            won[name].append(float(wins))
            expected[name].append(expected_win_rate(elo[name], elo[other]))
    return {name: mismatch_degree(float(np.mean(won[name])), float(np.mean(expected[name]))) for name in sorted(won)}


def elo_table(file: Path | str) -> dict[str, float]:
    """The ratings in a file of rows (JSON lines, a JSON list, .csv, .parquet) with the columns model and elo; model_name and
    arena_score are read too."""
    found: dict[str, float] = {}
    for entry in read(file):
        if entry.blank:
            continue
        row = entry.row or {}
        name = next((str(row[column]) for column in NAMES if row.get(column)), None)
        rating = next((number for column in RATINGS if (number := number_of(row.get(column))) is not None), None)
        if name is None or rating is None:
            raise RewardlabError(f"{file}, {entry.place}: a rating is a row with columns model, a text, and elo, a number")
        found[name] = rating
    if not found:
        raise RewardlabError(f"{file} has no ratings: write rows with columns model and elo")
    return found


def calibrating_offsets(
    scores: Mapping[str, Sequence[float]], elo: Mapping[str, float], temperature: float = 0.1
) -> dict[str, float]:  # fmt: skip
    """What to add to a model's scores, by model, so that models win against one another as often as their ratings say.

    scores: of the replies of each model, by one reward model. More than 1,000 of a model are represented by as many quantiles.
    """
    names = sorted(scores)
    _rated(names, elo)
    if len(names) < 2:
        raise RewardlabError(f"scores are calibrated by comparing models, and all replies are by {', '.join(names) or 'none'}")
    table = [_quantiles(np.asarray(scores[name], float), name) for name in names]
    pairs = list(combinations(range(len(names)), 2))
    wanted = np.array([expected_win_rate(elo[names[a]], elo[names[b]]) for a, b in pairs])
    start = _against_one(table, [elo[name] for name in names], temperature)
    found = _least_squares(table, pairs, wanted, start, temperature)
    return dict(zip(names, (found - found.mean()).tolist(), strict=True))


def _rated(names: Sequence[str], elo: Mapping[str, float]) -> None:
    if absent := [name for name in names if name not in elo]:
        raise RewardlabError(f"there is no Elo rating of {', '.join(absent)}: give one to each model that wrote replies")


def win_rate(scores: np.ndarray, others: np.ndarray, ahead: float, temperature: float) -> tuple[float, float]:
    """W of every score with every other, the first ones raised by `ahead`, and its derivative by `ahead`."""
    total = slope = 0.0
    for i in range(0, len(scores), CHUNK):
        gaps = (scores[i : i + CHUNK, None] + ahead - others) / temperature
        # clipped, since exp overflows beyond 700
        wins = 1 / (1 + np.exp(-np.clip(gaps, -500, 500)))
        total, slope = total + float(wins.sum()), slope + float((wins * (1 - wins)).sum())
    cells = len(scores) * len(others)
    return total / cells, slope / cells / temperature


def _quantiles(scores: np.ndarray, name: str) -> np.ndarray:
    if not np.isfinite(scores).all():
        raise RewardlabError(f"a reply of {name} has a score that is not finite")
    return scores if len(scores) <= AT_MOST else np.quantile(scores, (np.arange(AT_MOST) + 0.5) / AT_MOST)


def _against_one(table: Sequence[np.ndarray], elo: Sequence[float], temperature: float) -> np.ndarray:
    """(N,) offsets with which each model wins as often as it should against the one of median rating, by bisection."""
    middle = int(np.argsort(elo, kind="stable")[len(elo) // 2])
    found = np.zeros(len(elo))
    for a in range(len(elo)):
        wanted, other = expected_win_rate(elo[a], elo[middle]), table[middle]
        low, high = (float(x) for x in (other.min() - table[a].max(), other.max() - table[a].min()))
        low, high = low - 100 * temperature, high + 100 * temperature
        for _ in range(60 if a != middle else 0):
            found[a] = (low + high) / 2
            below = win_rate(table[a], other, found[a], temperature)[0] < wanted
            low, high = (found[a], high) if below else (low, found[a])
    return found


def _least_squares(
    table: Sequence[np.ndarray], pairs: Sequence[tuple[int, int]], wanted: np.ndarray, start: np.ndarray, temperature: float
) -> np.ndarray:
    """(N,) offsets of least squared error of the win rates, by Levenberg and Marquardt's steps.

    Each pair stands for both of its orders: W_ab + W_ba = 1, as for the expected rates.
    """

    def errors(offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rates = np.array([win_rate(table[a], table[b], offsets[a] - offsets[b], temperature) for a, b in pairs])
        slopes = np.zeros((len(pairs), len(offsets)))
        for row, (a, b) in enumerate(pairs):
            slopes[row, a], slopes[row, b] = rates[row, 1], -rates[row, 1]
        return rates[:, 0] - wanted, slopes

    offsets, damping = start, 1e-3
    error, slopes = errors(offsets)
    for _ in range(50):
        # damping also decides the one direction in which nothing changes, all offsets by the same: without any, which many good
        # steps would come to, the matrix is singular
        square = slopes.T @ slopes
        step = np.linalg.solve(square + damping * max(float(np.trace(square)), 1e-12) * np.eye(len(offsets)), -slopes.T @ error)
        tried = errors(offsets + step)
        if float(tried[0] @ tried[0]) >= float(error @ error):
            damping *= 10
            if damping > 1e6:
                break
            continue
        gain = float(error @ error) - float(tried[0] @ tried[0])
        offsets, (error, slopes), damping = offsets + step, tried, max(damping / 10, LEAST_DAMPING)
        if gain < 1e-14:
            break
    return offsets
