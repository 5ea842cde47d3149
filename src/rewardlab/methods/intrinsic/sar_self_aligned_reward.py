"""SAR: beside the verifier, reward the relative drop of a reply's perplexity given its question.

    R = R_verifier + alpha R_SA,    R_SA = clip((ppl(a) - ppl(a | q)) / ppl(a), -1, 1),    ppl(x) = exp(mean -log pi(x_t))

What a policy would write whatever it is asked, such as lines that check what is known, is as likely without the question: it
adds tokens that gain nothing, and lowers the mean. So a reply that is concise and about its question earns most, without a
count of its tokens.

Han et al. 2025, arXiv:2509.05489, and the released code
(amazon-science/Self-Aligned-Reward-Towards_Effective_and_Efficient_Reasoners: README at 75789d5; scripts/SA-grpo-1.7B.sh,
08892d0; ray_trainer.py, reward_score and ppo_trainer.yaml in verl, 68687ed): alpha = .2, n = 6; perplexities are the present
policy's; without its question a reply follows an empty one in the same chat template; R_SA is paid to wrong replies too.
Advantages are not divided by the deviation, as in Dr. GRPO: where all replies are right, alpha would count for nothing. The KL
of .001 is the base's affair (`grpo`, beta).
"""

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Data
from rewardlab.evals.groups import told_apart
from rewardlab.methods.baselines.dr_grpo import dr_grpo
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.intrinsic import likelihood, self_alignment
from rewardlab.rewards.length import length_penalty
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent


def sar_self_aligned_reward(base: Recipe | None = None, *, alpha: float = 0.2, n: int = 6) -> Recipe:
    """alpha: weight of R_SA beside the base's reward.  n: of dr_grpo."""
    base = base or dr_grpo(grpo(n=n))
    return base.but(reward=(base.reward or correct()) + alpha * self_alignment())


fidelity = "whole"
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "A cake is cut into 8 pieces and 3 are eaten. How many are left?", "answer": "5"},
        {"prompt": "What is $7 \\cdot 8$?", "answer": "56"},
        {"prompt": "How many minutes are 2.5 hours?", "answer": "150"},
    ],
)

ALIGNED, SURE = self_alignment().named("aligned"), likelihood().named("confident")
check = Check(
    says="of two right replies to one problem, the more concise one is aligned more with it, oftener than it is likelier",
    versus=None, task="arithmetic:biased=0.75,error=0.1,redundant=0.4", measure="agreement.aligned", direction="higher",
    margin=0.13, against="agreement.confident",
    by=told_apart(reward=ALIGNED + SURE, truth=length_penalty(), rollout=independent(n=8), among=correct()), problems=300, steps=1,
    fault=Within("agreement.confident", high=0.85, says="how often the shorter of two right replies is the likelier one"),
    learns=None,
    finding="of two right replies the shorter one is more aligned in 88% of the pairs, and likelier in 56%. Whether replies get "
    "shorter by training with it is not tested",
)  # fmt: skip
baseline = "dr_grpo"
