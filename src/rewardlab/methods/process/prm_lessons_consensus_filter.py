"""Consensus filtering: a process reward model of the solutions on which continuations and a judge place the first error alike.

    Monte Carlo:  step k is wrong if none of n continuations of the steps up to k is right;     first error: the first such step
    judge:        the first step that it finds wrong
    kept:         solutions on which both name the same step, or both none
    labels:       1 before the first error, 0 at it, none after it;     process reward model: cross-entropy at the ends of steps
    of n replies: the one with the largest product of the chances of its steps

Continuations measure what a policy will make of a prefix, not whether it is right: one that mends an error hides it, and one that
fails later blames a right step. A judge errs for other reasons, so that what both say is mostly true.

Zhang et al. 2025, arXiv:2501.07301, the lessons of Qwen2.5-Math-PRM, by the paper's text: 6 to 8 replies to a problem, 8
continuations of a step, hard labels with 0 as the threshold (2.1, 3.1.4), that steps after the first wrong one are left out (2.1),
and the product (2.2). There about 40% of the solutions are kept (3.1.3), soft labels profit less (`hard=False`), and thresholds
above 0 harm. No training code was found. There the judge, Qwen2.5-72B-Instruct, analyses paragraph after paragraph and stops at
the first wrong one (appendix C); here it names that one in a box, which is the form of ProcessBench, by the same authors. --judge
PATH is the judge, a copy of the policy's start without it; `annotators` may be any step rewards of your own. The model learns
beside the policy, which stays as it is; there it learns once, from a file: `rewardlab prm label --by consensus` writes one, `prm
train` learns from it. Steps are lines.
"""

from __future__ import annotations

from rewardlab.core import Learner, Recipe, Update, with_surprise
from rewardlab.data.columns import Data
from rewardlab.evals.reranked import reranked
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.algebra import aggregate, threshold
from rewardlab.rewards.consensus import consensus_steps
from rewardlab.rewards.judged_steps import judged_steps
from rewardlab.rewards.model import step_score
from rewardlab.rewards.monte_carlo import monte_carlo_steps
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent

JUDGE = "judge"


def prm_lessons_consensus_filter(
    base: Recipe | None = None, *, annotators: tuple[Reward, ...] = (), judge: str = "copy:policy", longest: int = 1024,
    continuations: int = 8, at: float = 0.0, hard: bool = True, n: int = 6, choose: int = 8, init: str = "value-head",
    surprise: bool = False, lr: float | None = None, epochs: int = 1,
) -> Recipe:  # fmt: skip
    """annotators: step rewards that must agree; (): continuations and the judge.  judge, longest: the model that judges, and the
    tokens of its word.  continuations: tries from each step.  at: the share of right ones up to which a step is wrong.  hard:
    False: labels are shares.  n: replies per problem, to be labelled.  choose: replies to choose from when it is measured.  init,
    lr, epochs: of the model.  surprise: it also reads the surprise of the policy (`Learner.init`), which no paper has.
    """
    base = base or Recipe(name="prm_lessons_consensus_filter", update=Update(problems=8))
    own = () if annotators else (Learner(JUDGE, judge, Recipe(), every=0),)
    asked = (monte_carlo_steps(n=continuations), judged_steps(model=JUDGE, max_new=longest))
    # labels are the model's own reward: the policy, which stays as it is, needs a verdict on every reply
    labels = consensus_steps(inner=annotators or asked, at=at, hard=hard)
    prm = Recipe(reward=labels, objective=label_cross_entropy(), update=Update(lr=lr, epochs=epochs, loss_kind="scorer"))
    return base.but(
        rollout=independent(n=n, steps="newline"),
        reward=base.reward or correct(),
        measure=reranked(by=aggregate(CHANCES, by="product"), n=choose),
        also=(*base.also, *own, Learner("prm", with_surprise(init, surprise), prm)),
    )


CHANCES = threshold(step_score(model="prm"), at=0.0, soft=1.0)
"""Of each step, that it is right, by the model."""

fidelity = "core"
left_out = (
    "the judge's analysis of each paragraph, a head of two layers (here one), squared error for soft labels, and learning once "
    "from a file of solutions by several policies, which are continued by others"
)
data = Data(answer="the gold answer")
claim = None
