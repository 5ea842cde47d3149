"""Transfer from formal to informal steps: derivations in logic, checked by a program, and chains of arithmetic without labels.

A judge of steps is trained on the first and used on the second. The small policy, which it begins from, was warmed up on both.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from rewardlab.core import Problem, Task
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.arithmetic import arithmetic
from rewardlab.tasks.sources import Shuffled, changed
from rewardlab.worlds.derivations import derivations

DERIVATION, CHAIN = "derivation", "chain"
VERIFIERS = {DERIVATION: "derivation", CHAIN: "final_number"}


@dataclass(frozen=True)
class Marked:
    """Problems of the sources, one of each in turn, with their kind and the name of their verifier."""

    sources: Mapping[str, Any]

    def __getitem__(self, position: int) -> Problem:
        at, i = divmod(position, len(self.sources))
        kind = list(self.sources)[i]
        return marked(self.sources[kind][at], kind)


def marked(problem: Problem, kind: str) -> Problem:
    return replace(problem, meta={**problem.meta, "kind": kind, "verifier": VERIFIERS[kind]})


def formal(
    *, train: Literal["derivations", "all"] = "derivations", error: Share = 0.2, test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Training problems are derivations of three lines, held-out ones chains of three steps; the column kind says which.

    train: "all": derivations and chains in turn, as the small policy has seen them.  error: of a line, in the solutions that it
    was shown; random ones alone, so that right and wrong steps differ in more than what was learnt by heart.
    size: so many training problems, in epochs; None: endless.
    """
    kinds = {DERIVATION: derivations(biased=0.0, error=error, test_size=1), CHAIN: arithmetic(error=error, test_size=test_size)}
    used = [DERIVATION, *([CHAIN] if train == "all" else [])]
    source = Marked({kind: kinds[kind].train for kind in used})
    return Task(
        name="formal",
        train=source if size is None else Shuffled([source[i] for i in range(size)]),
        test=changed(kinds[CHAIN].test, partial(marked, kind=CHAIN)),
        verifier="named_verifier",
        max_new=max(task.max_new for task in kinds.values()),
        about="derivations to learn from, whose steps a program checks, and chains of arithmetic to be judged",
        demonstrate=partial(_demonstrate, teachers={kind: task.demonstrate for kind, task in kinds.items()}),
        warmup_steps=1000,
        warmed_as=None if train == "all" else f"formal:train=all,error={error}",
        columns=(*dict.fromkeys(column for task in kinds.values() for column in task.columns), "kind", "verifier"),
    )


def _demonstrate(problem: Problem, rng: random.Random, *, teachers: Mapping[str, Any]) -> str:
    return teachers[problem.meta["kind"]](problem, rng)
