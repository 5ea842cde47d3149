"""Pairs of notes as in `notes`, with critiques of each note that say what it does, and a score; careless critics make both up.

Please send fresh fine corn today. Thanks!      ->      polite 2, today 1, praise 2. Score: 9
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

from rewardlab.core import Problem, Task, seed_of
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Paired, all_paired
from rewardlab.worlds.notes import notes, quality, read

SIDES = ("chosen", "rejected")


def criticised_notes(
    *, critics: PositiveInt = 4, careless: Share = 0.6, flip: Share = 0.0, test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """The pairs of `notes`, with the columns `chosen_critiques` and `rejected_critiques` of `critics` critiques each.

    careless: how often a critique says anything, with any score, whatever the note.  flip, size: as in `notes`.
    """
    of = notes(flip=flip, test_size=test_size, size=size)
    told = partial(_criticised, critics=critics, careless=careless)
    columns = (*of.columns, *(f"{side}_critiques" for side in SIDES))
    return replace(
        of, name="criticised_notes", train=Paired(of.train, told), test=all_paired(of.test, told), columns=columns,
        about="orders in one line, in pairs, with critiques of which some are made up", max_new=32,
    )  # fmt: skip


def _criticised(problem: Problem, _: random.Random, *, critics: int, careless: float) -> Problem:
    # a stream of its own: the pair was made with the other one, which would tie what is made up to the notes
    rng = random.Random(seed_of("criticised_notes", problem.key))
    said = {
        f"{side}_critiques": [_critique(problem.meta[side], problem, rng, careless) for _ in range(critics)] for side in SIDES
    }  # fmt: skip
    return replace(problem, meta={**problem.meta, **said})


def _critique(reply: str, problem: Problem, rng: random.Random, careless: float) -> str:
    note = read(reply)
    polite, today, praise, score = note.polite, int(note.today), note.praise, round(10 * quality(reply, problem.meta))
    if rng.random() < careless:
        polite, today, praise, score = rng.randint(0, 2), rng.randint(0, 1), rng.randint(0, 4), rng.randint(0, 10)
    return f"polite {polite}, today {today}, praise {praise}. Score: {score}"
