"""SCAN: self-denoised Monte-Carlo labels, for wrong replies to confident problems only, relative to the confidence.

    c = share of right replies to the problem;    c < 3/4: no labels;    right reply: 1 at every step
    wrong reply: continue from step 1, 2, .. up to the first step t after which none of n continuations is right
    label of step k:  1 if k < t - 2;   min(1, share_k / c) if t - 2 <= k < t;   0 if k = t;   none after it
    process reward model: cross-entropy to these labels;    at test time it chooses among n replies

A policy that seldom finds the answer to a problem fails from right steps too, and would label them as wrong; one that is able to
mend an error labels the step that made it as right. The first is left out by c, and the second is softened around the error.
Right replies, which are most of those that are left, need no continuation.

Ding et al. 2025, arXiv:2509.16548, by the released code (yyDing1/SCAN-PRM, f33fdc7, src/eval_prm/main_datasyn.py,
dataset/SCAN-Base/process.py): the threshold, 2 steps of tolerance, and as many right replies as wrong ones, here within a batch. c
is the share among 128 replies there, among the group's here. There the last step of a wrong reply is continued too, and a reply
none of whose steps comes out at 0 is dropped; here its verdict stands for that. The model learns beside the policy, which stays as
it is; there it learns once, from a file. Of its choices (src/eval_utils/vote.py: by the least step or the last one, of one reply or
in a vote) the one here is the reply whose least step is best: of wrong replies the last step seldom has a label, so that nearly all
labels there are 1. Steps are lines.
"""

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Learner, Recipe, Update, with_surprise
from rewardlab.data.columns import Data
from rewardlab.evals.reranked import reranked
from rewardlab.evals.step_labels import label_quality
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.denoised import self_denoised_steps
from rewardlab.rewards.model import step_score
from rewardlab.rewards.monte_carlo import monte_carlo_steps
from rewardlab.rewards.progress import soft_best
from rewardlab.rewards.steps import correct_steps
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent


def scan(
    base: Recipe | None = None, *, n: int = 8, continuations: int = 8, least: float = 0.75, tolerance: int = 2, choose: int = 8,
    init: str = "value-head", surprise: bool = False, lr: float | None = None, epochs: int = 1,
) -> Recipe:  # fmt: skip
    """n, continuations: replies per problem, and tries from a step, to label it.  least, tolerance: the share of right replies that
    a problem needs, and steps before an error with soft labels.  choose: replies to choose from when it is measured.  init, lr,
    epochs: of the model (`Learner.init`).  surprise: it also reads the surprise of the policy (`Learner.init`), which no paper has.
    """
    base = base or Recipe(name="scan", update=Update(problems=8))
    labels = self_denoised_steps(n=continuations, least=least, tolerance=tolerance, balance=True)
    # labels are the model's own reward: the policy, which stays as it is, needs a verdict on every reply
    prm = Recipe(reward=labels, objective=label_cross_entropy(), update=Update(lr=lr, epochs=epochs, loss_kind="scorer"))
    return base.but(
        rollout=independent(n=n, steps="newline"),
        reward=base.reward or correct(),
        measure=reranked(by=aggregate(step_score(model="prm"), by="min"), n=choose),
        also=(*base.also, Learner("prm", with_surprise(init, surprise), prm)),
    )


fidelity = "core"
left_out = (
    "128 replies to tell how sure the policy is (here the group's), training once on a file of labels, dropping replies that state "
    "no answer, and a vote weighted by the model"
)
data = Data(answer="the gold answer")

check = Check(
    says="fewer labelled replies have a misplaced first error than by as many continuations of every step of every reply",
    versus=None, task="arithmetic:biased=0.8,error=0.05,difficulty=[2,5]", measure="noise.scan", direction="lower", margin=0.15,
    against="noise.plain", by=label_quality(
        truth=correct_steps(), rollout=independent(n=8, steps="newline"),
        annotators={"scan": self_denoised_steps(n=4), "plain": soft_best(monte_carlo_steps(n=4), eta=100.0)},
    ), problems=150, steps=1, fault=Within("noise.plain", low=0.1, says="replies whose first error Monte-Carlo labels misplace"),
    judge=Within("labelled.scan", low=0.1, says="share of replies that are labelled at all"), learns=None,
    finding="2% of the labelled replies have a misplaced first error, where continuations of every step misplace 30%, at a "
    "twentieth of the continuations. But only 30% of the replies are labelled, most of them right: few errors are found (F1 .10)",
)  # fmt: skip
baseline = None
