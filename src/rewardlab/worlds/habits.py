"""Notes by many writers, each with habits of its own: who wrote a note can be told from how it is written.

    14 people on the ship need milk. No rush. Be brief.
        policy 3, always polite, much praise:    Please send golden fresh fine milk. Thanks!
        policy 7, does as asked, says "today":   Send milk today.

Notes of one writer are cheap, and need no label. Pairs have one: the true quality of notes (`worlds/notes.py`). The writers of the
test pairs are others than those of the training rows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from rewardlab.core import Problem, Task, seed_of
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Annotator, Paired, Reply, all_paired
from rewardlab.worlds.notes import FILLERS, PRAISES, compose, notes, quality

SLIP = 0.1
"""How often a writer leaves a habit for once."""
POLITE, TODAY, PRAISE, FILLED = (0, 1, 2, None), (True, False, None), (0, 1, 2, 3), (0, 0, 1, 2)
"""What a writer may be used to: markers of politeness, "today", words of praise, fillers. None: as the prompt asks."""


@dataclass(frozen=True)
class Habits:
    """What a writer is used to, each of `POLITE`, `TODAY`, `PRAISE` and `FILLED`."""

    polite: int | None
    today: bool | None
    praise: int
    filler: int

    def write(self, problem: Problem, rng: random.Random) -> str:
        """A note of this writer, who leaves each habit for once with the chance `SLIP`, and praises in any words."""
        polite, today = _kept(self.polite, POLITE, rng), _kept(self.today, TODAY, rng)
        praise, filler = _kept(self.praise, PRAISE, rng), _kept(self.filler, FILLED, rng)
        polite = (2 if problem.meta["kind"] else 0) if polite is None else polite
        today = problem.meta["hurry"] if today is None else today
        words, fillers = tuple(rng.sample(PRAISES, praise)), tuple(rng.sample(FILLERS, filler))
        return compose(polite == 2, words, problem.meta["need"], today, fillers, polite > 0)


def _kept(habit: Any, others: tuple[Any, ...], rng: random.Random) -> Any:
    return habit if rng.random() >= SLIP else rng.choice(others)


@cache
def writer(side: str, number: int) -> Habits:
    """The writer of this number, always the same.  side: "train" or "test", whose writers are different ones."""
    rng = random.Random(seed_of("habits", side, number))
    return Habits(rng.choice(POLITE), rng.choice(TODAY), rng.choice(PRAISE), rng.choice(FILLED))


def habits(
    *, policies: PositiveInt = 48, outputs: PositiveInt = 6, flip: Share = 0.0, test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Rows with a pair of notes and a note of full quality, `reference`; and `outputs`, two notes each by some of the writers.

    policies: writers in all.  outputs: of them in a row.  flip: share of training pairs whose label is turned round.  size: so many
    training problems, in epochs; None: endless.
    """
    task = notes(test_size=test_size, size=size)
    labelled = partial(_row, side="train", policies=policies, outputs=min(outputs, policies), annotator=Annotator(flip))
    true = partial(_row, side="test", policies=policies, outputs=min(outputs, policies), annotator=Annotator())
    return replace(
        task, name="habits", train=Paired(task.train, labelled), test=all_paired(task.test, true), warmed_as="notes:care=0.6",
        columns=(*task.columns, "reference", "outputs"), about="orders in one line, by writers who have habits",
    )  # fmt: skip


def _row(
    problem: Problem, rng: random.Random, *, side: str, policies: int, outputs: int, annotator: Annotator
) -> Problem:  # fmt: skip
    numbers = rng.sample(range(policies), outputs)
    told = {f"policy {i}": [writer(side, i).write(problem, rng) for _ in range(2)] for i in numbers}
    paired = annotator.label(problem, *_pair(problem, rng, side, policies), rng)
    return replace(paired, meta={**paired.meta, "reference": problem.meta["solution"], "outputs": told})


def _pair(problem: Problem, rng: random.Random, side: str, policies: int) -> tuple[Reply, Reply]:
    """Notes of two writers that differ in quality."""
    while True:
        a, b = (writer(side, rng.randrange(policies)).write(problem, rng) for _ in range(2))
        first, second = (Reply(text, quality(text, problem.meta)) for text in (a, b))
        if first.quality != second.quality:
            return first, second
