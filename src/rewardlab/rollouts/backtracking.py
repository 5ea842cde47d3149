"""Greedy search over steps that goes back: one path, whose next step is sampled until a reward accepts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rewardlab.core import Group, Problem, Run, Trajectory, rollout
from rewardlab.core.domain import NonNegativeFloat, PositiveInt
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.stepwise import Scored, Stepping, grown, marked, started, to_the_end, worths


@dataclass
class Place:
    """A row of a path, and what was tried after it.

    tries: steps sampled since it was reached.  seen: their texts.  neutral: the best child that was neither accepted nor refused.
    """

    row: Trajectory
    tries: int = 0
    seen: set[tuple[str, str | None]] = field(default_factory=set)
    neutral: Scored | None = None


Path = list[Place]


@rollout(rows=lambda **_: 1)
def backtracking(
    problems: list[Problem], run: Run, *, score: Reward, accept: float = 2 / 3, refuse: float = 1 / 3, tries: PositiveInt = 4,
    iterations: PositiveInt = 32, temperature: NonNegativeFloat = 1.0, step_tokens: PositiveInt | None = None,
    stop: tuple[str, ...] = ("\n",),
) -> list[Group]:  # fmt: skip
    """One reply to each problem, found by a greedy search that goes back.

    A next step is sampled, and the row up to there scored. From `accept` up the step is positive: the search goes on from it.
    Below `refuse`, or without a verdict, it is negative: another one is sampled in its place. Between the two it is neutral: it is
    kept, and others are tried. After `tries` steps without a positive one the search goes on from the best neutral one, and where
    there is none it goes back to the row before, which has its own tries left. A step that was sampled before is not scored again,
    but counts as a try. At the prompt, from which nothing leads back, the tries begin anew. After `iterations` steps in all, the
    reply is sampled to its end from where the search stands, unguided.
    step_tokens: most tokens of a step (None: of a reply).  stop: the texts that end a step.

    Ma et al. 2023, arXiv:2310.10080 (heuristic greedy search)
    """
    if not refuse <= accept:
        raise RewardlabError(
            f"backtracking accepts steps from a score of {accept:g} up: refuse them below that, not below {refuse:g}"
        )
    how = Stepping(step_tokens, temperature, tuple(stop))
    paths = [[Place(t)] for t in started(problems, run)]
    for _ in range(iterations):
        live = [path for path in paths if path[-1].row.stop is None]
        for path, (value, child) in zip(live, _tried(live, how, score, run), strict=True):
            _move(path, value, child, (refuse, accept), tries)
    # a neutral step is better than none
    best = [path[-1].neutral[1] if path[-1].neutral else path[-1].row for path in paths]
    return [marked([t], run) for t in to_the_end(best, 0, temperature, run)]


def _tried(paths: Sequence[Path], how: Stepping, score: Reward, run: Run) -> list[tuple[float | None, Trajectory]]:
    """A next step after each path, with its score; None if it was sampled there before."""
    at = [path[-1] for path in paths]
    children = grown([p.row for p in at], [p.tries for p in at], how, run)
    new = [(t.turns[-1].text, t.stop) not in p.seen for t, p in zip(children, at, strict=True)]
    values = worths([[t] if fresh else [] for t, fresh in zip(children, new, strict=True)], score, run)
    return [(row[0] if row else None, t) for row, t in zip(values, children, strict=True)]


def _move(path: Path, value: float | None, child: Trajectory, bounds: tuple[float, float], tries: int) -> None:
    """Go on to a positive child; otherwise note it, and once the tries are used up, go on to a neutral one or back."""
    refuse, accept = bounds
    place = path[-1]
    place.tries += 1
    place.seen.add((child.turns[-1].text, child.stop))
    if value is not None and value >= accept:
        path.append(Place(child))
        return
    if value is not None and value >= refuse and (place.neutral is None or value > place.neutral[0]):
        place.neutral = (value, child)
    while path[-1].tries >= tries:
        place = path[-1]
        if place.neutral is not None:
            # only once: who comes back to this row has seen where it led
            path.append(Place(place.neutral[1]))
            place.neutral = None
        elif len(path) > 1:
            path.pop()
        else:
            place.tries = 0
