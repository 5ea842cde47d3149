"""DAPO: GRPO for long replies: a higher upper clip for rare tokens, only groups with mixed outcomes, equal weight for every token.

    A_i = (r_i - mean(r)) / (std(r) + eps),   r_i = right_i + overlong_i / 2,   over groups with 0 < number of right replies < n
    loss = -1 / (sum_i |o_i|) sum_i sum_t min(ratio A, clip(ratio, 1 - eps_low, 1 + eps_high) A),   eps_high > eps_low
    overlong = 0 up to L - C tokens,  (L - C - |o|) / C from there to L,  -1 beyond

Clipping at 1 + eps stops a token of probability 0.01 at 0.012 but never one of 0.9, so entropy collapses. A group that is all right
or all wrong has no gradient and only dilutes the mean over tokens. There is no KL.

Yu et al. 2025, arXiv:2503.14476. Further problems are sampled until the batch is full (dynamic sampling), at most 10 times, as in
the released script (verl, recipe/dapo); their tokens count. C is a fifth of the longest reply, as in the paper (4096 of 20480
tokens). There right replies earn 1 and wrong ones -1, so that the longest loses half of the difference; here that is 1 and 0, and
half of `overlong`: the advantages are the same. In an episode, whose replies may each be as long, the longest is meant. Four
updates per batch (the paper: 16): in the first the ratio is 1 and nothing is clipped. The script also bounds the loss of bad tokens
at a ratio of 10 (--dual 10), which the paper does not.
"""

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe, Run, Trajectory
from rewardlab.data.columns import Data
from rewardlab.objectives.ratio import clipped_ratio
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.filtered import solved_between

from .grpo import grpo


@reward
def overlong(trajectory: Trajectory, run: Run, *, cache: float = 0.2) -> float:
    """0 for short replies, falling to -1 over the last `cache` of the tokens that a reply may have (`run.max_new`).

    Of an episode's replies, each of which may have so many, the longest counts.
    """
    # the mask counts sampled tokens only, so long prompts and tool results are not penalised
    lengths = np.diff(np.cumsum(trajectory.mask)[trajectory.ends], prepend=0)
    window = cache * run.max_new
    excess = float(lengths.max(initial=0)) - (run.max_new - window)
    # cache=0 leaves no window to divide by, and turns the penalty off
    return -min(1.0, max(0.0, excess / window)) if window else 0.0


def dapo(
    base: Recipe | None = None, *, n: int = 8, eps: float = 0.2, eps_high: float | None = 0.28, cache: float = 0.2,
    penalty: float = 0.5, low: float = 0.001, high: float = 0.999, attempts: int = 10, dual: float | None = None,
) -> Recipe:  # fmt: skip
    """eps_high: None is the same as eps.  cache: share of the longest reply over which length is penalised.
    penalty: what the longest reply loses, where a right one earns 1 and a wrong one 0; 1 where they earn 1 and -1.

    low, high: bounds on the share of right replies in a group that is trained on.  attempts: how often at most problems are
    sampled to fill the batch; 1 learns from the groups that are left of one batch.  dual: as in `clipped_ratio`.
    """
    # eps_high matters from the second update on: in the first the ratio is 1
    base = base or grpo(n=n).but(minibatches=4)
    return base.but(
        # the filter reads the verifier's outcome, not the reward: replies of different lengths would make every group look mixed
        rollout=solved_between(inner=base.required("rollout"), low=low, high=high, attempts=attempts),
        reward=(base.reward or correct()) + penalty * overlong(cache=cache),
        objective=clipped_ratio(eps=eps, eps_high=eps_high, dual=dual),
        weighting=token_mean(),
    )


fidelity = "whole"
data = Data(answer="the gold answer")

claim = Claim(
    says="where many groups are all right or all wrong, refilling the batch with mixed groups learns more in as many updates",
    versus="grpo", task="arithmetic:biased=0.8,error=0.05,difficulty=[2,5]", measure="pass@1", direction="higher",
    margin=0.045, versus_settings={"minibatches": 4}, steps=40,
    fault=Within("train.signal", high=0.75, says="share of groups that teach anything: here a third do not"),
    moved=Within("train.signal", low=0.2, says="share of groups that teach anything"),
    tried="rarer right answers (error=0.4, difficulty=[4,8]): +.15 and +.14 on development seeds, but GRPO falls there to .01",
    finding="40% right before; 72% with DAPO and 59% with GRPO after as many updates, for a fifth more tokens: a third of the "
    "groups teach GRPO nothing. Replies are short here, so that neither the higher clip nor the price of length is put to the "
    "test",
    version=2,
    replaces="it did not refill its batches, so that it learned from fewer replies, where few groups were without signal",
)  # fmt: skip
