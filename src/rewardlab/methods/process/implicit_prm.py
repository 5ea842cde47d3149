"""Implicit PRM: an outcome reward model that is a ratio of likelihoods scores every step too, without a single label of a step.

    r(y) = beta log prm(y) / ref(y), learnt from outcomes alone;    q_k = beta sum over tokens up to step k of log(prm / ref)

Whatever loss r is learnt by (`objectives/outcomes.py`: cross-entropy, DPO, KTO, NCA), q_k is the soft value of the reply after step
k, and q_k - q_{k-1} its process reward (`implicit_steps`). Math-Shepherd continues every step many times for such labels. Of n
replies that one is chosen whose least q_k is highest.

Yuan et al. 2024, arXiv:2412.01981. The cross-entropy, beta = 0.05 and the loss names are those of its text and released README
(PRIME-RL/ImplicitPRM, c044175); that q_k sums from the first token on is as others' code reads its models (aster2024/SPRM,
ae8c6f0, eval/get_baseline_rewards_implicit_prm.py). There the model learns once, from a file of replies with outcomes; here it
learns beside the policy, which stays as it is, from what the policy samples.
(inferred): the least q_k as a reply's score (`score="last"` takes r itself), KTO's reference point, which is the group's mean, n.
Left out: votes weighted by the scores. PRIME is this model, by cross-entropy, as a reward in training.

Data: prompts with gold answers. Steps are lines; they are needed only where it chooses.
"""

from typing import Literal

from rewardlab.core import Learner, Recipe, Update
from rewardlab.evals.reranked import reranked
from rewardlab.objectives.outcomes import ratio_from_outcomes
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.implicit import implicit_steps
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent


def implicit_prm(
    base: Recipe | None = None, *, loss: Literal["ce", "dpo", "kto", "nca"] = "ce", beta: float = 0.05, n: int = 4,
    score: Literal["min", "last"] = "min", choose: int = 8, lr: float | None = None, epochs: int = 1,
) -> Recipe:  # fmt: skip
    """n: replies per problem; dpo and nca learn from problems with a right and a wrong one.  score: what a reply is worth, of its
    q_k.  choose: replies to choose from when it is measured.  lr, epochs: of the model.
    """
    base = base or Recipe(name="implicit_prm", reward=correct(), update=Update(problems=8))
    prm = Recipe(
        objective=ratio_from_outcomes(loss=loss, beta=beta),
        update=Update(lr=lr, epochs=epochs, loss_kind="preference", small_lr=3e-4),
    )
    values = implicit_steps(model="prm", beta=beta, form="value")
    return base.but(
        # no objective of its own: the policy samples, and stays as it is
        rollout=independent(n=n),
        measure=reranked(by=aggregate(values, by=score), n=choose),
        also=(*base.also, Learner("prm", "copy:policy", prm)),
    )


claim = Claim(
    says="taught by outcomes alone, it picks right ones of 8 oftener than a head taught by four continuations of every step",
    versus="er_prm", task="arithmetic:biased=0.75,error=0.1", measure="reranked", direction="higher", margin=0.12,
    settings={"beta": 0.5}, versus_settings={"eta": 0.0, "init": "embedded:arithmetic:judge", "lr": 3e-4, "problems": 8},
    problems=300, steps=30, fault=Within("by_auc", low=0.6, says="right replies above wrong ones, by the head"),
    judge=Within("by_auc", low=0.6, says="right replies above wrong ones to the same problem, by the model"), learns=None,
    version=2, replaces="the head, on the policy's own trunk, had hardly learnt (AUC .55): it could not have been worse",
)  # fmt: skip
baseline = None
