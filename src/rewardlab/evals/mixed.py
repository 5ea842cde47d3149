"""What a policy of several heads earns, as the user weighs its heads."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from rewardlab.core import Problem, Run, measure
from rewardlab.core.domain import PositiveInt
from rewardlab.rewards.reward import Reward

from .rewards import mean_reward


@measure
def rewards_by_head(
    problems: Sequence[Problem], run: Run, *, rewards: dict[str, Reward], heads: str = "heads", n: PositiveInt = 1
) -> dict[str, float]:
    """X@Y: the mean of the reward X where the head Y alone decides; X@even: where all heads weigh the same.

    own: the mean over the objectives of X@X, what users get who want one of them.  even: that of X@even.  control: how much X@X is
    above X under the other heads, on average.  A run without heads has one for all: its policy's.
    """
    model = run.models.get(heads)
    sides = {name: {name: 1.0} for name in rewards} | {"even": dict.fromkeys(rewards, 1.0)}
    found: dict[str, float] = {}
    for side, weights in sides.items():
        with model.deciding(run.policy, weights) if model is not None else nullcontext():
            for name, reward in rewards.items():
                # detached: the same random numbers for each reward, and so the same replies
                found[f"{name}@{side}"] = mean_reward(reward=reward, n=n)(problems, run.detached())["reward"]
    own = [found[f"{name}@{name}"] for name in rewards]
    others = [found[f"{a}@{b}"] for a in rewards for b in rewards if a != b]
    numbers = {"own": sum(own) / len(own), "even": sum(found[f"{name}@even"] for name in rewards) / len(rewards)}
    control = numbers["own"] - sum(others) / len(others) if others else 0.0
    return {**numbers, "control": control, **found, "n": float(len(problems))}
