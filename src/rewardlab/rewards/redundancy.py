"""How much of a reply the other replies to the same problem say too."""

from __future__ import annotations

from rewardlab.core import Group
from rewardlab.rewards.reward import reward
from rewardlab.text.embedding import NGRAMS, cosines


@reward(over="group")
def redundancy(group: Group, *, embed: str = NGRAMS) -> list[float]:
    """The sum of a reply's cosines with the other replies of its group: 0 where it has nothing in common with them, n - 1 where
    all n are the same.

    The submodular mutual information of a reply and the rest of its group under the graph-cut function, but for a constant factor.
    embed: what makes vectors of texts: "ngrams", or the name of a sentence-transformers model. A negative sum counts as 0.
    """
    table = cosines([t.reply for t in group], embed)
    # the diagonal is a reply's cosine with itself
    return [max(0.0, float(total)) for total in table.sum(1) - table.diagonal()]
