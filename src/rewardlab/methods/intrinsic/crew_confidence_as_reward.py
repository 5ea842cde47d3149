"""CRew: a model's confidence in the tokens of the final answer says how good a solution is; pairs made by it teach a policy by DPO.

    c(y) = mean over the tokens t of the stated answer of pi(y_t | x, y_<t)
    chosen: the right one of n replies with the highest c;     rejected: the wrong one with the highest c;     loss: DPO's

The probability of a whole reply says how usual its words are. That of the answer, after the reasoning, says how far the reasoning
settled it. As a reward it needs no training: `rewardlab answer best_of_n --reward answer_confidence` and the measure `reranked`
use it to choose. A wrong reply that a policy is sure of is what it should learn to doubt.

Du et al. 2025, arXiv:2510.13501 (notes on the paper; no code was found). (inferred): that of the right and of the wrong replies the
surest are taken; that problems whose samples are all right or all wrong give no pair; n = 8; beta and rate are those of `dpo`, its
pairs sampled by the model as it started. Left out: the paper's benchmarks of judges, and filtering a data set by c.

Data: prompts with answers to verify by. Confidence alone, as a reward, needs no answers.
"""

from rewardlab.core import Recipe
from rewardlab.evals.groups import told_apart
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.answer_confidence import answer_confidence, sure_and_right
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.ranked import ranked


def crew_confidence_as_reward(
    base: Recipe | None = None, *, scorer: str = "reference", n: int = 8, temperature: float = 1.0, top_p: float = 1.0
) -> Recipe:
    """scorer: who samples, and whose confidence ranks pairs: "reference" or "policy".  n, temperature, top_p: of the samples."""
    base = base or dpo()
    return base.but(rollout=ranked(by=sure_and_right(model=scorer), n=n, model=scorer, temperature=temperature, top_p=top_p))


SURE, USUAL = answer_confidence().named("answer"), likelihood().named("whole")
claim = Claim(
    says="after DPO on pairs by confidence and correctness, confidence in the answer finds the right one of two replies oftener",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="agreement.answer", direction="higher", margin=0.05,
    against="before.agreement.answer", by=told_apart(reward=SURE + USUAL, truth=correct(), rollout=independent(n=8)), problems=300,
    steps=40,
    fault=Within("before.agreement.answer", high=0.7, says="how often the policy was surer of the right one of two before"),
    learns=None, tried="frozen: the answer repeats the last line, and is certain whatever it is: .53, whole replies .65",
)  # fmt: skip
baseline = "dpo"
