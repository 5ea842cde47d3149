"""Beam search over steps, ranked by a reward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rewardlab.core import Group, Problem, Run, Trajectory, rollout
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.stepwise import Scored, Stepping, best_of, completed, grown, looked_ahead, marked, started, worths
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt


@dataclass
class Beam:
    """A beam: the best rows so far with their scores, and every reply that it finished.

    first: the number of its first step. Beams from one prompt have different ones, which keep their rows apart.
    """

    rows: list[Scored]
    first: int = 0
    finished: list[Trajectory] = field(default_factory=list)

    @property
    def open(self) -> list[Trajectory]:
        return [t for _, t in self.rows if t.stop is None]


# ended rows hold their places, so that about so many replies are finished
@rollout(rows=lambda width, branch, **_: width * branch)
def beams(
    problems: list[Problem], run: Run, *, score: Reward, width: PositiveInt = 4, branch: PositiveInt = 4, ahead: NonNegativeInt = 0,
    temperature: NonNegativeFloat = 1.0, step_tokens: PositiveInt | None = None, stop: tuple[str, ...] = ("\n",),
    early: PositiveInt | None = None,
) -> list[Group]:  # fmt: skip
    """Every reply that a beam search finishes: `branch` next steps are sampled from each row of a beam, and the `width` best rows
    stay.

    The first step is sampled width * branch times. A row that has ended holds its place by its score, and a search ends when all
    rows of its beam have. ahead: the score of a row is that of a greedy continuation of so many steps, which is discarded.
    step_tokens: most tokens of a step (None: of a reply).  stop: the texts that end a step.  early: rows are scored, and most of
    them dropped, after so many tokens of their step; only the rest complete it (None: after whole steps).

    Snell et al. 2024, arXiv:2408.03314; early: Cheshmi et al. 2025, arXiv:2508.01969
    """
    grown_beams = [Beam([(0.0, t)]) for t in started(problems, run)]
    advance(grown_beams, width, branch, ahead, score, Stepping(step_tokens, temperature, tuple(stop)), run, early)
    return [marked(beam.finished, run) for beam in grown_beams]


@rollout(rows=lambda trees, **_: trees)
def subtrees(
    problems: list[Problem], run: Run, *, score: Reward, trees: PositiveInt = 4, branch: PositiveInt = 4, ahead: NonNegativeInt = 0,
    temperature: NonNegativeFloat = 1.0, step_tokens: PositiveInt | None = None, stop: tuple[str, ...] = ("\n",),
) -> list[Group]:  # fmt: skip
    """One reply from each of `trees` independent greedy searches over the best of `branch` next steps: more diverse than one beam.

    The settings are those of `beams`.

    Beeching, Tunstall and Rush 2024, Scaling test-time compute with open models (Hugging Face): diverse verifier tree search
    """
    searches = [[Beam([(0.0, t)], i * branch) for i in range(trees)] for t in started(problems, run)]
    how = Stepping(step_tokens, temperature, tuple(stop))
    advance([beam for of in searches for beam in of], 1, branch, ahead, score, how, run)
    return [marked([t for beam in of for _, t in beam.rows], run) for of in searches]


def advance(
    beams: Sequence[Beam], width: int, branch: int, ahead: int, score: Reward, how: Stepping, run: Run, early: int | None = None
) -> None:
    """Search until all rows of all beams have ended; a beam that is done is sampled no further."""
    at_root = True
    if early is not None and how.size is not None and early >= how.size:
        early = None  # what is scored is all that a step may be
    first = how if early is None else replace(how, size=early)
    while live := [beam for beam in beams if beam.open]:
        each = width * branch if at_root else branch
        parents = [[t for t in beam.open for _ in range(each)] for beam in live]
        numbers = [k + (beam.first if at_root else 0) for beam in live for _ in beam.open for k in range(each)]
        sampled = iter(grown([t for of in parents for t in of], numbers, first, run))
        children = [[next(sampled) for _ in of] for of in parents]
        seen = iter(looked_ahead([t for of in children for t in of], ahead, how, run))
        values = worths([[next(seen) for _ in of] for of in children], score, run)
        for beam, rows, known in zip(live, children, values, strict=True):
            beam.finished += [t for t in rows if t.stop is not None]
            ended = [scored for scored in beam.rows if scored[1].stop is not None]
            beam.rows = best_of([*ended, *zip(known, rows, strict=True)], width)
        if early is not None:
            _complete(live, replace(how, size=how.size and how.size - early), run)
        at_root = False


def _complete(beams: Sequence[Beam], rest: Stepping, run: Run) -> None:
    """Write the rest of the steps of the rows that were kept, which keep their scores."""
    rows = iter(completed([t for beam in beams for _, t in beam.rows], rest, run))
    for beam in beams:
        whole = [(score, next(rows)) for score, _ in beam.rows]
        beam.finished += [t for (_, part), (_, t) in zip(beam.rows, whole, strict=True) if part.stop is None and t.stop is not None]
        beam.rows = whole
