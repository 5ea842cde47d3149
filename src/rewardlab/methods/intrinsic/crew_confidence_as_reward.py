"""CRew: a model's confidence in the tokens of the final answer says how good a solution is; pairs made by it teach a policy by DPO.

    c(y) = mean over the tokens t of the stated answer of pi(y_t | x, y_<t)
    pair: of n replies the right one and the wrong one of the widest gap c(right) - c(wrong);     loss: DPO's

The probability of a whole reply says how usual its words are. That of the answer, after the reasoning, says how far the reasoning
settled it. As a reward it needs no training: `rewardlab answer best_of_n --reward answer_confidence` and the measure `reranked`
use it to choose. Pairs of a wide gap teach a policy to be sure of what is right and unsure of what is not, so that its confidence
becomes a better judge; `widest=False` pairs any right reply with any wrong one: the plain DPO that the paper compares with.

Du et al. 2025, arXiv:2510.13501, sections 3.1, 3.2, A.2. beta = 0.3 is the paper's. There the K pairs of the widest gap are taken
of 30 samples to each problem (K = 10 or 15), beforehand; here one of n = 8, by the model as it started. (inferred): the gap has a
sign, right less wrong; the rate is that of `dpo`. Left out: a second iteration, which starts from the model that was trained
(--model RUN); the paper's benchmarks of judges; filtering a data set by c.

Data: prompts with answers to verify by. Confidence alone, as a reward, needs no answers.
"""

from rewardlab.core import Recipe
from rewardlab.evals.groups import told_apart
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.answer_confidence import answer_confidence, right_and_sure
from rewardlab.rewards.task import correct
from rewardlab.rollouts.ranked import ranked


def crew_confidence_as_reward(
    base: Recipe | None = None, *, widest: bool = True, scorer: str = "reference", n: int = 8, temperature: float = 1.0,
    top_p: float = 1.0,
) -> Recipe:  # fmt: skip
    """widest: false pairs a right with a wrong reply whatever their confidence.  scorer: who samples, and whose confidence ranks
    pairs: "reference" or "policy".  n, temperature, top_p: of the samples.
    """
    base = base or dpo(beta=0.3)
    by = right_and_sure(model=scorer) if widest else correct()
    return base.but(rollout=ranked(by=by, n=n, model=scorer, temperature=temperature, top_p=top_p))


# right and wrong replies that the model wrote before it learnt, so that both sides judge the same ones
JUDGED = ranked(by=correct(), n=8)
claim = Claim(
    says="confidence in the answer finds the right one of two replies oftener after DPO on the widest gaps than on any pairs",
    versus="crew_confidence_as_reward", task="choices", measure="agreement", direction="higher", margin=0.074,
    versus_settings={"widest": False}, by=told_apart(reward=answer_confidence(), truth=correct(), rollout=JUDGED), problems=600,
    steps=40, fault=Within("agreement", high=0.9, says="how often the model is surer of the right one of two, after plain DPO"),
    learns=None, start=None,
    tried="frozen, 60 problems: in arithmetic the answer repeats the last line, and is certain whatever it is: .53, whole replies "
    ".65; in choices, where rationales contradict answers, .59 and .60; in cells, queries and judgments .44, .29 and .48",
    finding="agreement .70 before, .69 and .70 after: DPO on either choice of pairs leaves it as it was",
)  # fmt: skip
baseline = "dpo"
