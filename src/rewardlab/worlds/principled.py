"""Notes judged by one principle each: the row names it, and whether a reply satisfies it is known.

    14 people on the ship need milk. No rush. Be brief.        principle: Be polite.
        Please send fine milk.  yes        Send milk today.  no

Principles pull in different directions, as brevity and praise do, so that no order of the notes is right under all of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from rewardlab.core import Problem, Task
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Paired, Reply, all_paired, with_pair
from rewardlab.worlds.notes import Note, notes, quality, read


def extras(note: Note) -> int:
    """Words of a note beside what it is about."""
    return note.polite + note.today + note.praise + 2 * note.filler


PRINCIPLES: Mapping[str, tuple[Callable[[Note], int], int]] = {
    "Be polite.": (lambda note: note.polite, 1), "Say today.": (lambda note: int(note.today), 1),
    "Praise much.": (lambda note: note.praise, 2), "Be brief.": (lambda note: -extras(note), -2),
}  # fmt: skip
"""How far a note follows each, and how far it must to satisfy it."""
COLUMNS = ("principle", "reply", "label", "margins")


def principled(*, care: Share = 0.6, flip: Share = 0.0, test_size: PositiveInt = 1000, size: PositiveInt | None = None) -> Task:
    """Notes (`worlds/notes.py`) that are judged by the `principle` of the row alone.

    The chosen note satisfies it, the rejected one does not; `reply` is one of them, and `label` says whether it does (flip: share
    of training labels turned round). `margins`: how much more the chosen note than the rejected one follows each principle.
    care, size: as in `notes`.
    """
    task = notes(care=care, test_size=test_size, size=size)
    assert task.demonstrate is not None
    labelled, true = (partial(_pair, demonstrate=task.demonstrate, flip=share) for share in (flip, 0.0))
    return replace(
        task, name="principled", train=Paired(task.train, labelled), test=all_paired(task.test, true),
        columns=(*task.columns, *COLUMNS), about="orders in one line, judged by one principle each",
    )  # fmt: skip


def degree(reply: str, principle: str) -> int:
    """How far a reply follows a principle."""
    return PRINCIPLES[principle][0](read(reply))


def satisfies(reply: str, principle: str) -> bool:
    return degree(reply, principle) >= PRINCIPLES[principle][1]


def _pair(problem: Problem, rng: random.Random, *, demonstrate: Callable[[Problem, random.Random], str], flip: float) -> Problem:
    principle, texts = rng.choice(list(PRINCIPLES)), dict[bool, str]()
    while len(texts) < 2:
        text = demonstrate(problem, rng)
        texts.setdefault(satisfies(text, principle), text)
    shown, turned = rng.random() < 0.5, rng.random() < flip
    chosen, rejected = (Reply(texts[side], quality(texts[side], problem.meta)) for side in (True, False))
    return with_pair(
        problem, chosen, rejected, principle=principle, reply=texts[shown], label="no" if shown == turned else "yes",
        margins={name: degree(chosen.text, name) - degree(rejected.text, name) for name in PRINCIPLES},
    )  # fmt: skip
