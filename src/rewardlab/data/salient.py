"""A feature-attribution expert: logistic regression on labelled records that names the values deciding a prediction.

    p(yes) = sigmoid(sum_j w_j z_j + b),  z_j = (x_j - mean_j) / std_j;    the share of value j in it: w_j z_j

Fang et al. 2025, arXiv:2508.13579, train such experts on the training records, and reward a policy for going by what they
go by. There they are networks with attention; a regression's shares in its log-odds stand for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rewardlab.errors import RewardlabError

from .drops import Drop
from .tables import Places, Table
from .values import MISSING, number_of, value_of

RIDGE, ROUNDS = 1.0, 12
"""Weight decay of the coefficients (the default of scikit-learn), and Newton steps; a few suffice."""


class Expert(NamedTuple):
    """Logistic regression. mean, scale: of each value in the records that it was fitted to."""

    mean: np.ndarray
    scale: np.ndarray
    coefficients: np.ndarray
    bias: float

    def shares(self, values: Sequence[float]) -> np.ndarray:
        """How much each value adds to the log-odds of yes."""
        return (np.asarray(values, float) - self.mean) / self.scale * self.coefficients

    def predicts(self, values: Sequence[float]) -> bool:
        return bool(self.shares(values).sum() + self.bias > 0)

    def salient(self, values: Sequence[float], k: int) -> list[int]:
        """The k values that move its prediction most, the most important first; of equals the first."""
        return np.argsort(-np.abs(self.shares(values)), kind="stable")[:k].tolist()


def fit(records: Sequence[Sequence[float]], labels: Sequence[bool]) -> Expert:
    """The regression of the labels on the records, by Newton's method."""
    x, y = np.asarray(records, float), np.asarray(labels, float)
    mean, scale = x.mean(0), x.std(0) + 1e-9
    z = np.column_stack([(x - mean) / scale, np.ones(len(x))])
    penalty = np.diag([RIDGE] * x.shape[1] + [0.0])
    w = np.zeros(z.shape[1])
    for _ in range(ROUNDS):
        p = 1 / (1 + np.exp(-np.clip(z @ w, -30, 30)))
        hessian = (z * (p * (1 - p) + 1e-6)[:, None]).T @ z + penalty
        w = w - np.linalg.solve(hessian, z.T @ (p - y) + penalty @ w)
    return Expert(mean, scale, w[:-1], float(w[-1]))


def salient_file(
    source: Path | str, out: Path | str, dropped: Path | str | None = None, *, features: Sequence[str], yes: str, k: int = 2,
    answer_column: str = "answer", also: Path | str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Rows with the columns features (the names of all values) and salient (the k that an expert goes by, most important first).

    features: columns with a number each.  yes: the answer whose chance is predicted; any other is no.  The expert is fitted to the
    rows of `source` alone: give the training rows there.  also: a file whose rows are written, in place of those of `source`, with
    what the same expert goes by in them; they need no answers.  Rows that lack a number are left out; without an
    answer nothing is learnt from them.
    """
    if not features or len(set(features)) < len(features) or not 1 <= k <= len(features):
        raise RewardlabError(f"salient: name each feature once, and k from 1 to their number, not {list(features)} and k={k}")
    places = Places("salient", [source if also is None else also], out, dropped, [] if also is None else [source])
    table = Table.load(source)
    table.require(*features, answer_column)
    known = [_record(row, features) for row in table.rows]
    answers = [value_of(row, answer_column) for row in table.rows]
    learnt = [(x, str(a).strip() == yes) for x, a in zip(known, answers, strict=True) if x and a not in (MISSING, None)]
    if len({label for _, label in learnt}) < 2:
        raise RewardlabError(f"salient: the rows of {source} need both {answer_column} {yes!r} and others to learn from")
    expert = fit([x for x, _ in learnt], [label for _, label in learnt])
    right = sum(expert.predicts(x) == label for x, label in learnt) / len(learnt)
    if also is not None:
        table = Table.load(also)
        table.require(*features)
        known = [_record(row, features) for row in table.rows]
    rows = [row | _by(expert, x, features, k) for row, x in zip(table.rows, known, strict=True) if x]
    why = Drop("no number", f"one of the columns {', '.join(features)} holds no number")
    left_out = [(place, row, why) for place, row, x in zip(table.places, table.rows, known, strict=True) if not x]
    return places.finish([table], left_out, rows, fitted_to=len(learnt), right=round(right, 3))


def _record(row: Mapping[str, Any], features: Sequence[str]) -> list[float] | None:
    numbers = [number_of(value_of(row, name)) for name in features]
    found = [x for x in numbers if x is not None]
    return found if len(found) == len(features) else None


def _by(expert: Expert, values: Sequence[float], features: Sequence[str], k: int) -> dict[str, list[str]]:
    return {"features": list(features), "salient": [features[i] for i in expert.salient(values, k)]}
