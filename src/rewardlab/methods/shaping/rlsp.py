"""RLSP: an exploration bonus for longer replies, bounded so that the verifier decides.

    r = [right] - unstated [no answer] - scale / len;    with a judge of the search: alpha r + (1 - alpha) judge

then PPO. The outcome alone pays the shortest reply that is right: checking and going back, which help later, are never tried.
scale / len falls fast at first and hardly at all later: from some length on only being right pays, and idle length does not.

Ye et al. 2025, arXiv:2502.06773. Formula, scale = 20, unstated = 0.5 and alpha = 0.8 are those of the released reward server
(GuanghaoYe/Emergence-of-Thinking, a36ba6c, openrlhf/cli/orm_server.py), where len counts the tokens before the box, here all tokens
of the reply; its judge is gpt-4o-mini, asked how well a reply searches.

judge="mine.py:search_well", or a judge of your own in Python, rates the search from 0 to 1.
"""

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Data
from rewardlab.evals.length import length_of_right
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.rewards.format import answer_given
from rewardlab.rewards.length import short_penalty
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent

ALPHA = 0.8


def rlsp(base: Recipe | None = None, *, scale: float = 20.0, unstated: float = 0.5, judge: Reward | None = None) -> Recipe:
    """scale: tokens at which shortness costs as much as being wrong.  unstated: what a reply without an answer loses.
    judge: of how well a reply searches, if there is one, which then has a fifth of the weight.
    """
    base = base or ppo()
    reward = (base.reward or correct()) - unstated * (1 - answer_given()) + short_penalty(scale=scale)
    return base.but(reward=reward if judge is None else ALPHA * reward + (1 - ALPHA) * judge)


fidelity = "core"
left_out = (
    "the first stage, SFT on demonstrations of reasoning: train `sft` on yours, and give its folder as --model; a judge of the "
    "search, unless one is given; and the released PPO (a KL of .05, temperature .7, rewards over their running deviation): PPO "
    "here has its own"
)
data = Data(answer="the gold answer")

claim = Claim(
    says="right replies take more steps than PPO's after equal updates, at no loss of accuracy",
    versus="ppo", task="arithmetic:biased=0.9,error=0.1,corrected=0.5", measure="log_right_length", direction="higher",
    margin=0.048, by=length_of_right(rollout=independent(n=1)), steps=40, guard=Within("pass@1", low=-0.03),
    finding="right replies have 31 tokens before, 33 with the bonus and 30 with PPO alone; 39% are right before, 70% and 73% at "
    "the end: the bonus lengthens replies, and costs a little more accuracy than allowed",
)  # fmt: skip
