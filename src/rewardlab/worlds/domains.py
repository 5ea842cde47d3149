"""Two domains with verifiers of their own: chains of arithmetic, and Countdown.

The small policy was warmed up on both, three times as often on arithmetic: one domain that it has often seen, and one rarely.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from rewardlab.core import Problem, Task
from rewardlab.settings.domain import PositiveInt
from rewardlab.tasks.arithmetic import arithmetic
from rewardlab.tasks.countdown.problems import countdown
from rewardlab.tasks.sources import OnDemand, Shuffled

VERIFIERS = {"arithmetic": "final_number", "countdown": "equation"}


@dataclass(frozen=True)
class InTurn:
    """Several sources, one problem of each in turn."""

    sources: Mapping[str, Any]

    def __getitem__(self, position: int) -> Problem:
        at, i = divmod(position, len(self.sources))
        name = list(self.sources)[i]
        return _marked(self.sources[name][at], name)


def _marked(problem: Problem, domain: str) -> Problem:
    """The problem with its domain, the name of its verifier, and its answer as that one wants it."""
    meta = {**problem.meta, "domain": domain, "verifier": VERIFIERS[domain]}
    answer = {"numbers": list(meta["numbers"]), "target": meta["target"]} if domain == "countdown" else problem.answer
    return replace(problem, answer=answer, meta=meta)


def _held_out(tests: Mapping[str, Sequence[Problem]], size: int) -> Iterator[Problem]:
    """In turn, so that any first part of them has both domains; countdown may have fewer."""
    rows = zip(*tests.values(), strict=False)
    return islice((_marked(problem, name) for row in rows for problem, name in zip(row, tests, strict=True)), size)


def domains(*, test_size: PositiveInt = 1000, size: PositiveInt | None = None) -> Task:
    """Half of the problems are of either domain; the columns domain and verifier say which and by what it is judged.

    size: so many training problems, in epochs; None: endless.
    """
    half = (test_size + 1) // 2
    each = None if size is None else (size + 1) // 2
    of = {"arithmetic": arithmetic(test_size=half, size=each), "countdown": countdown(test_size=half, size=each)}
    train = InTurn({name: task.train for name, task in of.items()})
    return Task(
        name="domains",
        train=train if size is None else Shuffled([train[i] for i in range(size)]),
        test=OnDemand(partial(_held_out, {name: task.test for name, task in of.items()}, test_size)),
        verifier="named_verifier",
        max_new=max(task.max_new for task in of.values()),
        about="chains of arithmetic, and numbers to be combined to a target, each judged in its own way",
        warmed_as="arithmetic",
        columns=(*dict.fromkeys(column for task in of.values() for column in task.columns), "domain", "verifier"),
    )
