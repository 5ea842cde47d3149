"""COIG-P: several models answer, judges grade the answers, and two answers at random are a pair if their grades differ enough.

    replies y_1 .. y_m by m models, grades s_j from 0 to 10;    i, j at random:  a pair if |s_i - s_j| >= gap, else nothing

A judge's error turns round the labels of near-ties alone. So a gap cleans labels without anybody who checks them, at the price of
pairs; choosing two at random, not the best and the worst, keeps pairs of every quality. The same pairs teach the policy (DPO, as
here) and a reward model that grades further data cheaply: bradley_terry+coig_p, then rewardlab data filter --reward.

M-A-P Team et al. 2025, arXiv:2504.05535: 15 models, 8 judges, a threshold of 2 of 10. (inferred): that a difference of 2 itself
counts (a summary of the paper has "exceeding", which is gap=3 for whole grades), and one pair for each prompt and visit (they have
1,006,946 pairs of 92,784 queries, so about eleven of each).
Training follows qwen2.5_7b_full_dpo.yaml of the released code (multimodal-art-projection/COIG-P, 28104b6): plain DPO. Left out:
crawling and filtering queries; asking models and judges (rewardlab data pass-rate --keep-replies does it for one model).

Data: prompts with the columns `replies` and `scores`, two lists; `true_scores`, if there is one, shows how many labels are right.
"""

from rewardlab.core import Recipe
from rewardlab.evals.rewards import mean_reward
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rollouts.paired import paired


def coig_p(base: Recipe | None = None, *, gap: float = 2.0) -> Recipe:
    """gap: the least difference of two grades that makes a pair; 0: any."""
    base = base or dpo()
    return base.but(rollout=paired(of=base.required("rollout"), choose="random", gap=gap))


claim = Claim(
    says="DPO on pairs whose grades differ enough gives better replies than DPO on as many pairs of any difference",
    versus="coig_p", task="notes:writers=6,noise=0.4", measure="reward", direction="higher", margin=0.017,
    settings={"gap": 4.0, "lr": 1e-4}, versus_settings={"gap": 0.0, "lr": 1e-4}, by=mean_reward(), steps=40,
    fault=Within("train.true_labels", 0.55, 0.75, "share of right labels where any difference makes a pair"),
    moved=Within("train.true_labels", low=0.05, says="right labels"), learns="reward", start=None,
)  # fmt: skip
