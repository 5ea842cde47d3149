"""Notes and pairs of them as in `notes`, of which a few are verified: labelled by the truth, and known to be.

So do people check a small part of the labels that a model, or many hurried annotators, gave. The column `gold` of a training pair
says whether it was.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

from rewardlab.core import Problem, Task, seed_of
from rewardlab.data.strength import flipped
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt, Share
from rewardlab.tasks.pairs import Paired

from .notes import notes


def verified_notes(
    *, gold: Share = 0.1, care: Share = 0.6, flip: Share = 0.0, noise: NonNegativeFloat = 0.0, taste: float = 0.0,
    writers: NonNegativeInt = 0, test_size: PositiveInt = 1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """gold: share of the training pairs that are verified. All else as in `notes`, whose pairs these are."""
    task = notes(care=care, flip=flip, noise=noise, taste=taste, writers=writers, test_size=test_size, size=size)
    return replace(
        task, name="verified_notes", train=Paired(task.train, partial(verified, share=gold)),
        about=f"{task.about}; of the pairs to learn from, a few are verified", columns=(*task.columns, "gold"),
    )  # fmt: skip


def verified(problem: Problem, rng: random.Random, *, share: float) -> Problem:
    """The same pair, rightly labelled with the chance `share`."""
    verified = random.Random(seed_of("verified", problem.key)).random() < share
    better, worse = problem.meta["qualities"]
    meta = flipped(problem.meta) if verified and better < worse else problem.meta
    return replace(problem, meta={**meta, "gold": verified})
