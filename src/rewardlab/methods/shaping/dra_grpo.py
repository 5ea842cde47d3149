"""DRA-GRPO: divide a reply's reward by its similarity to the other replies of the group.

    R_i = r_i / (1 + sum_{j != i} cos(e_i, e_j)),    e: embeddings of the replies;    then GRPO's advantage of R

The sum is the submodular mutual information of a reply and the rest of its group under the graph-cut function. Two right replies
earn the same from a verifier; here the one that goes a way of its own earns more, so that rare right ways do not die out. A group
whose replies are all right teaches too, as long as they differ.

Chen et al. 2025, arXiv:2505.09655. As in the released trainer (xiwenc1/DRA-GRPO, 90642dc, grpo_trainer.py), whose sum includes the
reply itself, a cosine of 1; there it runs over the replies that one process holds, of several problems, here over those of one
problem, as in the paper. `dr_grpo+dra_grpo` is the paper's DRA-Dr. GRPO. Rewards should not be negative: a negative one is divided
too, so that among wrong replies the usual ones would lose least. A negative sum counts as 0 (inferred). embed=NAME takes a
sentence-transformers model (the released recipe uses one of Jina's, on up to 3,584 tokens); without it, replies are compared by
their words and signs.
"""

from __future__ import annotations

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Recipe
from rewardlab.data.columns import Data
from rewardlab.evals.passk import coverage
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.operator import operator
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.text.embedding import NGRAMS, cosines

# ---- How much of a reply the other replies to the same problem say too -----------------------------------------------


@reward(over="group")
def redundancy(group: Group, *, embed: str = NGRAMS) -> list[float]:
    """The sum of a reply's cosine similarities with the other replies of its group: 0 for a unique reply, n - 1 where all n are the
    same.

    The submodular mutual information of a reply and the rest of its group under the graph-cut function, but for a constant factor.
    embed: what makes vectors of texts: "ngrams", or the name of a sentence-transformers model. A negative sum counts as 0.
    """
    table = cosines([t.reply for t in group], embed)
    # the diagonal is a reply's cosine with itself
    return [max(0.0, float(total)) for total in table.sum(1) - table.diagonal()]


# ---- the recipe ---------------------------------------------------------------------------------------------------------


@operator
def diversity_aware(reward: float, redundancy: float) -> float:
    """The reward divided by 1 + redundancy."""
    return reward / (1 + redundancy)


def dra_grpo(base: Recipe | None = None, *, embed: str = "ngrams") -> Recipe:
    """embed: what makes vectors of replies: "ngrams", or the name of a sentence-transformers model."""
    base = base or grpo()
    return base.but(reward=diversity_aware(base.reward or correct(), redundancy(embed=embed)))


fidelity = "core"
left_out = (
    "the KL of the released trainer, its six replies a prompt at a temperature of .7, its rewards for the form and for right "
    "answers by their length, and, without `embed`, its embedding model."
)

data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "What is 48 times 25?", "answer": "1200"},
        {"prompt": "Find all real $x$ with $x^2 - 6x + 9 = 0$. Put your answer in \\boxed{}.", "answer": "3"},
        {"prompt": "A bus has 40 seats, of which 5/8 are taken. How many are free?", "answer": "15"},
    ],
)

claim = Claim(
    says="more different right answers stay open than after GRPO's equal updates, at the same accuracy",
    versus="grpo", task="countdown:largest=30,habit=0.9", measure="distinct", direction="higher", margin=0.069,
    by=coverage(n=8, k=8), problems=300, steps=40, guard=Within("pass@1", low=-0.03),
    fault=Within("distinct", high=2.0, says="different right answers among 8 replies, 2.5 at the start"), start=None,
    finding="Of 8 replies 0.98 different right answers are left, with GRPO 0.91, of 1.52 at the start; right are 66% and 69%, "
    "45% at the start. Both lose most of the variety: the factor slows that down a little, and costs some accuracy.",
)  # fmt: skip
