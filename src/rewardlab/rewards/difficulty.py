"""How difficult prompts are for a policy: how far its replies are from a demonstration, in words and in reward."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.rewards.reward import Reward, reward
from rewardlab.text.embedding import embedded


@reward(over="groups")
def difficulty(groups: list[Group], run: Run, *, of: Reward, field: str = "solution", embed: str = "ngrams") -> Scores:
    """A weight of each prompt, for all of its replies, near 1 on average:  h / mean h * sigmoid(g) / mean sigmoid(g)

    h: 1 - the mean cosine of the replies and the demonstration in the column `field`, by `embed`.  g: by how much the reward `of`
    pays the demonstration more than the replies.  Means are over the prompts of the step; a prompt without a demonstration or a
    verdict weighs 1.  Cheng et al. 2025, arXiv:2503.18991 (the formula is inferred)
    """
    own = [g for g, group in enumerate(groups) if group and isinstance(group[0].problem.meta.get(field), str)]
    problems = [groups[g][0].problem for g in own]
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems]) if own else []
    demos = [[t] for t in run.policy.write(prompts, [p.meta[field] for p in problems])] if own else []
    known: dict[int, tuple[float, float]] = {}
    for g, (shown,), row in zip(own, of(demos, run), of([groups[g] for g in own], run), strict=True):
        paid = [s.total for s in row if s.total is not None]
        if shown.total is not None and paid:
            texts = embedded([groups[g][0].problem.meta[field], *(t.reply for t in groups[g])], embed)
            known[g] = 1 - float((texts[1:] @ texts[0]).mean()), shown.total - float(np.mean(paid))
    weights = dict(zip(known, weights_of(list(known.values())), strict=True))
    return [[Score(weights.get(g, 1.0))] * len(group) for g, group in enumerate(groups)]


def weights_of(numbers: Sequence[tuple[float, float]]) -> list[float]:
    """The weight of each prompt, by its h and its g; where no h is above 0, g alone decides."""
    if not numbers:
        return []
    hardness, gap = np.array(numbers, float).T
    # a tanh does not overflow where exp(-g) would
    response = (1 + np.tanh(gap / 2)) / 2
    parts = [x / x.mean() if x.mean() > 0 else np.ones_like(x) for x in (np.maximum(hardness, 0), response)]
    return [float(w) for w in parts[0] * parts[1]]
