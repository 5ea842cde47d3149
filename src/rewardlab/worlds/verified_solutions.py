"""Pairs of solutions as in `preferences`, of which a few are verified: labelled by the truth, and known to be (`gold`)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Literal

from rewardlab.core import Task
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share
from rewardlab.tasks.pairs import Paired

from .preferences import preferences
from .verified_notes import verified


def verified_solutions(
    *, gold: Share = 0.1, base: str = "arithmetic", writer: Literal["teacher", "several", "policy"] = "several", error: Share = 0.3,
    biased: Share = 0.0, flip: Share = 0.0, noise: NonNegativeFloat = 0.0, longer: Share | None = None,
    test_size: PositiveInt = 1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """gold: share of the training pairs that are verified. All else as in `preferences`, whose pairs these are."""
    task = preferences(
        base=base, writer=writer, error=error, biased=biased, flip=flip, noise=noise, longer=longer, test_size=test_size, size=size
    )  # fmt: skip
    return replace(
        task, name="verified_solutions", train=Paired(task.train, partial(verified, share=gold)),
        about=f"{task.about}; of the pairs to learn from, a few are verified", columns=(*task.columns, "gold"),
    )  # fmt: skip
