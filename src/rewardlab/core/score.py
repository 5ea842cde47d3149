"""What a trajectory earned: scores, the named terms they are made of, and how scores are put together.

But for constants, value and steps of a score are the sum of its terms by their weights. So what is no sum (a product, a gate, a
clipped reward) has a term of its own, and the terms it was made of are kept beside it with weight 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from rewardlab.errors import NotFinite, RewardlabError

from .trajectory import Group, Trajectory


@dataclass(frozen=True)
class Term:
    """One named reward, unweighted: a value for the whole trajectory, and rewards at single token positions.

    weight: its share in the total. 0: it is kept to be seen, and what it led to is in other terms.
    """

    value: float | None
    steps: tuple[tuple[int, float], ...] = ()
    weight: float = 1.0


@dataclass(frozen=True)
class Score:
    """What a trajectory earned: `value` on its last decision, `steps` at their token positions, `parts` by name.

    outcome: whether the value is a reward of its own, so that an outcome of 0 counts as an event; beside step rewards alone a
    value of 0 is none. None: it is one, unless it is 0 beside steps.  extracted: what a verifier took for the answer.
    """

    value: float | None
    steps: tuple[tuple[int, float], ...] = ()
    parts: dict[str, Term] = field(default_factory=dict)
    why: str = ""
    outcome: bool | None = None
    extracted: str = ""

    @property
    def ends(self) -> bool:
        """Whether there is a reward on the last decision as such."""
        return self.value is not None and (self.outcome if self.outcome is not None else self.value != 0 or not self.steps)

    @property
    def total(self) -> float | None:
        return None if self.value is None else self.value + sum(r for _, r in self.steps)


Scores = list[list[Score]]


def added(scores: list[Score]) -> Score:
    """The sum: of values, of steps by position, of all terms."""
    values = [s.value for s in scores if s.value is not None]
    total = _total(values) if len(values) == len(scores) else None
    ends = any(s.ends for s in scores)
    return Score(total, merged_steps(s.steps for s in scores), merged_parts(scores), reasons(scores), ends, _extracted(scores))


def scaled(score: Score, by: float) -> Score:
    """Value and steps times a number, which goes to the weights of the terms."""
    value = None if score.value is None else by * score.value
    parts = {k: replace(t, weight=by * t.weight) for k, t in score.parts.items()}
    return replace(score, value=value, steps=tuple((t, by * r) for t, r in score.steps), parts=parts)


def shaped(name: str, score: Score, of: list[Score]) -> Score:
    """A score as a term of its own, beside the terms of what it was made of, which weigh nothing any more."""
    made = Score(None, parts={name: Term(score.value if score.ends else None, score.steps)})
    parts = {k: replace(t, weight=0.0) for k, t in merged_parts(of).items()}
    both = merged_parts([Score(None, parts=parts), made])
    return replace(score, parts=both, why=reasons(of), extracted=_extracted(of))


def _total(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):
        # infinities of both signs, or beyond the range: check_finite will name them
        return sum(values)


def merged_parts(scores: list[Score]) -> dict[str, Term]:
    parts: dict[str, Term] = {}
    for score in scores:
        for name, term in score.parts.items():
            if name in parts:
                raise RewardlabError(f"two rewards are named {name!r}; tell them apart with .named('...')")
            parts[name] = term
    return parts


def merged_steps(many: Iterable[tuple[tuple[int, float], ...]]) -> tuple[tuple[int, float], ...]:
    total: dict[int, float] = {}
    for steps in many:
        for t, r in steps:
            total[t] = total.get(t, 0.0) + r
    return tuple(sorted(total.items()))


def reasons(scores: list[Score]) -> str:
    return "; ".join(s.why for s in scores if s.why)


def _extracted(scores: list[Score]) -> str:
    """What a verifier took for the answer: the first one that says so."""
    return next((s.extracted for s in scores if s.extracted), "")


def check_finite(groups: list[Group], scores: Scores, source: str) -> None:
    """Raise NotFinite, naming term and rollout, if any reward is NaN or infinite."""
    for g, row in enumerate(scores):
        for i, score in enumerate(row):
            terms = {**score.parts, "total": Term(score.value, score.steps)}
            for name, term in terms.items():
                values = [term.value or 0.0, *(r for _, r in term.steps)]
                if not all(math.isfinite(v) for v in values):
                    where: Trajectory = groups[g][i]
                    raise NotFinite(
                        f"reward term {name!r} of {source} is not finite for rollout {i} of group {g} "
                        f"(problem {where.problem.question[:60]!r}, reply {where.reply[:60]!r})"
                    )
