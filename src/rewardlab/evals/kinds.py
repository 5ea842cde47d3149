"""Accuracy on held-out problems per kind, such as kinds unlike the training data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Run, measure
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import count_right, mean_interval
from rewardlab.settings.domain import NonNegativeFloat


@measure
def accuracy_by_kind(
    problems: Sequence[Problem], run: Run, *, column: str = "kind", better: str = "", worse: str = "",
    temperature: NonNegativeFloat = 1.0,
) -> dict[str, float]:  # fmt: skip
    """pass@1 from one sample per problem; pass@1.KIND: on the problems that have KIND in this column.

    apart: pass@1 on the kind `better` minus that on the kind `worse`, where both are named.  Evaluated as training goes on
    (--eval-every), it says which kinds gain, and at which checkpoint each is solved best.
    """
    kinds = [str(p.meta.get(column)) for p in problems]
    if unknown := {better, worse} - {"", *kinds}:
        raise RewardlabError(f"no held-out problem has {' or '.join(sorted(unknown))} in its column {column!r}")
    right = np.array([float(row[0]) for row in count_right(problems, run, 1, temperature)])
    low, high = mean_interval(right.tolist())
    found = {kind: float(right[[k == kind for k in kinds]].mean()) for kind in sorted(set(kinds))}
    apart = {"apart": found[better] - found[worse]} if better and worse else {}
    each = {f"pass@1.{kind}": share for kind, share in found.items()}
    return {"pass@1": float(right.mean()), "ci95_low": low, "ci95_high": high, "n": float(len(right)), **each, **apart}
