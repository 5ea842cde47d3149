"""Notes as in `notes`, written by policies of known quality, one of which praises too much: pairs say who wrote each reply.

Each policy does as asked with a chance of its own; `chatty` adds words of praise to every note. The annotator of the training pairs
likes praise (`taste`), so that a reward model overrates that policy. The Elo ratings are those of the true quality: they are fitted
to true comparisons of the policies on held-out prompts. Policies that write no training pair are in the test pairs, which are
labelled by the truth: `babbler` is as chatty.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import combinations
from typing import Any

import numpy as np

from rewardlab.core import Problem, Task, seed_of
from rewardlab.settings.domain import NonNegativeInt, PositiveInt, Share
from rewardlab.tasks.pairs import Annotator, Paired, Reply, all_paired, with_pair

from .notes import PRAISES, notes, quality, read


@dataclass(frozen=True)
class Writer:
    """A policy. care: how often it does each thing that is asked for.  chatty: whether it adds praise.  seen: in training pairs."""

    care: float
    chatty: bool = False
    seen: bool = True


POLICIES = {
    "novice": Writer(0.2), "junior": Writer(0.5), "chatty": Writer(0.5, chatty=True), "senior": Writer(0.75),
    "expert": Writer(0.95), "babbler": Writer(0.75, chatty=True, seen=False), "adept": Writer(0.85, seen=False),
}  # fmt: skip
RATED_ON, MEAN_ELO = 400, 1200.0
"""Prompts on which all policies are compared for their ratings, and the mean rating."""


def authored_notes(
    *, quirk: NonNegativeInt = 2, taste: float = 0.3, flip: Share = 0.0, test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """quirk: words of praise that a chatty policy adds.  taste: what the annotator of the training pairs adds to the quality for
    each word of praise; of such words, more than two make a note worse.  flip, size: as in `notes`."""
    task = notes(test_size=test_size, size=size)
    seen = [name for name, writer in POLICIES.items() if writer.seen]
    labelled = partial(_pair, names=seen, quirk=quirk, taste=taste, annotator=Annotator(flip))
    true = partial(_pair, names=list(POLICIES), quirk=quirk, taste=0.0, annotator=Annotator())
    columns = ("chosen_model", "rejected_model", "chosen_elo", "rejected_elo")
    return replace(
        task, name="authored_notes", train=Paired(_source(task.train), labelled), test=all_paired(task.test, true),
        about=f"{task.about}; the notes of a pair are by two policies of known quality", columns=(*task.columns, *columns),
    )  # fmt: skip


def _source(train: Any) -> Any:
    # the pairs of `notes` are replaced, not made first
    return train.source if isinstance(train, Paired) else train


def note_of(name: str, problem: Problem, rng: random.Random, quirk: int) -> str:
    """A note by the policy of this name."""
    writer = POLICIES[name]
    demonstrate = notes(care=writer.care).demonstrate
    assert demonstrate is not None
    text: str = demonstrate(problem, rng)
    need = next(iter(read(text).names), None)
    if not writer.chatty or need is None:
        return text
    return text.replace(need, " ".join([*rng.choices(PRAISES, k=quirk), need]), 1)


def _pair(
    problem: Problem, rng: random.Random, *, names: Sequence[str], quirk: int, taste: float, annotator: Annotator
) -> Problem:  # fmt: skip
    """The problem with notes of two policies that differ in quality, as the annotator prefers them."""
    while True:
        authors = rng.sample(names, 2)
        a, b = (_reply(name, problem, rng, quirk, taste) for name in authors)
        if a.quality != b.quality:
            break
    labelled = annotator.label(problem, a, b, rng)
    # notes of different quality are different texts
    by_text = {a.text: (a, authors[0]), b.text: (b, authors[1])}
    (chosen, better), (rejected, worse) = by_text[labelled.meta["chosen"]], by_text[labelled.meta["rejected"]]
    elo = ratings(quirk)
    return with_pair(
        problem, chosen, rejected, chosen_model=better, rejected_model=worse, chosen_elo=elo[better], rejected_elo=elo[worse]
    )


def _reply(name: str, problem: Problem, rng: random.Random, quirk: int, taste: float) -> Reply:
    text = note_of(name, problem, rng, quirk)
    return Reply(text, quality(text, problem.meta), taste * read(text).praise)


# ---- ratings -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def ratings(quirk: int) -> dict[str, float]:
    """The Elo rating of each policy, fitted to its true wins against the others."""
    names = list(POLICIES)
    worth = np.array([[_worth(name, problem, quirk) for name in names] for problem in notes(test_size=RATED_ON).test])
    wins = np.zeros((len(names), len(names)))
    for a, b in combinations(range(len(names)), 2):
        wins[a, b] = (worth[:, a] > worth[:, b]).sum() + (worth[:, a] == worth[:, b]).sum() / 2
        wins[b, a] = len(worth) - wins[a, b]
    return dict(zip(names, (round(x, 1) for x in fitted(wins)), strict=True))


def _worth(name: str, problem: Problem, quirk: int) -> float:
    text = note_of(name, problem, random.Random(seed_of("ratings", name, problem.key)), quirk)
    return quality(text, problem.meta)


def fitted(wins: np.ndarray) -> list[float]:
    """Elo ratings of the highest likelihood for wins[a, b], how often a was better than b (Hunter 2004, the MM algorithm)."""
    games, strength = wins + wins.T, np.ones(len(wins))
    for _ in range(1000):
        strength = wins.sum(1) / (games / (strength[:, None] + strength)).sum(1)
        strength /= np.exp(np.log(strength).mean())
    return (MEAN_ELO + 400 * np.log10(strength)).tolist()
