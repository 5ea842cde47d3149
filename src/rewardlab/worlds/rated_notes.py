"""Notes that are rated by several attributes, each a number: what a reply is good at, and not whether it is the better one.

    14 people on the ship need milk. No rush. Be brief.
        Please send fine milk, of course.       polite 1  timely 1  praise 1  padding 1

`timely` is about the prompt too. Raters may err, and leave ratings out.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from rewardlab.core import Problem, Task
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share
from rewardlab.tasks.pairs import Paired, all_paired
from rewardlab.worlds.notes import notes, read

ATTRIBUTES = ("polite", "timely", "praise", "padding")


def rated_notes(
    *, care: Share = 0.6, noise: NonNegativeFloat = 0.0, missing: Share = 0.0, test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Notes (`worlds/notes.py`) with a `reply` and a number in each of the columns polite, timely, praise and padding.

    noise: standard deviation of the ratings of training replies.  missing: share of those that nobody gave.  care, size: as in
    `notes`. Held-out replies have their true ratings, all of them.
    """
    task = notes(care=care, test_size=test_size, size=size)
    assert task.demonstrate is not None
    of, true = (partial(_rated, demonstrate=task.demonstrate, noise=x, missing=m) for x, m in ((noise, missing), (0.0, 0.0)))
    return replace(
        task, name="rated_notes", train=Paired(task.train, of), test=all_paired(task.test, true),
        columns=(*task.columns, "reply", *ATTRIBUTES), about="orders in one line, rated by four attributes",
    )  # fmt: skip


def ratings(reply: str, hurry: bool) -> dict[str, float]:
    """The true ratings of a reply, to a prompt that says whether there is hurry."""
    note = read(reply)
    values = (note.polite, note.today == hurry, note.praise, note.filler)
    return dict(zip(ATTRIBUTES, map(float, values), strict=True))


def _rated(
    problem: Problem, rng: random.Random, *, demonstrate: Callable[[Problem, random.Random], str], noise: float, missing: float
) -> Problem:
    reply = demonstrate(problem, rng)
    told = {name: value + rng.gauss(0.0, noise) for name, value in ratings(reply, problem.meta["hurry"]).items()}
    # one rating is always there, or the reply would teach nothing
    always = rng.choice(ATTRIBUTES)
    kept = {name: value for name, value in told.items() if name == always or rng.random() >= missing}
    return replace(problem, meta={**problem.meta, "reply": reply, **kept})
