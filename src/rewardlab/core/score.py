"""The score of a rollout: named reward terms and their sum.

    value = constant + sum over terms of weight * term.value      the reward on the last decision
    steps = sum over terms of weight * term.steps                 the rewards at single token positions

A product, a gate or a clipped reward is not a weighted sum. It becomes a term of its own; the terms it was computed from are kept
with weight None: they are logged, but add nothing to the score.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from rewardlab.core.trajectory import Group, Trajectory
from rewardlab.errors import NotFinite, RewardlabError

Steps = tuple[tuple[int, float], ...]
"""(token position, reward) pairs."""


@dataclass(frozen=True)
class Term:
    """One named reward, before its weight.

    value: the outcome reward, paid on the last decision; None if the term has no outcome.  steps: rewards at token positions.
    weight: the factor with which it enters the score; None: it is logged, but adds nothing.
    """

    value: float | None
    steps: Steps = ()
    weight: float | None = 1.0

    @property
    def numbers(self) -> list[float]:
        """The outcome, if there is one, and the rewards of the steps."""
        return [*([] if self.value is None else [self.value]), *(r for _, r in self.steps)]


@dataclass(frozen=True, init=False)
class Score:
    """What one rollout earned: terms by name, from which value, steps and total follow.

        Score(0.5, why="half of the tests pass")       what a reward function returns: one term, named after the reward
        Score(None, why="the judge is down")           no verdict
        Score(steps=((7, 1.0), (12, 0.0)))             rewards at token positions alone
        Score(terms={"a": Term(1.0), "b": Term(3.0, weight=0.1)})

    constant: the sum of plain numbers, as the 1 in `1 - length()`; None if there are none.
    missing: there is no verdict, because judging failed (a timeout, a judge that is down); it is never counted as a zero.
    why: the reason for the score, in words.  extracted: the answer that the verifier read from the reply.
    tests: where a verdict is made of several tests, which of them were passed, in their order.
    """

    terms: dict[str, Term]
    constant: float | None
    missing: bool
    why: str
    extracted: str
    tests: tuple[bool, ...]

    def __init__(
        self, value: float | None = None, steps: Iterable[tuple[int, float]] = (), *, terms: Mapping[str, Term] | None = None,
        constant: float | None = None, missing: bool = False, why: str = "", extracted: str = "",
        tests: tuple[bool, ...] = (),
    ):  # fmt: skip
        steps = tuple(steps)
        if terms is None:
            # the term is unnamed until the reward that called the function names it
            terms, missing = {"": Term(value, steps)}, missing or (value is None and not steps)
        elif value is not None or steps:
            raise RewardlabError("a Score is made of a value and steps, or of terms, not of both")
        fields = {
            "terms": dict(terms), "constant": constant, "missing": missing, "why": why, "extracted": extracted, "tests": tests
        }  # fmt: skip
        for name, field in fields.items():
            # the dataclass is frozen, so a plain assignment would raise
            object.__setattr__(self, name, field)

    @property
    def value(self) -> float | None:
        """The reward on the last decision; None without a verdict."""
        if self.missing:
            return None
        values = [weight * t.value for weight, t in self._paid() if t.value is not None]
        return exact_sum(values if self.constant is None else [*values, self.constant])

    @property
    def steps(self) -> Steps:
        """(position, reward) pairs by position; rewards of several terms at one position are added."""
        total: dict[int, float] = {}
        for weight, term in self._paid():
            for at, r in term.steps:
                total[at] = total.get(at, 0.0) + weight * r
        return tuple(sorted(total.items()))

    @property
    def total(self) -> float | None:
        """The value plus all step rewards; None without a verdict."""
        return None if self.value is None else self.value + sum(r for _, r in self.steps)

    @property
    def has_outcome(self) -> bool:
        """Whether the value is a reward event. An outcome of 0 is an event; a score of step rewards alone has no outcome event.

        A verdict with neither outcome nor steps counts as an outcome of 0, so that every judged rollout has an event.
        """
        stated = self.constant is not None or any(t.value is not None for _, t in self._paid())
        return not self.missing and (stated or not self.steps)

    def as_term(self) -> Term:
        """The whole score as one term."""
        return Term(self.value if self.has_outcome else None, self.steps)

    def named(self, name: str) -> Score:
        """The same score, with this name for its term that has none yet."""
        return replace(self, terms={key or name: term for key, term in self.terms.items()})

    def _paid(self) -> list[tuple[float, Term]]:
        # without a verdict no term counts, though some of them may have a value
        return [] if self.missing else [(t.weight, t) for t in self.terms.values() if t.weight is not None]


Scores = list[list[Score]]


def exact_sum(values: list[float]) -> float:
    """The sum, rounded once; not finite where a value is not."""
    try:
        # fsum rounds once, so the order of the terms does not matter
        return math.fsum(values)
    except (OverflowError, ValueError):
        # infinities of both signs, or a sum beyond the range of floats: check_finite reports them by name
        return sum(values)


def check_finite(groups: list[Group], scores: Scores, source: str) -> None:
    """Raise NotFinite, naming term and rollout, if any reward is NaN or infinite."""
    for g, row in enumerate(scores):
        for i, score in enumerate(row):
            # finite terms can still overflow in their sum
            for name, term in {**score.terms, "total": score.as_term()}.items():
                if not all(math.isfinite(v) for v in term.numbers):
                    rollout: Trajectory = groups[g][i]
                    raise NotFinite(
                        f"reward term {name!r} of {source} is not finite for rollout {i} of group {g} "
                        f"(problem {rollout.problem.question[:60]!r}, reply {rollout.reply[:60]!r})"
                    )
