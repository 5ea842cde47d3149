"""GDPO: normalise each of several rewards within the group before adding them, instead of normalising their sum.

    A_k = (r_k - mean_group r_k) / (std_group r_k + eps);    A = sum_k w_k A_k, whitened over the replies of the batch

GRPO normalises the sum, in which (right, badly formed) and (wrong, well formed) are the same number, so they get the same
advantage although they should not.

Liu et al. 2026, arXiv:2601.05242. Mean and deviation of the last step are over replies, as the paper writes and the code for TRL
has it (NVlabs/GDPO, 2652ab4, README.md); that for verl takes them over tokens, which gives long replies more weight. Conditioning
an easy reward on a hard one, the paper's other proposal, is a gate in the reward: `correct() >> format_ok(...)`. `decoupled=False`
leaves GRPO on the sum of the same rewards. The form asked for is thinking between tags, as in the paper's two quick tasks.
"""

from rewardlab.checks.claim import Claim
from rewardlab.core import Recipe
from rewardlab.credit.group import center, scale_by_std, whiten_events
from rewardlab.credit.terms import each_term
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Data
from rewardlab.evals.term_means import term_means
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.format import format_ok
from rewardlab.rewards.task import correct

THINKS = r"<think>.+</think>.+"  # a thought between tags, and something after it
ADD_FIRST = r"\d+\+.+"  # for the claim: the expression begins with an addition


def gdpo(base: Recipe | None = None, *, form: str = THINKS, weight: float = 1.0, decoupled: bool = True) -> Recipe:
    """form: a regular expression that replies should match, the second reward.  weight: of that reward.

    The reward of a base stays; the reward for `form` is added to it.
    """
    base = base or grpo()
    total = (base.reward or correct()) + weight * format_ok(pattern=form)
    if not decoupled:
        return base.but(reward=total)
    # whitened over events and only then spread over tokens, so that long replies do not weigh more in the statistics
    return base.but(reward=total, credit=each_term(chain=center() >> scale_by_std()) >> whiten_events() >> to_go())


fidelity = "whole"
data = Data(
    answer="the gold answer",
    rows=[
        {
            "prompt": "A train covers 180 km in 3 hours. Think between <think> and </think>. What is its speed in km/h?",
            "answer": "60",
        },
        {"prompt": "What is $\\frac{1}{2} + \\frac{1}{4}$? Put the answer in \\boxed{}.", "answer": "\\frac{3}{4}"},
    ],
)
claim = Claim(
    says="more replies are both right and of the wanted form than with GRPO on the sum after equal updates",
    versus="gdpo", task="countdown:largest=30,habit=0.9", measure="all", direction="higher", margin=0.02,
    settings={"form": ADD_FIRST}, versus_settings={"form": ADD_FIRST, "decoupled": False},
    by=term_means(reward=correct() + format_ok(pattern=ADD_FIRST)), steps=40, learns="all", start=None,
    finding="replies that are right and in form: 31% at the start, 48% at the end on both sides. The form is learnt fully with "
    "either, so that nothing is left in which two rewards could get in each other's way",
    version=2, replaces="tokens were the budget, and the form was learnt fully on both sides",
)  # fmt: skip
baseline = "grpo"
