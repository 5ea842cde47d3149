"""What a rater is moved by besides what is right: length, style, order; and how far its scores can be taken for chances."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from rewardlab.scoreboard.items import Item, Verdict

_MARKUP = re.compile(r"^\s{0,3}#{1,6} |^\s*(?:[-*+]|\d{1,3}\.) |\*\*[^*\n]{1,200}\*\*|```", re.MULTILINE)
BINS = 10


def biases(items: Sequence[Item], verdicts: Sequence[Verdict], scale: bool = False) -> dict[str, float]:
    """Of all pairs that count, shares from 0 to 1; a number that nothing is known about is left out.

    right_where_longer, right_where_shorter: pairs ranked right among those whose better reply is the longer one (in characters),
    and the shorter one: far apart, length decides.  right_where_styled, right_where_plain: the same for marks of Markdown.
    ties: pairs without a preference.  consistent: pairs with the same verdict in both orders.  first: how often the reply that is
    shown first is preferred.  brier, calibration_error: of sigmoid(score difference) as the chance that a reply is the better one
    (scale: the scores are log-odds); the error is the mean distance of chance and share in ten bins.
    """
    rows = [(item, verdict, i, j) for item, verdict in zip(items, verdicts, strict=True) for i, j in item.pairs]
    known = [(item, v, i, j, x) for item, v, i, j in rows if (x := v.prefers(i, j)) is not None]
    if not known:
        return {}
    found: dict[str, float] = {"ties": float(np.mean([x == 0.5 for *_, x in known]))}
    for sizes, names in ((len, ("longer", "shorter")), (_markup, ("styled", "plain"))):
        more = np.array([sizes(item.replies[i]) - sizes(item.replies[j]) for item, _, i, j, _ in known])
        right = np.array([_share(x) for *_, x in known])
        for name, where in zip(names, (more > 0, more < 0), strict=True):
            if where.any():
                found[f"right_where_{name}"] = float(right[where].mean())
    return found | _places(known) | (_calibration(known) if scale else {})


def _share(preference: float) -> float:
    return 0.5 if preference == 0.5 else float(preference > 0.5)


def _markup(text: str) -> int:
    return len(_MARKUP.findall(text))


def _places(known: Sequence[tuple[Item, Verdict, int, int, float]]) -> dict[str, float]:
    both = [(v.orders[i, j], v.orders[j, i]) for _, v, i, j, _ in known if (i, j) in v.orders and (j, i) in v.orders]
    told = [(_share(a), _share(b)) for a, b in both if a is not None and b is not None]
    if not told:
        return {}
    return {"consistent": float(np.mean([a == 1 - b for a, b in told])), "first": float(np.mean([(a + b) / 2 for a, b in told]))}


def _calibration(known: Sequence[tuple[Item, Verdict, int, int, float]]) -> dict[str, float]:
    gaps = np.array([_gap(v, i, j) for _, v, i, j, _ in known])
    # which of the two is named first says nothing: both ways count
    chance, truth = 1 / (1 + np.exp(-np.concatenate((gaps, -gaps)).clip(-500, 500))), np.repeat((1.0, 0.0), len(gaps))
    which = np.minimum((chance * BINS).astype(int), BINS - 1)
    apart = [
        abs(chance[which == b].mean() - truth[which == b].mean()) * (which == b).mean() for b in range(BINS) if (which == b).any()
    ]
    return {"brier": float(((chance - truth) ** 2).mean()), "calibration_error": float(sum(apart))}


def _gap(verdict: Verdict, i: int, j: int) -> float:
    a, b = verdict.scores[i], verdict.scores[j]
    return math.nan if a is None or b is None else a - b
