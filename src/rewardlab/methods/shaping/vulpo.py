"""VULPO: finding a flaw is paid in three parts, and the more the seldomer its label, and its sample, are judged rightly.

    r = f_label f_sample [right] (1 + w_lines F1(lines) + w_why relevance)
    f_label = clip((1 - a_l) / mean over labels of (1 - a), 1/2, 2);    f_sample = 1 + (1 - p)

a_l: running accuracy on samples with this label;  p: share of the group that is right. Most code is sound: who calls all of it
sound is right more often than who looks, and paid for being right alone a policy learns that. The label that is missed pays more,
until it is missed no more often than the other; and hard samples are not drowned by easy ones.

Li et al. 2025, arXiv:2511.11896: verdict, localisation and judged analysis, with factors of label and sample, are the paper's. Its
formulas were not at hand: all of those above are (inferred), as is that lines and analysis count behind a right verdict alone.
GRPO without a KL term. The analysis is compared with the column `analysis` by words, or by `judge`. Left out: ContextVul, its data
with context from repositories, and the fine-tuning before.

Data: prompts with code and its context, answers that are labels ("vulnerable", "safe"), `lines`: the wrong ones, a list, and
`analysis`: what is wrong, in words. Replies end with "Lines: 3, 7-9" or "Lines: none", and "Answer: LABEL". judge="mine.py:sound".
"""

from typing import Any

from rewardlab.core import Recipe
from rewardlab.evals.pairs import reward_gap
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.another_answer import with_answer
from rewardlab.rewards.harder import difficulty_weighting
from rewardlab.rewards.lines import located_lines
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.verifiers.text import token_f1


def finding(lines: float = 0.5, why: float = 0.5, judge: Reward | None = None, verdict: Any = None) -> Reward:
    """The three parts of a reply, the last two behind the first."""
    relevant = judge or with_answer(of=token_f1(), column="analysis")
    return (verdict or correct()) * (1 + lines * located_lines() + why * relevant)


def vulpo(
    base: Recipe | None = None, *, lines: float = 0.5, why: float = 0.5, judge: Reward | None = None, momentum: float = 0.1,
    lowest: float = 0.5, highest: float = 2.0, sample: float = 1.0, n: int = 8,
) -> Recipe:  # fmt: skip
    """lines, why: weights of the lines and of the analysis.  judge: what rates the analysis from 0 to 1; None: likeness to the
    column `analysis`.  momentum: of the running accuracy.  lowest, highest: bounds of the label's factor.  sample: how much
    more a sample pays that nobody gets right."""
    base = base or grpo(n=n)
    paid = finding(lines, why, judge, base.reward)
    return base.but(reward=difficulty_weighting(of=paid, momentum=momentum, lowest=lowest, highest=highest, sample=sample))


# momentum 1: the accuracies are those of the replies at hand, not of what an untrained policy wrote in its one step
SCALED = difficulty_weighting(of=finding(), momentum=1.0).named("scaled")
UNSCALED = aggregate(finding()).named("unscaled")
# by construction: both kinds of reply are written so that the rival orders them wrongly
claim = Claim(
    says="scaled by how hard label and sample are, a careful reader earns more than one who calls everything sound; unscaled, less",
    versus=None, task="flaws:test_size=4000", measure="gap.scaled", direction="higher", margin=0.2, against="gap.unscaled",
    model="untrained", by=own_share(of=reward_gap(reward=SCALED + UNSCALED + 0.0 * correct())), problems=4000, steps=1,
    guard=Within("gap.scaled", low=0.0, says="scaled: careful less lazy, in standard deviations"),
    fault=Within("gap.unscaled", high=0.0, says="unscaled: careful less lazy, in standard deviations"), learns=None, start=None,
    sanity=True,
)  # fmt: skip
baseline = "grpo"
