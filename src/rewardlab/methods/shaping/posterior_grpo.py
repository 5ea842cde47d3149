"""Posterior-GRPO: the quality of the reasoning is rewarded only where the outcome is right.

    R = R_format + R_outcome + [R_outcome = 1] R_thinking,    R_thinking from 0 to 1

A reward for reasoning that is paid to wrong replies too can be raised without solving anything. Behind the outcome it can only tell
right replies apart: among those of one group, the ones that are reasoned better. A verifier that pays half for half the tests
opens no gate.

Fan et al. 2025, arXiv:2508.05170 (in later versions ReCode, the algorithm CG-GRPO), after summaries of its equations. R_thinking
is the sigmoid of a reward model's score (inferred); in Python any reward from 0 to 1 can be `thinking`. `gated=False` pays
R_thinking to all. R_format (inferred): a stated answer, or where programs are verified a block of code after any thinking; or a
`form` of one's own, such as <think>...</think> and <answer>...</answer>.
"""

from typing import Any

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Column, Data
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.rlhf import rlhf
from rewardlab.rewards.algebra import threshold
from rewardlab.rewards.format import answer_given, format_ok
from rewardlab.rewards.operator import operator
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct


@operator
def where_right(outcome: float, thinking: float) -> float:
    """The outcome, plus the thinking reward where the outcome is fully right (1)."""
    return outcome + (thinking if outcome >= 1.0 else 0.0)


def posterior_grpo(
    base: Recipe | None = None, *, thinking: Reward | None = None, form: str = "", gated: bool = True,
    reward_model: str = "value-head", pairs: int | None = None, passes: int = 1, n: int = 8,
) -> Recipe:  # fmt: skip
    """thinking: the reward for reasoning; None: the sigmoid of the base's reward, which is a reward model's score.
    form: a regular expression that replies should match; without it they should state an answer, or where programs are verified
    hold a block of code.  gated: pay it only where the outcome is right.  reward_model, pairs, passes: see rlhf.
    """
    judged: dict[str, Any] = {"reward_model": reward_model, "pairs": pairs, "passes": passes}
    base = base or (grpo(n=n) if thinking else rlhf(grpo(n=n), **judged).but(measure=accuracy()))
    quality = (thinking or threshold(base.required("reward"), at=0.0, soft=1.0)).named("thinking")
    formed = format_ok(pattern=form) if form else answer_given()
    return base.but(reward=formed + (where_right(correct(), quality) if gated else correct() + quality))


fidelity = "core"
left_out = (
    "the optimised and degraded versions of reasoning, written by a large model, on which the paper teaches its reward model "
    "(bring them as `chosen` and `rejected`); that it reads the text between thinking tags alone, here the whole reply; and "
    "clip-higher"
)
data = Data(
    answer="the gold answer",
    chosen=Column("the better reasoning; not needed with --reward-model", optional=True),
    rejected=Column("the worse reasoning", optional=True),
    rows=[
        {
            "prompt": "What is 3 * 4 + 2?",
            "answer": "14",
            "chosen": "3 * 4 is 12, and 2 more are 14.",
            "rejected": "It is about 14.",
        },
        {
            "prompt": "What is half of 46?",
            "answer": "23",
            "chosen": "Half of 40 is 20, half of 6 is 3: 23.",
            "rejected": "23, I think.",
        },
    ],
)

FEW_NOISY = {"reward_model": "value-head:surprise", "pairs": 300, "passes": 4}
# the fault was first the level of a sigmoid, which has no zero; it was stated anew after three development seeds
claim = Claim(
    says="behind the outcome, a reward model of few, noisy pairs costs no accuracy; paid to all replies, it does",
    versus="posterior_grpo", task="preferences:biased=0.75,error=0.1,flip=0.3", measure="auc.truth", direction="higher",
    margin=0.016, settings=FEW_NOISY, versus_settings={**FEW_NOISY, "gated": False}, steps=40,
    fault=Within("train.untrue/thinking", low=0.1, says="pairs of right and wrong replies that the reward model orders wrongly"),
    judge=Within("train.pair_accuracy", 0.55, 0.9, "better solutions above worse ones: learnt, and imperfect"), learns=None,
    finding="36% right before; 72% where the reward model is paid behind the outcome, 68% where it is paid to all. It orders "
    "half of the pairs of a right and a wrong reply wrongly, and is never shown to make reasoning better",
)  # fmt: skip
