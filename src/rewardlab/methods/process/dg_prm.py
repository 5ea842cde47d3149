"""DG-PRM: judge steps by the relevant criteria of a growing tree, and prefer Pareto-dominant steps.

    tree:    a judge names criteria; near texts are one, alike ones a branch
    step s:  criteria C(s): of the branches nearest to its text the nearest k;   vector r(s) = (r_c(s)), c in C(s)
    pairs:   a over b  if  r_c(a) >= r_c(b) for all c, and > for one       (Pareto dominance, among steps after the same beginning)
             and no other step dominates a
    DPO on these pairs

One list of criteria for all steps is too coarse, and one number for several criteria lets a step that is wrong win by being well
written. Where criteria disagree, neither step is preferred: there are fewer pairs, and they tell more surely.

Yin et al. 2025, arXiv:2507.17849 (abstract, our row, and notes on the paper in zhaoyang97/Paper-Notes-en; no code was found): the
optimal steps as positives, dominated ones as negatives. (inferred): the prompts, that texts of cosine .9 are one and of .4 of one
branch, k = 4 where the paper has a least cosine, that siblings are judged by what suits the first, two pairs of each place, and
that the path goes on with the first step that is not dominated.

The judge must follow instructions (--judge openai:URL#NAME); in its place `criteria` may be a sum of rewards of unfinished
replies, each `.named()` by its criterion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Learner, Problem, Recipe, Rollout, Run, Score, Trajectory, measure, rollout
from rewardlab.data.columns import Data
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.weighted_vote import own_probability
from rewardlab.rewards.correct_so_far import correct_so_far
from rewardlab.rewards.criteria import judged_criteria
from rewardlab.rewards.imperfect import imperfect
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.lookahead_search import last_step
from rewardlab.rollouts.stepwise import Stepping, grown, marked, started
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt

# ---- Whether the preferred one of two steps is really the better one -------------------------------------------------


@measure
def pair_purity(problems: Sequence[Problem], run: Run, *, rollout: Rollout, truth: Reward) -> dict[str, float]:
    """Purity of the pairs of `rollout` under an exact reward.

    purity: the share whose first row it pays more, ties half, 1/2 where there is none; telling: the share that it pays unlike;
    reversed: whose second it pays more; pairs: per problem.
    """
    groups = [group for group in rollout(list(problems), run) if any(t.mask.any() for t in group)]
    scores = [[s.total for s in row] for row in truth(groups, run)] if groups else []
    known = [(a, b) for a, b in scores if a is not None and b is not None]
    won = [(a > b) + (a == b) / 2 for a, b in known]
    return {
        "purity": float(np.mean(won)) if won else 0.5, "telling": float(np.mean([a != b for a, b in known])) if known else 0.0,
        "reversed": float(np.mean([a < b for a, b in known])) if known else 0.0, "pairs": len(known) / max(1, len(problems)),
    }  # fmt: skip


# ---- Pairs of next steps of which one is better by every criterion that the step is judged by ------------------------

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
    """Pairs of next steps with a common prefix, the preferred one first: a path for each problem, `branch` steps at each place.

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


# ---- the recipe ---------------------------------------------------------------------------------------------------------

JUDGE = "judge"


def dg_prm(
    base: Recipe | None = None, *, criteria: Reward | None = None, judge: str = "copy:policy", k: int = 4,
    named: int = 4, longest: int = 96, embed: str = "ngrams", rule: Literal["pareto", "sum"] = "pareto",
    gap: NonNegativeFloat = 0.0, branch: int = 4, each: int = 2, truth: Reward | None = None,
) -> Recipe:  # fmt: skip
    """criteria: in place of the tree.  judge: names criteria, and judges by them.  k: criteria of a step; 0: all.  named: problems
    for which new ones are named in each step of training, in so many tokens (longest).  rule: "sum" prefers by the sum over
    criteria. gap: by how much one criterion, or the sum, must differ.  branch: next steps.  each: pairs at most from one place.
    truth: a reward of unfinished replies, by which pairs are measured; None: the base's measure stays."""
    base = base or dpo(problems=4)
    asked = judged_criteria(model=JUDGE, k=k, named=named, embed=embed, max_new=longest)
    pairs = pareto_pairs(criteria=criteria or asked, rule=rule, by=gap, branch=branch, each=each)
    also = () if criteria else (Learner(JUDGE, judge, Recipe(), every=0),)
    measured = {"measure": pair_purity(rollout=pairs, truth=truth)} if truth else {}
    return base.but(rollout=pairs, also=(*base.also, *also), **measured)


TWO = imperfect(auc=0.75, inner=correct_so_far()).named("the calculation is right") + own_probability().named(
    "it is as one expects"
)
"""A judge who is often wrong, and the policy's own expectation, which a wrong rule misleads."""

fidelity = "reading"
left_out = (
    "the judge's analysis of a better and a worse reply, of which criteria are extracted and filtered (here it is asked for "
    "criteria of a step at once), its word on whether the fine criteria of a branch are needed, and the scores of earlier steps "
    "that it is shown; no code was found"
)
data = Data(answer="the gold answer, by which the policy is measured")

check = Check(
    says="pairs of dominance prefer the right step more often than pairs by the sum of the same criteria",
    versus="dg_prm", task="arithmetic:biased=0.75,error=0.1", measure="purity", direction="higher", margin=0.017,
    settings={"criteria": TWO, "truth": correct_so_far(), "each": 12},
    versus_settings={"criteria": TWO, "truth": correct_so_far(), "each": 12, "rule": "sum"}, problems=150, steps=1,
    fault=Within("purity", high=0.75, says="pairs by the sum whose preferred step is the better one, ties half"), learns=None,
    start=None, tried="the share of reversed pairs as the fault: .036 (2 seeds); in most pairs both steps are right, or wrong",
    finding="pairs by dominance prefer the better step as often as pairs by the sum, .59 for both, and there are a third fewer of "
    "them (1.2 and 1.8 a problem). In three of four pairs both steps are right, or both wrong, so that no rule could tell; whether "
    "fewer and surer pairs teach DPO more is not tested",
)  # fmt: skip
baseline = "dpo"
