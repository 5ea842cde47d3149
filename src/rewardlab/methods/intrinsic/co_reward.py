"""Co-Reward: of a question and the same in other words, the replies to each are paid for the answer that most of the other's give.

    v = most frequent answer to x,    v' = most frequent answer to its rewrite x'
    r(y) = 1[answer(y) = v'] for y sampled from x,    1[answer(y) = v] for y sampled from x';    group-normalised, on both

No labels are needed. Paid by its own majority, a policy confirms what it says most often, mistakes as well, and may end with one
answer to every question, which earns all there is. A mistake that comes with a wording is not confirmed by the other one.

Zhang et al. 2025, arXiv:2508.00410, and the released reward and script (resistzzz/Co-Reward, 0653c59: reward_manager/co_reward.py,
math_co_reward.sh): one rewrite of each question, made beforehand by Qwen3-32B, n = 8 for each of the two, KL .005, ties to the
answer that came first, no answer no vote. (inferred): answers are compared by value and not as texts, and without any vote there is
no verdict, where the release pays all 0 (a group learns from neither). Left out: "Co-rewarding-II" of the second version, whose
labels come from a slow average of the policy. The reward takes the place of a base's.

Data: prompts, and as `rewrite` each of them in other words, which may be written by any model. Answers are read for reports alone.
"""

from typing import Literal

from rewardlab.core import Recipe
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.precision import paid_right
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.agreement import with_majority
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.rewritten import with_rewrites


def co_reward(
    base: Recipe | None = None, *, voters: Literal["other", "own"] = "other", column: str = "rewrite", n: int = 8,
    beta: float = 0.005,
) -> Recipe:  # fmt: skip
    """voters: whose majority pays: the replies to the other wording, or to the same one, as in TTRL.  column: of the rewrites.
    n, beta: of grpo; a step has 2 n replies to a problem.
    """
    base = base or grpo(n=n, beta=beta)
    both, paid = with_rewrites(of=base.required("rollout"), column=column), with_majority(voters=voters)
    shown = own_reward(reward=paid, rollout=with_rewrites(of=independent(n=4), column=column))
    return base.but(rollout=both, reward=paid, measure=shown)


OTHER, OWN = with_majority().named("other"), with_majority(voters="own").named("own")
claim = Claim(
    says="of the replies that the majority of the question in other words pays, more are right than of those that their own pays",
    versus=None, task="wordings", measure="precision.other", direction="higher", margin=0.15, against="precision.own",
    by=paid_right(reward=OTHER + OWN, truth=correct(), rollout=with_rewrites(of=independent(n=8))), problems=300, steps=1,
    fault=Within("precision.own", high=0.7, says="share of the replies paid by their own majority that are right"), learns=None,
    tried="pairs told apart: .69 against .75, frozen: in half of the groups nobody gives the other's answer, and all earn 0",
)  # fmt: skip
baseline = "grpo"
