"""Monte-Carlo step labels, corrected for known errors of a weak policy, with fewer continuations."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from rewardlab.core import Group, Run, Score, Scores, Trajectory, uniform_of
from rewardlab.rewards.monte_carlo import Continuations, rows_in_steps
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt, Share
from rewardlab.text.splitters import mark

_NUMBER = re.compile(r"[0-9]+(?:[.][0-9]+)?")
Labels = dict[int, list[tuple[int, float]]]


@reward(over="groups")
def self_denoised_steps(
    groups: list[Group], run: Run, *, n: PositiveInt = 8, least: Share = 0.75, tolerance: NonNegativeInt = 2,
    balance: bool = False, temperature: NonNegativeFloat = 1.0,
) -> Scores:  # fmt: skip
    """Step labels for problems that the policy mostly solves: at least the share `least` of the group is right.

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
    kept = {i for i, _ in _balanced(rows, {(i, 0): i not in walks for i in found}, run)} if balance else set(found)
    why = "too few replies to the problem are right, or the reply is one too many of its kind, or a step cannot be continued"
    scores = iter([Score(steps=found[i]) if i in kept else Score(None, why=why) for i in range(len(rows))])
    return [[next(scores) for _ in group] for group in groups]


@reward(over="groups")
def reachable_steps(
    groups: list[Group], run: Run, *, n: PositiveInt = 8, used: bool = True, balance: bool = False,
    temperature: NonNegativeFloat = 1.0,
) -> Scores:  # fmt: skip
    """1 at the end of each step from which a right answer can be reached, 0 at the others.

    One can if any of n continuations is right, or one of a later step's; after the last step, if the reply is right, which needs no
    continuations.  used: a continuation counts only if it has the last number of the step in it: the step has led to something.
    balance: of the first steps as many labels of either kind are kept, at random; so of the second ones, and so on.
    No verdict for a reply without one.  Havrilla et al. 2024, arXiv:2402.10963 (GLoRe, the labels of its SORM)
    """
    rows = rows_in_steps(groups, "reachable_steps")
    continued = Continuations(run, n, temperature, "reachable_steps", _uses(run) if used else lambda t, at: True)
    ended = [s.value for row in run.verdicts(groups) for s in row]
    wrong = [i for i, value in enumerate(ended) if value is not None and value < 1.0]
    starts = [(i, at) for i in wrong for at in rows[i].steps[:-1] if continued.fits(at)]
    shares = dict(zip(starts, continued.shares([(rows[i], at) for i, at in starts]), strict=True))
    labels = {i: _reachable(t, i, shares, value >= 1.0) for i, t in enumerate(rows) if (value := ended[i]) is not None}
    if balance:
        labels = _balanced_by_place(rows, labels, run)
    known = [labels.get(i) for i in range(len(rows))]
    scores = iter([Score(steps=row) if row else Score(None, why="no verdict, or no label is left") for row in known])
    return [[next(scores) for _ in group] for group in groups]


def _uses(run: Run) -> Callable[[Trajectory, int], bool]:
    """Whether the text after a step has the last number of the step in it; a step without a number need not be used."""

    def uses(t: Trajectory, at: int) -> bool:
        ends = mark(t, "newline", run.policy.pieces, run.policy.name).steps
        # the first step begins after the prompt
        start = max((end for end in ends if end < at), default=int(t.mask.argmax()) - 1)
        step, after = run.policy.decode(t.ids[start + 1 : at + 1]), run.policy.decode(t.ids[at + 1 :])
        return not (numbers := _NUMBER.findall(step)) or numbers[-1] in _NUMBER.findall(after)

    return uses


def _reachable(t: Trajectory, i: int, shares: dict[tuple[int, int], float | None], right: bool) -> list[tuple[int, float]]:
    known = {at: bool(share) for at in t.steps[:-1] if (share := shares.get((i, at))) is not None} | {t.steps[-1]: right}
    last = max((at for at, ok in known.items() if ok), default=-1)
    return [(at, float(at <= last)) for at in t.steps if at <= last or at in known]


def _balanced_by_place(rows: list[Trajectory], labels: Labels, run: Run) -> Labels:
    """As many labels of 1 as of 0 of the steps in each place."""
    places: dict[int, dict[tuple[int, int], bool]] = {}
    for i, row in labels.items():
        for at, label in row:
            places.setdefault(rows[i].steps.index(at), {})[i, at] = label > 0
    kept = {key for kinds in places.values() for key in _balanced(rows, kinds, run)}
    return {i: [(at, label) for at, label in row if (i, at) in kept] for i, row in labels.items()}


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


def _balanced(rows: list[Trajectory], kinds: dict[tuple[int, int], bool], run: Run) -> list[tuple[int, int]]:
    """As many of both kinds, a random choice of the more frequent one; the first number of a key is the row's."""
    sides = [[key for key, kind in kinds.items() if kind == side] for side in (True, False)]
    number = min(map(len, sides))

    def by_chance(key: tuple[int, int]) -> float:
        return uniform_of("balanced", run.seed, run.moment, rows[key[0]].problem.key, *key)

    return [key for side in sides for key in sorted(side, key=by_chance)[:number]]
