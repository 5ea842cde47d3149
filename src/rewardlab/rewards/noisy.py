"""Verdicts that went through a noisy channel, right replies rejected and wrong ones accepted at some rate, and their correction."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from rewardlab.core import Group, Problem, Run, Score, Scores, Trajectory, uniform_of
from rewardlab.core.domain import Decay, Share
from rewardlab.data.values import kind_in
from rewardlab.errors import RewardlabError
from rewardlab.rewards.noise import FRESH, error_of, quantile
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct

MEMORY = "corrected.appeals"
LEAST = 0.05
"""The least that 1 - false positives - false negatives is taken to be: at 0 a verdict says nothing, and none is worth anything."""


@reward(over="groups")
def noisy_verdict(
    groups: list[Group], run: Run, *, false_positive: Share = 0.1, false_negative: Share = 0.3, spread: Share = 0.5, by: str = "",
    fresh: Share = FRESH,
) -> Scores:  # fmt: skip
    """The task's verdict, 0 or 1, flipped at random: of wrong replies at the rate false_positive, of right ones false_negative.

    spread: the rates of a kind of prompts are both (1 + spread u) times that, u from -1 to 1 its own; 0: the same for all.  by: the
    column that tells kinds; without it each prompt is one. The noise belongs to problem and reply, as a program errs: asking again
    does not help.  fresh: share of its variance that is new at each line of a reply; the rest is what it was a line before.
    """
    rates = {False: false_positive, True: false_negative}
    return [
        [_flipped(t, s, rates, spread * _lean(t.problem, by), fresh, run.seed) for t, s in zip(*rows, strict=True)]
        for rows in zip(groups, run.verdicts(groups), strict=True)
    ]


def _lean(problem: Problem, by: str) -> float:
    """From -1 to 1: whether the verifier errs less or more on prompts of this kind."""
    return 2 * uniform_of("kind", kind_in(problem.meta, by) or problem.key) - 1


def _flipped(t: Trajectory, verdict: Score, rates: dict[bool, float], more: float, fresh: float, seed: int) -> Score:
    if verdict.value is None:
        return Score(None, why=verdict.why)
    right = verdict.value >= 1.0
    rate = (1 + more) * rates[right]
    flipped = quantile(error_of(("noisy", seed, right), t, fresh)) < rate
    return Score(float(right != flipped), why=f"a verdict of {float(right):g}{', flipped' if flipped else ''}")


class Counts(NamedTuple):
    """Replies of one kind of prompts: accepted, and rejected but accepted on appeal. Discounted sums over steps."""

    accepted: float = 0.0
    appealed: float = 0.0

    def plus(self, before: Counts, decay: float) -> Counts:
        return Counts(self.accepted + decay * before.accepted, self.appealed + decay * before.appealed)

    @property
    def false_negative(self) -> float | None:
        both = self.accepted + self.appealed
        return self.appealed / both if both else None


@reward(over="groups")
def corrected(
    groups: list[Group], run: Run, *, of: Reward | None = None, way: Literal["backward", "forward"] = "backward",
    false_positive: Share = 0.1, false_negative: Share = 0.1, appeals: Reward | None = None, by: str = "", decay: Decay = 0.9,
) -> Scores:  # fmt: skip
    """What verdicts R of 0 or 1 are worth, of a verifier that accepts wrong replies at the rate f and rejects right ones at rate g:

    backward: (R - f) / (1 - f - g), whose mean is 1 over right replies and 0 over wrong ones, whatever f and g are
    forward:  g if R = 1, g - 1 if R = 0: its mean is 0 over right replies and -(1 - f - g) over wrong ones; f need not be known

    of: the verifier; None: the task's. A value of at least 1 accepts.  appeals: a reward from 0 to 1 that judges rejected replies
    again. g is then estimated, as the share that was rejected and is accepted on appeal (at least 1/2) of all that are accepted,
    over the steps before with weights that fall by `decay`; in the first step over this one.  by: the column that tells kinds of
    prompts with rates of their own; without it all count as one.  Cai et al. 2025, arXiv:2510.00915
    """
    if false_positive + false_negative >= 1:
        raise RewardlabError("corrected: false_positive and false_negative sum to less than 1, or verdicts say nothing")
    verdicts = (of or correct())(groups, run)
    kinds = [[kind_in(t.problem.meta, by) for t in group] for group in groups]
    known = _estimated(groups, verdicts, kinds, run, appeals, decay) if appeals else {}
    return [
        [_worth(s, way, false_positive, known.get(k, false_negative)) for s, k in zip(*rows, strict=True)]
        for rows in zip(verdicts, kinds, strict=True)
    ]


def _worth(verdict: Score, way: str, f: float, g: float) -> Score:
    if verdict.total is None:
        return Score(None, why=verdict.why)
    accepted = float(verdict.total >= 1.0)
    worth = (accepted - f) / max(LEAST, 1 - f - g) if way == "backward" else accepted + g - 1
    return Score(worth, why=f"a verdict of {accepted:g}, right ones rejected at {g:.2f}")


def _estimated(
    groups: list[Group], verdicts: Scores, kinds: list[list[str]], run: Run, appeals: Reward, decay: float
) -> dict[str, float]:
    """The rate of rejected right replies of each kind that anything is known of."""
    saved = run.memory.get(MEMORY, {"step": run.step, "before": {}, "now": {}})
    # a step may be scored more than once: each time from what was known before it
    before = {k: Counts(*x) for k, x in (saved["before"] if saved["step"] == run.step else saved["now"]).items()}
    new = _counts(groups, verdicts, kinds, run, appeals)
    now = {k: new.get(k, Counts()).plus(before.get(k, Counts()), decay) for k in {**before, **new}}
    run.memory[MEMORY] = {
        "step": run.step,
        "before": {k: list(x) for k, x in before.items()},
        "now": {k: list(x) for k, x in now.items()},
    }
    # a kind that is met for the first time is judged by its first replies
    rates = {k: before[k].false_negative if k in before else x.false_negative for k, x in now.items()}
    found = {k: rate for k, rate in rates.items() if rate is not None}
    if found:
        run.log("false_negative", math.fsum(found.values()) / len(found))
    return found


def _counts(groups: list[Group], verdicts: Scores, kinds: list[list[str]], run: Run, appeals: Reward) -> dict[str, Counts]:
    rows = [list(zip(*row, strict=True)) for row in zip(groups, verdicts, kinds, strict=True)]
    rejected = [[(t, k) for t, s, k in row if s.total is not None and s.total < 1.0] for row in rows]
    rejected = [row for row in rejected if row]
    again = appeals([[t for t, _ in row] for row in rejected], run) if rejected else []
    counts: dict[str, Counts] = {}
    for row in rows:
        for _, s, k in row:
            counts[k] = Counts(float(s.total is not None and s.total >= 1.0)).plus(counts.get(k, Counts()), 1.0)
    for negatives, scores in zip(rejected, again, strict=True):
        for (_, k), s in zip(negatives, scores, strict=True):
            counts[k] = Counts(0.0, float(s.total is not None and s.total >= 0.5)).plus(counts[k], 1.0)
    return counts
