"""W-REINFORCE: full weight for negative samples, a tenth for positive ones.

    A_i = lambda if right,  -1 if wrong;    no baseline.    lambda = 0.1: W-REINFORCE,  0: NSR alone;    PSR alone: A_i = 1 and 0

REINFORCE is the sum of two objectives: the likelihood of right samples (PSR) and the unlikelihood of wrong ones (NSR). The first
concentrates the policy on what it sampled. The gradient of the second takes from a sampled wrong token and gives to all others in
proportion to their probabilities, so what the policy held likely before stays so, and it is 0 where nothing wrong is sampled.

Zhu et al. 2025, arXiv:2506.01347. lambda, the clipped ratio, the mean over the tokens of a batch, four updates per batch and a
bonus of .001 for entropy are those of the released script, and of the configuration that it leaves as it is
(TianHongZXY/RLVR-Decomposed, 84be7a2); the advantages are those of its core_algos.py. Right is whatever earns more than 0, so
rewards of 0 and 1 and of -1 and 1 teach the same. One reply per prompt is enough.
"""

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe
from rewardlab.credit.sign_credit import sign_credit
from rewardlab.data.columns import Data
from rewardlab.evals.passk import coverage
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.ratio import clipped_ratio
from rewardlab.objectives.regularise import negative_entropy
from rewardlab.objectives.weighting import token_mean


def nsr_w_reinforce(
    base: Recipe | None = None, *, positive: float = 0.1, negative: float = 1.0, n: int = 8, eps: float = 0.2, bonus: float = 1e-3
) -> Recipe:
    """positive, negative: weights of right and of wrong replies; 0 and 1 is NSR, 1 and 0 PSR, 1 and 1 plain REINFORCE.
    n: replies per prompt.  bonus: weight of the entropy that is added to what is maximised.
    """
    base = base or grpo(n=n).but(minibatches=4)
    loss = clipped_ratio(eps=eps) + bonus * negative_entropy() if bonus else clipped_ratio(eps=eps)
    return base.but(credit=sign_credit(positive=positive, negative=negative), objective=loss, weighting=token_mean())


fidelity = "whole"
data = Data(answer="the gold answer")

claim = Claim(
    says="one of eight replies is right oftener than after as many updates on right replies alone, which make them alike",
    versus="nsr_w_reinforce", task="countdown:largest=30,habit=0.9", measure="pass@8", direction="higher", margin=0.118,
    versus_settings={"positive": 1.0, "negative": 0.0}, by=coverage(n=8, k=8), problems=1000, steps=40,
    moved=Within("train.entropy", low=0.02, says="entropy at the decisions, in nats"), start=None,
    finding="what right replies alone teach differs too much between runs to be called learning, so that nothing is decided. One "
    "of 8 replies is right for 91% of problems before, 74% after W-REINFORCE and 71% after PSR; one reply in 42%, 50% and 58%",
)  # fmt: skip
baseline = "grpo"
