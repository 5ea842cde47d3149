"""Dr. GRPO: GRPO without dividing by the standard deviation or by a reply's length, since both bias the gradient.

    A_i = r_i - mean(r);     loss = -(1 / (N L)) sum_i sum_t min(ratio A, clip(ratio) A),   L a constant

With 1/|o_i|, a long wrong reply is penalised less per token than a short one, so wrong replies grow longer. With 1/std, problems
that are almost always or almost never solved get more weight.

Liu et al. 2025, arXiv:2503.20783. In the released script (sail-sg/understand-r1-zero) L is the longest reply that may be sampled,
3000 tokens, and so it is here. L scales all gradients alike: with Adam it matters only to their clipping.
"""

from collections.abc import Sequence

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Problem, Recipe, Run, measure
from rewardlab.credit.group import center
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Data
from rewardlab.evals.passk import mean_interval
from rewardlab.objectives.weighting import constant_length
from rewardlab.rollouts.independent import independent

from .grpo import grpo


@measure
def wrong_length(problems: Sequence[Problem], run: Run, *, n: int = 4, temperature: float = 1.0) -> dict[str, float]:
    """pass@1 of n samples, and the mean lengths in tokens of the wrong and of the right ones.

    Replies without a verdict count as neither; the mean of no replies is NaN.
    """
    groups = independent(n=n, temperature=temperature)(list(problems), run)
    scores = run.verify(groups, run)
    lengths = np.array([t.mask.sum() for group in groups for t in group], float)  # (N n,) tokens per reply
    values = np.array([s.value for row in scores for s in row], float)
    # a missing verdict is NaN, which fails both comparisons: the reply is neither wrong nor right
    wrong, right = values < 1, values >= 1
    low, high = mean_interval(right.reshape(len(groups), n).mean(1))
    return {
        "pass@1": float(right.mean()), "ci95_low": low, "ci95_high": high, "n": float(len(problems)),
        "wrong_length": _mean(lengths[wrong]), "right_length": _mean(lengths[right]),
    }  # fmt: skip


def _mean(x: np.ndarray) -> float:
    return float(x.mean()) if len(x) else float("nan")


def dr_grpo(base: Recipe | None = None, *, length: int = 0) -> Recipe:
    """length: the constant by which the loss of every reply is divided; 0: the longest reply that may be sampled (--max-new)."""
    base = base or grpo()
    return base.but(credit=center() >> to_go(), weighting=constant_length(length=length))


fidelity = "whole"
data = Data(answer="the gold answer")

claim = Claim(
    says="wrong replies end shorter than with GRPO after equal updates",
    versus="grpo", task="arithmetic:biased=0.75,error=0.1,redundant=0.4", measure="wrong_length", direction="lower", margin=1.0,
    settings={"length": 96}, by=wrong_length(), steps=40,
    fault=Within("wrong_length", low=39.0, says="tokens of wrong replies, 37.9 at the start: GRPO makes them longer"),
    tried="corrected=0.5, where GRPO's wrong replies keep their 32 tokens on two seeds; here they get shorter too",
    finding="undecided: wrong replies have 38 tokens before and 36 after both, so that GRPO's fault is not there: in this world "
    "it does not make wrong replies longer. Accuracy is the same too (71% and 72%, from 32%)",
    version=2,
    replaces="the small policy of its world had hardly been warmed up; tokens were the budget",
)  # fmt: skip
