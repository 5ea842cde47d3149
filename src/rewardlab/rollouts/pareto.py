"""Pairs of next steps of which one is better by every criterion that the step is judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from rewardlab.core import Group, Problem, Run, Score, Trajectory, rollout
from rewardlab.core.domain import NonNegativeFloat, PositiveInt
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.lookahead_search import last_step
from rewardlab.rollouts.stepwise import Stepping, grown, marked, started

Vector = dict[str, float]
"""By criterion."""


def dominates(a: Vector, b: Vector, by: float = 0.0) -> bool:
    """Whether a is at least as good as b by every criterion that both are judged by, and better by more than `by` in one."""
    shared = a.keys() & b.keys()
    return bool(shared) and all(a[c] >= b[c] for c in shared) and any(a[c] > b[c] + by for c in shared)


def better(a: Vector, b: Vector, rule: str, by: float) -> bool:
    """Whether a step is preferred.  rule: "pareto", or "sum": the sum over the criteria of both is higher by more than `by`."""
    shared = a.keys() & b.keys()
    return dominates(a, b, by) if rule == "pareto" else sum(a[c] for c in shared) > sum(b[c] for c in shared) + by


def pairs_among(vectors: Sequence[Vector], rule: str, by: float) -> list[tuple[int, int]]:
    """The places of all pairs of which the first is preferred, and no other is preferred to it: under "pareto" it is optimal."""
    places = range(len(vectors))
    worse = [[j for j in places if j != i and better(vectors[i], vectors[j], rule, by)] for i in places]
    beaten = {j for row in worse for j in row}
    return [(i, j) for i in places if i not in beaten for j in worse[i]]


def front(vectors: Sequence[Vector]) -> list[int]:
    """The places of those that no other dominates."""
    return [i for i, a in enumerate(vectors) if not any(dominates(b, a) for b in vectors)]


@rollout(rows=lambda **_: 2, across_problems=True)
def pareto_pairs(
    problems: list[Problem], run: Run, *, criteria: Reward, rule: Literal["pareto", "sum"] = "pareto", by: NonNegativeFloat = 0.0,
    branch: PositiveInt = 4, each: PositiveInt = 2, temperature: NonNegativeFloat = 1.0, step_tokens: PositiveInt | None = None,
    stop: tuple[str, ...] = ("\n",),
) -> list[Group]:  # fmt: skip
    """Pairs of next steps after the same beginning, the preferred one first: a path to each problem, `branch` steps at each place.

    criteria: a reward of unfinished replies, each of whose terms is a criterion.  rule, by: as in `better`.  each: pairs at most
    from one place, the first found.  The path goes on with the first step that no other dominates.
    Logged: pairs_per_problem. Without any pair, a row without decisions is returned twice.  Yin et al. 2025, arXiv:2507.17849
    """
    how, pairs = Stepping(step_tokens, temperature, tuple(stop)), list[Group]()
    open_ = started(problems, run)
    while open_:
        done = grown([t for t in open_ for _ in range(branch)], [*range(branch)] * len(open_), how, run)
        groups = [_different(done[i : i + branch]) for i in range(0, len(done), branch)]
        vectors = [[_vector(s) for s in row] for row in criteria([marked(group, run) for group in groups], run)]
        for group, known in zip(groups, vectors, strict=True):
            pairs += [[last_step(group[i]), last_step(group[j])] for i, j in pairs_among(known, rule, by)[:each]]
        ahead = [group[front(known)[0]] for group, known in zip(groups, vectors, strict=True)]
        open_ = [t for t in ahead if t.stop is None]
    run.log("pairs_per_problem", len(pairs) / len(problems))
    return pairs or [[replace(t, stop="end")] * 2 for t in started(problems[:1], run)]


def _different(rows: Sequence[Trajectory]) -> Group:
    return list({(t.turns[-1].text, t.stop): t for t in reversed(rows)}.values())[::-1]


def _vector(score: Score) -> Vector:
    """The terms of a score; one without a verdict is left out."""
    return {c: sum(t.numbers) for c, t in score.terms.items() if t.weight is not None and t.numbers}
