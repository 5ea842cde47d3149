"""OmegaPRM: a tree of halved replies labels steps: errors are looked for where the policy mostly goes on rightly, and did not.

    MC(s) = share of n continuations of prefix s that are right;     pool: wrong continuations r of states with MC(s) > 0
    search:  argmax over the pool of  alpha^(1 - MC(s)) beta^(len(r)/L) + c sqrt(sum N) / (1 + N(s))
    halve r: continue its middle step; MC > 0: the error is later; MC = 0: it is there or before;   all its states join the tree
    process reward model: cross-entropy to MC;     at test time the answer with the largest sum of its words wins

Of m steps log2(m) are continued and not m; what is continued is sampled once and used twice, as labels and as new candidates.
States before the error are right, those after it wrong, and a search asks for about as many of both.

Luo et al. 2024, arXiv:2406.06592: alpha = 1/2, beta = 0.9, L = 500, c = 1/8, n = 8, and soft labels with a pointwise loss are the
paper's; it has 100 searches to a question. No code was released; the order of things is that of open versions of it. (inferred):
that the last step of a wrong reply is known to be wrong, that lengths are tokens, 4 searches, and that a reply votes with the
model's word on its end (a summary by others has the product over its steps). The model learns beside the policy, which stays as it
is; there it learns once, from a file. Steps are lines; the paper cuts replies into equal pieces.

Data: prompts with gold answers; the policy continues its own solutions.
"""

from rewardlab.core import Learner, Recipe, Update, with_surprise
from rewardlab.evals.reranked import reranked
from rewardlab.evals.step_labels import label_quality
from rewardlab.methods.baselines.weighted_vote import said_right
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.environment import found_labels
from rewardlab.rewards.monte_carlo import monte_carlo_steps
from rewardlab.rewards.progress import soft_best
from rewardlab.rewards.steps import correct_steps
from rewardlab.rewards.task import correct
from rewardlab.rollouts.divided import error_bisection_tree


def omegaprm(
    base: Recipe | None = None, *, n: int = 8, searches: int = 4, alpha: float = 0.5, beta: float = 0.9, length: float = 500.0,
    explore: float = 0.125, choose: int = 8, init: str = "value-head", surprise: bool = False, lr: float | None = None,
    epochs: int = 1,
) -> Recipe:  # fmt: skip
    """n, searches, alpha, beta, length, explore: of the tree (`error_bisection_tree`).  choose: replies that vote in measuring.
    init, lr, epochs: of the model (`Learner.init`).  surprise: it also reads the surprise of the policy (`Learner.init`), which
    no paper has.
    """
    base = base or Recipe(name="omegaprm", update=Update(problems=8))
    tree = error_bisection_tree(n=n, searches=searches, alpha=alpha, beta=beta, length=length, explore=explore)
    # labels are the model's own reward: the policy, which stays as it is, needs a verdict on every reply
    prm = Recipe(reward=found_labels(), objective=label_cross_entropy(), update=Update(lr=lr, epochs=epochs, loss_kind="scorer"))
    return base.but(
        rollout=tree,
        reward=base.reward or correct(),
        measure=reranked(by=said_right(model="prm"), n=choose),
        also=(*base.also, Learner("prm", with_surprise(init, surprise), prm)),
    )


claim = Claim(
    says="for about as many continuations, more first errors are found by halving than by continuing every step half as often",
    versus=None, task="arithmetic:biased=0.8,error=0.05,difficulty=[2,5]", measure="first_error.tree", direction="higher",
    margin=0.044, against="first_error.every",
    by=label_quality(
        truth=correct_steps(), rollout=error_bisection_tree(n=8, searches=2),
        annotators={"tree": soft_best(found_labels(), eta=100.0), "every": soft_best(monte_carlo_steps(n=4), eta=100.0)},
    ), problems=150, steps=1, fault=Within("first_error.every", high=0.9, says="first errors found by continuing every step"),
    judge=Within("auc.tree", low=0.6, says="right steps above wrong ones, by the labels of the tree"), learns=None,
    finding="halving finds .61 of the first errors, continuing every step .69; its labels rank right steps above wrong "
    "ones at .91, the others' at .86",
    version=2,
    replaces="a step was wrong below a share of 1/2 in the tree, and at a share of 0 by continuing every step; its gate could not "
    "fail, since all replies have a label at their end",
)  # fmt: skip
baseline = None
