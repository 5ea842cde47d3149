"""Accuracy of best-of-n under a reward."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardlab.core import Group, Problem, Run, Sampling, Trajectory, measure
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.rewards.reward import Reward
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.answers import final_answer
from rewardlab.text.votes import answer_of
from rewardlab.util.ranking import auc_of


@measure
def reranked(
    problems: Sequence[Problem], run: Run, *, by: Reward, n: PositiveInt = 8, temperature: NonNegativeFloat = 1.0
) -> dict[str, float]:
    """Accuracy of best-of-n under the reward `by`, beside that of single samples, by the task's verifier on the same samples.

    reranked: the mean over replies that it pays alike; one without a score comes last.  pass@1: of the samples, which is what a
    random choice gets.  majority: of the first reply with the most frequent answer.  best: whether any is right.  by_auc: how often
    `by` pays a right reply to a problem more than a wrong one to the same, ties half.  judged: share of replies that it scores.
    voted: of the first reply with the answer whose replies `by` pays most in sum: a weighted vote, in which those have none that it
    pays less than 0.
    """
    if run.verify is None:
        raise RewardlabError("reranked needs the task's verifier, and this run has none: name a task")
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = run.policy.extend([t for t in prompts for _ in range(n)], Sampling(run.max_new, temperature), run.rng("eval"))
    groups = [done[i : i + n] for i in range(0, len(done), n)]
    right = [[s.value is not None and s.value >= 1.0 for s in row] for row in run.verify(groups, run)]
    paid = [[-math.inf if s.total is None else s.total for s in row] for row in by(groups, run)]
    chosen = [_mean_of_best(scores, row) for scores, row in zip(paid, right, strict=True)]
    low, high = mean_interval(chosen)
    return {
        "reranked": float(np.mean(chosen)), "ci95_low": low, "ci95_high": high, "n": float(len(groups)),
        "pass@1": float(np.mean([np.mean(row) for row in right])), "best": float(np.mean([any(row) for row in right])),
        "majority": float(np.mean([row[_most_frequent([t.reply for t in g])] for g, row in zip(groups, right, strict=True)])),
        "voted": float(np.mean([row[_most_paid(g, x)] for g, x, row in zip(groups, paid, right, strict=True)])),
        "by_auc": auc_within(paid, right), "judged": float(np.mean([[x > -math.inf for x in row] for row in paid])),
    }  # fmt: skip


def _mean_of_best(paid: Sequence[float], right: Sequence[bool]) -> float:
    return float(np.mean([ok for x, ok in zip(paid, right, strict=True) if x == max(paid)]))


def _most_frequent(replies: Sequence[str]) -> int:
    answers = [final_answer(reply) for reply in replies]
    known = [a for a in answers if a is not None]
    return answers.index(max(known, key=known.count)) if known else 0


def _most_paid(group: Group, paid: Sequence[float]) -> int:
    answers = [answer_of(t.reply) for t in group]
    weights: dict[Any, list[float]] = {}
    for answer, x in zip(answers, paid, strict=True):
        if answer is not None and x > 0:
            weights.setdefault(answer, []).append(x)
    return answers.index(max(weights, key=lambda a: math.fsum(weights[a]))) if weights else 0


def auc_within(paid: Sequence[Sequence[float]], right: Sequence[Sequence[bool]]) -> float:
    """How often a right reply is paid more than a wrong one to the same problem, in the mean over those that have both, or NaN."""
    rows = [[(x, ok) for x, ok in zip(p, r, strict=True) if x > -math.inf] for p, r in zip(paid, right, strict=True)]
    found = [a for row in rows if row and not math.isnan(a := auc_of(row))]
    return float(np.mean(found)) if found else math.nan
