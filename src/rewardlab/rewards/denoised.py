"""Monte-Carlo labels without the mistakes that a weak policy is known to make, and with fewer continuations."""

from __future__ import annotations

from dataclasses import dataclass, field

from rewardlab.core import Group, Run, Score, Scores, Trajectory, uniform_of
from rewardlab.core.domain import NonNegativeFloat, NonNegativeInt, PositiveInt, Share

from .monte_carlo import Continuations, rows_in_steps
from .reward import reward


@reward(over="groups")
def self_denoised_steps(
    groups: list[Group], run: Run, *, n: PositiveInt = 8, least: Share = 0.75, tolerance: NonNegativeInt = 2,
    balance: bool = False, temperature: NonNegativeFloat = 1.0,
) -> Scores:  # fmt: skip
    """Labels of the steps of replies to problems that the policy is sure of: a share of at least `least` of the group is right.

    Right replies get 1 at every step, and cost nothing. Of a wrong one, n continuations are sampled from each step in turn, up to
    the first after which none is right (at the last the verdict stands for them). That step gets 0, those after it no label, and
    those before it 1, except that the last `tolerance` of them get min(1, share of right continuations / share of right replies):
    the error is often found a little late, since the policy mends some. To problems where few replies are right, right steps would
    be labelled as wrong: they get no labels.  balance: only as many replies are labelled of right and of wrong ones, at random.
    No verdict where the context does not tell.  Ding et al. 2025, arXiv:2509.16548 (SCAN)
    """
    rows, continued = rows_in_steps(groups, "self_denoised_steps"), Continuations(run, n, temperature, "self_denoised_steps")
    verdicts = run.verdicts(groups)
    sure = [share for row in verdicts for share in [_right([s.value for s in row])] * len(row)]
    ended = [s.value for row in verdicts for s in row]
    known = [value is not None and share is not None and share >= least for value, share in zip(ended, sure, strict=True)]
    walks = {i: Walk(t) for i, t in enumerate(rows) if known[i] and (ended[i] or 0.0) < 1.0}
    while open_ := [w for w in walks.values() if not w.over and continued.fits(w.place)]:
        for walk, share in zip(open_, continued.shares([(w.reply, w.place) for w in open_]), strict=True):
            walk.step(share)
    found = {i: w.labels(sure[i] or 0.0, tolerance) for i, w in walks.items() if w.over and not w.lost}
    found |= {i: [(at, 1.0) for at in rows[i].steps] for i in range(len(rows)) if known[i] and i not in walks}
    kept = set(_balanced(rows, {i: i not in walks for i in found}, run)) if balance else set(found)
    why = "too few replies to the problem are right, or the reply is one too many of its kind, or a step cannot be continued"
    scores = iter([Score(steps=found[i]) if i in kept else Score(None, why=why) for i in range(len(rows))])
    return [[next(scores) for _ in group] for group in groups]


@dataclass
class Walk:
    """The search, step after step, for the first step of a wrong reply after which no continuation is right.

    shares: of right continuations, of the steps so far; the last is 0 when it is over.  lost: a step had no verdict.
    """

    reply: Trajectory
    shares: list[float] = field(default_factory=list)
    lost: bool = False

    def __post_init__(self) -> None:
        self._end()

    @property
    def over(self) -> bool:
        return self.lost or 0.0 in self.shares

    @property
    def place(self) -> int:
        return self.reply.steps[len(self.shares)]

    def step(self, share: float | None) -> None:
        if share is None:
            self.lost = True
        else:
            self.shares.append(share)
            self._end()

    def _end(self) -> None:
        if not self.over and len(self.shares) == len(self.reply.steps) - 1:
            # nothing follows the last step of a wrong reply
            self.shares.append(0.0)

    def labels(self, sure: float, tolerance: int) -> list[tuple[int, float]]:
        *before, _ = self.shares
        soft = [share if k >= len(before) - tolerance else sure for k, share in enumerate(before)]
        ends = self.reply.steps
        return [*((at, min(1.0, x / sure) if sure else 1.0) for at, x in zip(ends, soft, strict=False)), (ends[len(before)], 0.0)]


def _right(values: list[float | None]) -> float | None:
    known = [value >= 1.0 for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _balanced(rows: list[Trajectory], kinds: dict[int, bool], run: Run) -> list[int]:
    """As many of both kinds, a random choice of the more frequent one."""
    sides = [[i for i, kind in kinds.items() if kind == side] for side in (True, False)]
    number = min(map(len, sides))

    def by_chance(i: int) -> float:
        return uniform_of("balanced", run.seed, run.moment, rows[i].problem.key, i)

    return [i for side in sides for i in sorted(side, key=by_chance)[:number]]
