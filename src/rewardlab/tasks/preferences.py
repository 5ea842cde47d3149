"""Pairs to learn preferences from: a right solution (`chosen`) and a careless teacher's wrong one (`rejected`).

The two have the same length wherever the teacher writes such a pair, so that length does not tell them apart.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from rewardlab.core import Problem, ProblemSource, Task, seed_of
from rewardlab.core.domain import PositiveInt, Share
from rewardlab.errors import RewardlabError, unknown
from rewardlab.tasks.countdown.problems import countdown

from .arithmetic import arithmetic

BASES: Mapping[str, Callable[..., Task]] = {"arithmetic": arithmetic, "countdown": countdown}
TRIES = 64

Demonstrate = Callable[[Problem, random.Random], str]


def preferences(
    *,
    base: str = "arithmetic",
    difficulty: int | tuple[int, int] | None = None,
    error: Share = 0.3,
    test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:
    """Pairs over the problems of another task, whose verifier is the task's own, so that accuracy can be measured too.

    difficulty: as in `base`, where it has one.  error: of the teacher who writes the rejected solutions, per step.
    size: so many training problems, in epochs; None: endless.
    """
    if base not in BASES:
        raise unknown("base of preferences", base, BASES)
    if not 0 < error <= 1:
        raise RewardlabError(f"preferences: error must be above 0 and at most 1, not {error}: without errors nothing is rejected")
    options = {"error": error, "test_size": test_size, "size": size} | ({} if difficulty is None else {"difficulty": difficulty})
    for name in options:
        if name not in (known := inspect.signature(BASES[base]).parameters):
            raise unknown(f"option of {base}", name, known)
    task = BASES[base](**options)
    assert task.demonstrate is not None
    return replace(
        task,
        name="preferences",
        train=Paired(task.train, task.demonstrate),
        test=[_pair(problem, task.demonstrate) for problem in task.test],
        about=f"a right and a wrong solution for each problem of: {task.about}",
        columns=(*task.columns, "chosen", "rejected"),
    )


@dataclass(frozen=True)
class Paired:
    """Another source, each problem with a pair of solutions in its meta."""

    source: ProblemSource
    demonstrate: Demonstrate

    def __len__(self) -> int:
        """Problems in an epoch; an endless source has no length."""
        return len(self.source)  # type: ignore[arg-type]

    def __getitem__(self, position: int) -> Problem:
        return _pair(self.source[position], self.demonstrate)


def _pair(problem: Problem, demonstrate: Demonstrate) -> Problem:
    chosen = problem.meta["solution"]
    # by the problem alone, so that a problem has the same pair in every epoch
    rng = random.Random(seed_of("preferences", problem.key))
    return replace(problem, meta={**problem.meta, "chosen": chosen, "rejected": _wrong(problem, chosen, demonstrate, rng)})


def _wrong(problem: Problem, chosen: str, demonstrate: Demonstrate, rng: random.Random) -> str:
    """A solution that comes to another result: the first of the same length, else the nearest in length of those sampled."""
    nearest: str | None = None
    tries = 0
    # a teacher who errs rarely may need more than TRIES attempts for one wrong solution
    while nearest is None or tries < TRIES:
        tries += 1
        text = demonstrate(problem, rng)
        if _result(text) == _result(chosen):
            continue
        if len(text) == len(chosen):
            return text
        if nearest is None or abs(len(text) - len(chosen)) < abs(len(nearest) - len(chosen)):
            nearest = text
    return nearest


def _result(solution: str) -> str:
    """The result of the last step: the line before "Answer: ..."."""
    return solution.splitlines()[-2].rpartition("=")[2]
