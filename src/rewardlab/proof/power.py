"""The power sum of a claim: what development seeds say about its margin, before the record is run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

AIM = 3.0
"""Standard deviations of the pair difference that an effect should have, so that five to eight pairs decide."""


def power(effects: Sequence[float | None]) -> dict[str, Any] | None:
    """effect, sd of the pair difference, their ratio, and the margin by rule: half the effect, and at least one sd.

    None with fewer than three effects, whose spread says nothing.
    """
    values = np.array([e for e in effects if e is not None], float)
    if len(values) < 3:
        return None
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    wanted = max(abs(mean) / 2, sd)
    # without any spread there is no ratio
    return {"effect": mean, "sd": sd, "ratio": mean / sd if sd else None, "margin": wanted}
