"""DG-PRM: a step is judged by those criteria of a growing tree that suit it, and preferred where it is worse by none of them.

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
that the path goes on with the first step that is not dominated. Left out: the judge's analysis of a better and a worse reply, of
which criteria are extracted and filtered (here it is asked for criteria of a step at once), its word on whether the fine criteria
of a branch are needed, and the scores of earlier steps that it is shown.

Data: prompts, and a judge that follows instructions (`judge="openai:URL#NAME"`), or `criteria`: a sum of rewards of
unfinished replies, each `.named()` by its criterion.
"""

from typing import Literal

from rewardlab.core import Learner, Recipe
from rewardlab.core.domain import NonNegativeFloat
from rewardlab.evals.pair_purity import pair_purity
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.weighted_vote import own_probability
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.correct_so_far import correct_so_far
from rewardlab.rewards.criteria import judged_criteria
from rewardlab.rewards.imperfect import imperfect
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.pareto import pareto_pairs

JUDGE = "judge"


def dg_prm(
    base: Recipe | None = None, *, criteria: Reward | None = None, judge: str = "copy:policy", k: int = 4,
    named: int = 4, embed: str = "ngrams", rule: Literal["pareto", "sum"] = "pareto", gap: NonNegativeFloat = 0.0, branch: int = 4,
    each: int = 2, truth: Reward | None = None,
) -> Recipe:  # fmt: skip
    """criteria: in place of the tree.  judge: names criteria, and judges by them.  k: criteria of a step; 0: all.  named: problems
    for which new ones are named in each step of training.  rule: "sum" prefers by the sum over criteria.  gap: by how much one
    criterion, or the sum, must differ.  branch: next steps.  each: pairs at most from one place.  truth: a reward of unfinished
    replies, by which pairs are measured; None: the base's measure stays."""
    base = base or dpo(problems=4)
    asked = judged_criteria(model=JUDGE, k=k, named=named, embed=embed)
    pairs = pareto_pairs(criteria=criteria or asked, rule=rule, by=gap, branch=branch, each=each)
    also = () if criteria else (Learner(JUDGE, judge, Recipe(), every=0),)
    measured = {"measure": pair_purity(rollout=pairs, truth=truth)} if truth else {}
    return base.but(rollout=pairs, also=(*base.also, *also), **measured)


TWO = imperfect(auc=0.75, of=correct_so_far()).named("the calculation is right") + own_probability().named("it is as one expects")
"""A judge who is often wrong, and the policy's own expectation, which a wrong rule misleads."""

claim = Claim(
    says="pairs of dominance prefer the right step more often than pairs by the sum of the same criteria",
    versus="dg_prm", task="arithmetic:biased=0.75,error=0.1", measure="purity", direction="higher", margin=0.017,
    settings={"criteria": TWO, "truth": correct_so_far(), "each": 12},
    versus_settings={"criteria": TWO, "truth": correct_so_far(), "each": 12, "rule": "sum"}, problems=150, steps=1,
    fault=Within("purity", high=0.75, says="pairs by the sum whose preferred step is the better one, ties half"), learns=None,
    start=None, tried="the share of reversed pairs as the fault: .036 (2 seeds); in most pairs both steps are right, or wrong",
    finding="since dominated steps are no positives any more; with them .012 [.006, .018] in 20 pairs",
)  # fmt: skip
baseline = "dpo"
