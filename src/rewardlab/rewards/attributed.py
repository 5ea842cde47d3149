"""The scores of an episode, divided among its utterances by what an attributor says of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from rewardlab.core import Score, Trajectory
from rewardlab.data.sotopia import RANGES
from rewardlab.data.values import number_of
from rewardlab.rewards.reward import reward
from rewardlab.text import strict_json


@reward
def attributed_score(
    trajectory: Trajectory, *, dimensions: tuple[str, ...] = ("goal", "relationship", "knowledge"), most: float = 3.0,
    spread: Literal["attributed", "uniform"] = "attributed", scores: str = "scores", attributions: str = "attributions",
) -> Score:  # fmt: skip
    """The mean over dimensions d of G_d A_d / most, each brought from the range of G_d to 0 to 1. G: the episode's scores; A: how
    much this utterance did for them, from 0 to `most`. Both are columns with a number for each dimension. The ranges are those of
    Sotopia's seven dimensions, and 0 to 10 for any other.

    spread: uniform takes A_d = most, so that every utterance gets its episode's scores. For recorded utterances. No verdict where a
    number is not there.  Yu et al. 2025, arXiv:2508.03905
    """
    given, shares = (_numbers(trajectory.problem.meta.get(column)) for column in (scores, attributions))
    parts = []
    for name in dimensions:
        total, share = number_of(given.get(name)), most if spread == "uniform" else number_of(shares.get(name))
        if total is None or share is None:
            return Score(None, why=f"the data has no {scores if total is None else attributions} of {name!r}")
        low, high = RANGES.get(name, (0.0, 10.0))
        parts.append((total * share / most - low) / (high - low))
    return Score(sum(parts) / max(1, len(parts)), why=", ".join(f"{d} {x:.2f}" for d, x in zip(dimensions, parts, strict=True)))


def _numbers(value: Any) -> Mapping[str, Any]:
    try:
        found = strict_json.parse(value) if isinstance(value, str) else value
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}
