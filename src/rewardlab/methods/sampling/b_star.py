"""B-STaR: each round of self-training picks the temperature and reward threshold with the highest balance score.

    bs(x) = min(n'/n*, 1) * (n'/n)        n: different replies to x that are selected; n': those of them that are right
    T     = argmax over temperatures of max over tau of the mean of bs over problems, once per round
    tau   = the same maximum, over what is then sampled at T;        loss = -mean log pi over the tokens that are selected
    selected: of each problem the k best replies with a score of tau or more, k as small as gives `target` replies per problem
    score = right + (least process reward of a step) / 5

With a fixed temperature and threshold self-training stagnates: the policy repeats itself, so that there is less and less to find,
and a score that told well among the replies of one round does not among those of the next. The balance score asks for both, many
right replies (explore) and no others (exploit).

Zeng et al. 2024, arXiv:2412.17256; hkust-nlp/B-STaR, train_code: determine_hyper.py (05c0e3f: score, n* = 8, the growing k; where
no reply is right, the written solutions alone, here what passes the lowest threshold), metric_modiacc_auto.py (947debae: tau anew
on all replies), train_bstar.sh (947debae: 64 replies, T of .5 to 1.2 by .05, 67,500 selected, the optimizer goes on from round to
round). There temperatures are tried on 1,000 problems, and a round is 500 updates on all; here on the problems of the round's first
step, and a round is `every` steps that each sample anew. Thresholds are the scores that occur, not a grid of -1 to 1; equal replies
are dropped before the k best are taken, not after. (inferred): n = 16, 4 temperatures, target = 6 (67,500 of MATH's 12,000 problems
are 5.6 of 64; where temperatures are tried, 3,550 of 1,000 problems).

A reward of steps is a setting (process=...).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, rollout
from rewardlab.data.columns import Data
from rewardlab.evals.passk import coverage
from rewardlab.methods.baselines.rejection_sampling import rejection_sampling
from rewardlab.objectives.ratio import imitate
from rewardlab.objectives.weighting import tagged_mean
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.settings.domain import PositiveFloat, PositiveInt

# ----------------------------------------------------------------------------------------------------------------------
#
# Replies sampled at the temperature, and selected at the threshold of their score, that give many right replies and few others.

SELECTED = "selected"
"""The tag of the replies that are selected."""
MEMORY = "balanced.temperature"
THRESHOLDS = 200
"""How many thresholds are tried at most: no more than a search of this fineness can tell apart, however many replies there are."""


class Candidate(NamedTuple):
    """A reply that may be selected. place: in its group."""

    score: float
    right: bool
    place: int


class Selection(NamedTuple):
    """balance: mean balance score.  threshold: the least score that is selected.  rows: of each group, the places selected."""

    balance: float
    threshold: float
    rows: list[list[int]]


@rollout(wraps="inner", across_problems=True)
def balanced(
    problems: list[Problem], run: Run, *, inner: Rollout, by: Reward, wanted: PositiveInt = 8, target: PositiveFloat = 6.0,
    lowest: PositiveFloat = 0.5, highest: PositiveFloat = 1.2, temperatures: PositiveInt = 4, threshold: float | None = None,
    every: PositiveInt = 10,
) -> list[Group]:  # fmt: skip
    """The groups of `inner` at the round's temperature, with replies to imitate tagged as SELECTED.

    by: the score.  wanted, target: as in `select`.  A round is `every` steps; at its start the policy answers the step's problems
    at each of so many `temperatures`, evenly spaced from `lowest` to `highest`, and the one of the highest mean balance score
    stays for the round; of equal ones the lowest.  threshold: of the score, the same throughout; None: found anew for each
    selection. Rightness is the task's verifier's. Held-out problems are sampled at the round's temperature, without a selection.
    Logs balance, temperature, threshold and replies selected per problem. Zeng et al. 2024, arXiv:2412.17256
    """
    round_ = run.memory.get(MEMORY)
    if run.held_out:
        return inner.but_innermost(temperature=round_["temperature"])(problems, run) if round_ else inner(problems, run)

    def sampled(temperature: float) -> tuple[list[Group], Selection]:
        groups = inner.but_innermost(temperature=temperature)(problems, run)
        return groups, select(candidates(groups, by, run), wanted=wanted, target=target, threshold=threshold)

    if round_ is None or run.step - round_["since"] >= every:
        grid = [float(x) for x in np.linspace(lowest, highest, temperatures)]
        # max keeps the first of equal ones; with one temperature there is nothing to find out
        best = max(grid, key=lambda t: sampled(t)[1].balance) if len(grid) > 1 else grid[0]
        round_ = run.memory[MEMORY] = {"since": run.step, "temperature": best}
    groups, found = sampled(round_["temperature"])
    run.log("balance", found.balance)
    run.log("temperature", round_["temperature"])
    run.log("selected", sum(map(len, found.rows)) / max(1, len(groups)))
    if any(found.rows):
        run.log("threshold", found.threshold)
    return [_tagged(group, set(rows)) for group, rows in zip(groups, found.rows, strict=True)]


def balance_score(selected: int, right: int, wanted: int) -> float:
    """min(right / wanted, 1) * right / selected: enough right replies, and few others. 0 where nothing is selected."""
    return min(right / wanted, 1.0) * right / selected if selected else 0.0


def candidates(groups: Sequence[Group], by: Reward, run: Run) -> list[list[Candidate]]:
    """Of each group the replies that may be selected, best first: each text once, and none without a score or a verdict."""
    found = []
    for group, scores, verdicts in zip(groups, by(list(groups), run), run.verdicts(list(groups)), strict=True):
        unique: dict[tuple[str, ...], Candidate] = {}
        for i, (t, score, verdict) in enumerate(zip(group, scores, verdicts, strict=True)):
            if score.total is not None and verdict.value is not None:
                unique.setdefault(tuple(t.replies), Candidate(score.total, verdict.value >= 1, i))
        # sorted is stable: of equal scores the reply that was sampled first comes first
        found.append(sorted(unique.values(), key=lambda c: -c.score))
    return found


def select(
    table: Sequence[Sequence[Candidate]], *, wanted: int = 8, target: float = 6.0, threshold: float | None = None
) -> Selection:
    """The best candidates of each problem with a score of `threshold` or more; None: that of the highest mean balance score, of
    equal ones the lowest.

    wanted: how many right replies to a problem are enough.  target: replies per problem that are selected over all; every problem
    gives as many as any other that has them, and as few as will do.
    If no reply at all is right, all thresholds are equal: what passes the lowest is selected.
    """
    scores = np.unique([c.score for row in table for c in row])
    tried = [threshold] if threshold is not None else scores[_spread(len(scores))].tolist()
    best: Selection | None = None
    for least in tried:
        passing = np.array([sum(c.score >= least for c in row) for row in table])
        taken = np.minimum(passing, _each(passing, target * len(table)))
        rows = [row[:k] for row, k in zip(table, taken, strict=True)]
        balance = math.fsum(balance_score(len(row), sum(c.right for c in row), wanted) for row in rows) / max(1, len(rows))
        if best is None or balance > best.balance:
            best = Selection(balance, least, [[c.place for c in row] for row in rows])
    # without a candidate there is no threshold to try
    return best or Selection(0.0, np.inf, [[] for _ in table])


def _spread(count: int) -> np.ndarray:
    """Places of at most THRESHOLDS of `count` sorted numbers, evenly spaced, both ends among them."""
    return np.unique(np.linspace(0, max(0, count - 1), min(count, THRESHOLDS)).round().astype(int))


def _each(passing: np.ndarray, total: float) -> int:
    """The least k such that k replies of each problem, or all that pass, are `total` together; all, if they are not enough."""
    most = int(passing.max(initial=0))
    return next((k for k in range(1, most) if np.minimum(passing, k).sum() >= total), most)


def _tagged(group: Group, chosen: set[int]) -> Group:
    return [replace(t, tag=SELECTED) if i in chosen else t for i, t in enumerate(group)]


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def b_star(
    base: Recipe | None = None, *, process: Reward | None = None, n: PositiveInt = 16, wanted: PositiveInt = 8,
    target: PositiveFloat = 6.0, lowest: PositiveFloat = 0.5, highest: PositiveFloat = 1.2, temperatures: PositiveInt = 4,
    threshold: float | None = None, every: PositiveInt = 10,
) -> Recipe:  # fmt: skip
    """process: a reward of steps, which joins the score; None: the verdict alone.  n: replies per problem.  wanted: n*.  target: of
    them selected.  lowest, highest, temperatures: the range of T, and how many are tried.  threshold: a fixed tau.  every: steps of
    a round.
    """
    base = base or rejection_sampling(n=n)
    of = base.required("rollout")
    if process is not None:
        of = of.but_innermost(steps="newline")
    score = correct() if process is None else correct() + 0.2 * aggregate(process, by="min")
    return base.but(
        rollout=balanced(
            inner=of, by=score, wanted=wanted, target=target, lowest=lowest, highest=highest, temperatures=temperatures,
            threshold=threshold, every=every,
        ),
        objective=imitate(), weighting=tagged_mean(tag=SELECTED),
    )  # fmt: skip


fidelity = "core"
left_out = (
    "the written solution among the candidates, with a score of 1 (without it a problem of which nothing is selected counts as 0, "
    "and a step in which no reply is right imitates wrong ones); temperatures are tried on the problems of a round's first step, "
    "not on 1,000"
)
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "Use 3, 4 and 5 once each to make 17 with + and x. What is the sum you end with?", "answer": "17"},
        {"prompt": "A farmer has 15 sheep and sells 6. How many are left?", "answer": "9"},
        {"prompt": "What is $2^5$?", "answer": "32"},
    ],
)

claim = Claim(
    says="self-training at a temperature tuned each round is right oftener than at a fixed one, and eight replies find as much",
    versus="b_star", task="countdown:largest=30,habit=0.9", measure="pass@1", direction="higher", margin=0.02,
    settings={"problems": 8},
    versus_settings={"problems": 8, "lowest": 1.0, "highest": 1.0, "temperatures": 1, "threshold": 0.5},
    by=coverage(n=8, k=8), problems=500, steps=40, guard=Within("pass@8", low=-0.03),
    fault=Within("pass@8", high=0.91, says="what eight replies find, .94 at the start"),
    moved=Within("train.temperature", low=0.05, says="temperature, above the fixed one"), start=None,
    tried="one seed, 40 updates, before, fixed, tuned: here pass@1 .45, .54, .56, distinct 1.47, 1.37, 1.35; at "
    "arithmetic:biased=0.75,error=0.1, of one right way a problem, .38, .57, .45, where rejection sampling reaches .80",
    finding="44% right before; a tuned temperature ends at 47%, a fixed one at 49%, and what eight replies find falls from 92% to "
    "85% on both sides: self-training does not get far enough here to compare",
)  # fmt: skip
baseline = "rejection_sampling"
