"""GTPO: entropy-weighted token credit: uncertain tokens of right replies gain more, confident tokens of wrong ones lose more.

    r_it =  a1 + a2 d_t H_it / sum_k H_kt              if right, over the d_t right replies of the group that have a t-th token
    r_it = -a1 - a2 h_t (1/H_it) / sum_k (1/H_kt)      if wrong, over the h_t wrong ones
    A_it = (r_it - mean) / std over all tokens of the group;   GRPO-S (level="reply"): the same with a reply's mean entropy for H

H is the entropy of the policy before the update, held fixed. A token of high entropy is a choice between ways, and one of low
entropy in a wrong reply a mistake made with confidence. With a2 = 0 what is left is the outcome.

Tan et al. 2025, arXiv:2508.04349. a1 = 1 and a2 = 0.1 are the paper's, and so are the two sums; equations 3, 5 and 6 after an
independent implementation and its tests (teilomillet/textpolicy, algorithms/grpo.py). One thing is ours: equation 6 takes mean
and deviation over right tokens, and over wrong ones, so that A has mean 0 in both, and nothing says which replies were right; here
they are taken over both together. `apart=True` is the equation as printed. (inferred): GRPO-S by the same equation. It stands on
DAPO, with which the paper compares; right is what earns more than 0.
"""

from typing import Literal

from rewardlab.checks.claim import Claim
from rewardlab.core import Recipe
from rewardlab.credit.entropy import entropy_weighted_rows, entropy_weighted_tokens
from rewardlab.data.columns import Data
from rewardlab.methods.baselines.dapo import dapo


def gtpo_grpo_s(
    base: Recipe | None = None, *, level: Literal["token", "reply"] = "token", outcome: float = 1.0, entropy: float = 0.1,
    apart: bool = False,
) -> Recipe:  # fmt: skip
    """level: token is GTPO, reply GRPO-S.  outcome, entropy: weights of being right and of the entropy, a1 and a2.
    apart: normalise right and wrong tokens each by themselves.
    """
    base = base or dapo()
    shaped = entropy_weighted_tokens if level == "token" else entropy_weighted_rows
    return base.but(credit=shaped(outcome=outcome, entropy=entropy, apart=apart))


fidelity = "core"
left_out = "GRPO-S's importance ratio of whole replies, and a penalty on length (appendix D)"
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "A train covers 180 km in 3 hours. What is its speed in km/h?", "answer": "60"},
        {"prompt": "What is $\\frac{1}{2} + \\frac{1}{4}$? Put the answer in \\boxed{}.", "answer": "\\frac{3}{4}"},
    ],
)
claim = Claim(
    says="rewards weighted by the entropy at each token teach more in as many updates than DAPO's one for the whole reply",
    versus="dapo", task="arithmetic:biased=0.75,error=0.1", measure="auc.truth", direction="higher", margin=0.0041, steps=40,
    finding="start 36% right; GTPO ends at 82%, DAPO at 83%: weighting tokens by entropy neither helps nor hurts. Replies here "
    "are 28 tokens, of which the policy is unsure at a few; long reasoning may differ",
)  # fmt: skip
