"""The expected number of successes among k continuations of each step, by a value model, as the score of a whole reply."""

from __future__ import annotations

import math
from typing import Literal

from rewardlab.core import Group, Run, Score, Scores
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.splitters import mark
from rewardlab.util.outputs import values


def chance_of_count(p: float, k: int, least: int) -> float:
    """The chance that at least so many of k are right, where each is with probability p, independently."""
    return math.fsum(math.comb(k, y) * p**y * (1 - p) ** (k - y) for y in range(least, k + 1))


@reward(over="groups")
def counted_steps(
    groups: list[Group], run: Run, *, model: str = "prm", k: PositiveInt = 3, least: PositiveInt = 1,
    form: Literal["product", "min"] = "product", splitter: Literal["newline", "paragraph", "tag", "sentence"] = "newline",
) -> Scores:  # fmt: skip
    """Product (or minimum) over a reply's steps of the chance that at least `least` of k continuations are right.

    model: a value model whose value at the end of a step is the log-odds that a continuation is right (`label_cross_entropy` on the
    shares of `monte_carlo_steps`, which is the likelihood of their counts). With k = 1 the chance of a step is that of the model.
    Steps end where the splitter says, unless the rollout has marked them.

    Jiao et al. 2024, arXiv:2402.00658
    """
    if least > k:
        raise RewardlabError(f"counted_steps: of k={k} continuations, {least} are never right: lower `least`")
    policy = run.policy
    rows = [t if t.steps else mark(t, splitter, policy.pieces, policy.name) for group in groups for t in group]
    found = iter(values(run.model(model), rows))
    # a tanh does not overflow
    chances = [[(1 + math.tanh(v[at] / 2)) / 2 for at in t.steps] for t, v in zip(rows, found, strict=True)]
    over = math.prod if form == "product" else min
    scores = iter([Score(over([chance_of_count(p, k, least) for p in row])) for row in chances])
    return [[next(scores) for _ in group] for group in groups]
