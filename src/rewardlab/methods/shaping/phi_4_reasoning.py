"""Phi-4-reasoning: length-aware rewards, less for long right replies and short wrong ones, and a repetition penalty.

    right:  R = 1/2 + 1/4 (1 + cos(pi p)),    p = min(1, max(0, len - right_until) / (longest - right_until))     from 1 to 1/2
    wrong:  R = -1/2 - 1/4 (1 + cos(pi p)),   p = min(1, len / wrong_from)                                       from -1 to -1/2
    no end token: R = -1/2;    no single <think> block, where one is asked for: R = -1
    r = 8/13 R + 1/13 repetition

Who is right should stop, who is wrong should have thought longer: a policy that can tell writes more where it errs, and only there.

Abdin et al. 2025, arXiv:2504.21318, section 4.1; the three lengths and all weights are the published ones, for replies of up to
31,744 tokens. (inferred): n-grams are of tokens, and a bad think block is worse than a missing end.
"""

import math

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.length import length_by_verdict
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.regularise import negative_entropy
from rewardlab.rewards.format import tagged
from rewardlab.rewards.length import cut_off, tokens
from rewardlab.rewards.operator import operator
from rewardlab.rewards.repetition import repetition
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeInt, PositiveInt


def scaled(length: float, right: bool, right_until: int, wrong_from: int, longest: int) -> float:
    """R of a well-formed reply of `length` tokens."""
    if right:
        p = min(1.0, max(0, length - right_until) / (longest - right_until))
        return 0.5 + 0.25 * (1 + math.cos(math.pi * p))
    return -0.5 - 0.25 * (1 + math.cos(math.pi * min(1.0, length / wrong_from)))


def sensible(right_until: int, longest: int, **_: object) -> None:
    if longest <= right_until:
        raise RewardlabError(f"longest ({longest}) must be above right_until ({right_until}): between them right replies lose")


@operator(check=sensible)
def accuracy_by_length(
    verdict: float, length: float, unfinished: float, blocks: float, *, right_until: NonNegativeInt = 25_600,
    wrong_from: PositiveInt = 3_702, longest: PositiveInt = 31_744, think: bool = False,
) -> float:  # fmt: skip
    """R of a reply."""
    if think and blocks < 1.0:
        return -1.0
    return -0.5 if unfinished else scaled(length, verdict >= 1.0, right_until, wrong_from, longest)


def phi_4_reasoning(
    base: Recipe | None = None, *, right_until: int = 25_600, wrong_from: int = 3_702, longest: int = 31_744, think: bool = False,
    entropy: float = 0.001,
) -> Recipe:  # fmt: skip
    """right_until: tokens up to which a right reply loses nothing.  wrong_from: from which a wrong one loses least.
    longest: at which a right reply is worth half. Set all three to what your policy writes, or they change little.  think: replies
    need one <think> block, as those of reasoning models have.  entropy: weight of its bonus.
    """
    base = base or grpo()
    read = ((base.reward or correct()), tokens(), cut_off(), tagged(tags=("think",)))
    graded = accuracy_by_length(*read, right_until=right_until, wrong_from=wrong_from, longest=longest, think=think)
    objective = base.required("objective")
    return base.but(
        reward=8 / 13 * graded + 1 / 13 * repetition(),
        objective=objective + entropy * negative_entropy() if entropy else objective,
    )


fidelity = "core"
left_out = (
    "the first stage, SFT on o3-mini's traces of prompts at the edge of ability, and the KL to the policy that sampled, "
    "whose gradient is 0 where each batch is used once."
)

data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "In how many ways can 5 people stand in a row? Put your answer in \\boxed{}.", "answer": "120"},
        {"prompt": "Find the remainder of $7^{100}$ divided by 5.", "answer": "1"},
        {"prompt": "A train of 200 m passes a post in 8 s. How fast is it, in m/s?", "answer": "25"},
    ],
)

LENGTHS = {"right_until": 48, "wrong_from": 48, "longest": 96}
claim = Claim(
    says="wrong replies become longer, against right ones, than with a binary reward after equal updates, at the same accuracy",
    versus="grpo", task="arithmetic:biased=0.6,error=0.1,redundant=0.4", measure="log_wrong_to_right", direction="higher",
    margin=0.036, settings={"problems": 8, **LENGTHS}, versus_settings={"problems": 8},
    by=length_by_verdict(rollout=independent(n=1)), steps=40, guard=Within("pass@1", low=-0.03),
    fault=Within("log_wrong_to_right", high=0.1, says="wrong replies are no longer than right ones"),
    tried="biased=0.75, right_until=16, wrong_from=96, three seeds: right in .04 at the end, GRPO in .52",
    finding="Wrong replies end no longer than right ones (by 3% on both sides). All become longer instead (43 tokens, with a "
    "binary reward 36), and fewer are right: 50%, not 60%, of 34% at the start.",
)  # fmt: skip
