"""Noisy-verifier correction: unbiased rewards from a verifier with known error rates.

    f = P(accepted | wrong),  g = P(rejected | right)
    backward: R^ = (R - f) / (1 - f - g),  E[R^ | right] = 1, E[R^ | wrong] = 0;     loss = -(R^ - mean of the batch) log pi
    forward:  w = g if R = 1, g - 1 if R = 0,  E[w | right] = 0, E[w | wrong] = -(1 - f - g);     loss = -w log pi
    g = share of rejected replies that an appeal accepts, of all that are accepted

A verifier that errs pays right replies less and wrong ones more, unequally where its rates depend on the prompt. The backward
correction takes that out, and makes the noise larger by 1 / (1 - f - g); the forward one points where the clean gradient does, with
weights that stay within 1, and needs g alone. Appeals go to a second, better judge, who reads rejected replies alone.

Cai et al. 2025, arXiv:2510.00915 (abstract and summaries; no code was found). The group's mean and deviation would take the forward
correction out again, and at equal rates the backward one too: neither is used, nor is it, by notes on it, in the paper's fourth
version. (inferred): the batch's mean as the baseline of backward rewards; the form of the estimate and its decay of .9; rates kept
apart by a column.

The verifier's rates are given, or a judge hears appeals: appeals=own_verdict(model=...), or any reward from 0 to 1. A column that
goes with the verifier's errors, such as the kind of answer, may tell rates apart (by=...).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from rewardlab.checks.claim import START, Check, Within
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, Score, Scores, Trajectory, measure, uniform_of
from rewardlab.credit.group import center_batch
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import kind_in
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.imperfect import imperfect
from rewardlab.rewards.noise import FRESH, error_of, quantile
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import Decay, Share

# ----------------------------------------------------------------------------------------------------------------------
#
# Whether a reward is worth as much as the truth, on average over replies that are right and over those that are wrong.


@measure
def reward_bias(problems: Sequence[Problem], run: Run, *, reward: Reward, rollout: Rollout, by: str = "") -> dict[str, float]:
    """Mean difference of the terms of `reward` and the task verifier's verdict, over the samples of `rollout`.

    bias.X: of the term X, the root of the mean over cells of (mean of X - verdict)^2; a cell is the replies of one verdict, 0 or 1,
    to one kind of prompts, as the column `by` tells them; without it all are one kind.  deviation.X: the root mean square of X
    around the mean of its cell: the noise that averaging must take out.  n: replies.  Replies without a verdict are left out.
    """
    if run.verify is None:
        raise RewardlabError("reward_bias needs the task's verifier, and this run has none: name a task")
    # a reward may remember what it has seen: held-out problems must not change what it pays in training
    aside = replace(run, memory=copy.deepcopy(run.memory))
    groups = rollout(list(problems), aside)
    cells: dict[tuple[str, str, float], list[float]] = {}
    for group, scores, verdicts in zip(groups, reward(groups, aside), aside.verify(groups, aside), strict=True):
        for t, score, verdict in zip(group, scores, verdicts, strict=True):
            if score.missing or verdict.value is None:
                continue
            for name, term in score.terms.items():
                if term.value is not None:
                    cell = (name, kind_in(t.problem.meta, by), float(verdict.value >= 1.0))
                    cells.setdefault(cell, []).append(term.value)
    if not cells:
        raise RewardlabError(f"reward_bias: {reward} or the verifier gave no verdict on any reply to {len(problems)} problems")
    found: dict[str, float] = {"n": float(max(sum(len(x) for (m, _, _), x in cells.items() if m == n) for n, _, _ in cells))}
    for name in {name: None for name, _, _ in cells}:
        own = [(np.array(x), truth) for (term, _, truth), x in cells.items() if term == name]
        found[f"bias.{name}"] = float(np.sqrt(np.mean([(x.mean() - truth) ** 2 for x, truth in own])))
        around = np.concatenate([x - x.mean() for x, _ in own])
        found[f"deviation.{name}"] = float(np.sqrt((around**2).mean()))
    return found


# ----------------------------------------------------------------------------------------------------------------------
#
# Verdicts that went through a noisy channel, right replies rejected and wrong ones accepted at some rate, and their correction.

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
    groups: list[Group], run: Run, *, inner: Reward | None = None, way: Literal["backward", "forward"] = "backward",
    false_positive: Share = 0.1, false_negative: Share = 0.1, appeals: Reward | None = None, by: str = "", decay: Decay = 0.9,
) -> Scores:  # fmt: skip
    """Unbiased rewards from verdicts R of 0 or 1 by a verifier with false-positive rate f and false-negative rate g:

    backward: (R - f) / (1 - f - g), whose mean is 1 over right replies and 0 over wrong ones, whatever f and g are
    forward:  g if R = 1, g - 1 if R = 0: its mean is 0 over right replies and -(1 - f - g) over wrong ones; f need not be known

    inner: the verifier; None: the task's. A value of at least 1 accepts.  appeals: a reward from 0 to 1 that judges rejected
    replies again. g is then estimated, as the share that was rejected and is accepted on appeal (at least 1/2) of all that are
    accepted, over the steps before with weights that fall by `decay`; in the first step over this one.  by: the column that tells
    kinds of prompts with rates of their own; without it all count as one.  Cai et al. 2025, arXiv:2510.00915
    """
    if false_positive + false_negative >= 1:
        raise RewardlabError("corrected: false_positive and false_negative sum to less than 1, or verdicts say nothing")
    verdicts = (inner or correct())(groups, run)
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


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def noisy_verifier_correction(
    base: Recipe | None = None, *, way: Literal["backward", "forward"] = "forward", false_positive: float = 0.1,
    false_negative: float = 0.1, appeals: Reward | None = None, by: str = "", decay: float = 0.9, n: int = 8,
) -> Recipe:  # fmt: skip
    """false_positive, false_negative: f and g of the base's reward, which is the verifier; f is for backward alone.  appeals:
    judges rejected replies again, and g is estimated.  by: a column that tells kinds of prompts with rates of their own.
    decay: of the estimate.  n: of grpo. The credit takes the place of a base's.
    """
    base = base or grpo(n=n)
    paid = corrected(
        inner=base.reward or correct(), way=way, false_positive=false_positive, false_negative=false_negative, appeals=appeals,
        by=by, decay=decay,
    )  # fmt: skip
    return base.but(reward=paid, credit=center_batch() >> to_go() if way == "backward" else to_go())


fidelity = "reading"
left_out = (
    "how the paper scales corrected rewards, and its appeals against a random share of the rejected replies, counted by their "
    "chances, of both of which only notes were read: here all rejected replies are judged again"
)
data = Data(
    answer="the gold answer",
    kind=Column(
        "kinds of prompts with error rates of their own, by the form of the answer, say: --by kind", optional=True, setting="by"
    ),
)

NOISY = noisy_verdict(false_positive=0.15, false_negative=0.35, spread=0.6, by="steps")
BACKWARD = corrected(inner=NOISY, false_positive=0.15, appeals=imperfect(auc=0.95), by="steps")
# by construction: the rates that are corrected for are those of the planted noise
check = Check(
    says="verdicts corrected backward, at a rate that appeals to a fallible judge estimate, are on average nearer to the truth",
    versus=None, task="arithmetic:biased=0.8,error=0.05,difficulty=[2,5]", measure="bias.corrected", direction="lower", margin=0.08,
    against="bias.observed",
    by=reward_bias(reward=BACKWARD.named("corrected") + NOISY.named("observed"), rollout=independent(n=8), by="steps"),
    problems=500, steps=1,
    fault=Within("bias.observed", low=0.15, says="how far the verifier's verdicts are from the truth in the mean"), learns=None,
    start=START, sanity=True,
    finding="verdicts are .35 from the truth in the mean, and .19 after the correction. The price is noise: their deviation rises "
    "from .42 to .95, which more replies must average out. What a policy learns by either is not tested",
)  # fmt: skip
baseline = "grpo"
