"""What a policy of several heads earns, as the user weighs its heads."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from rewardlab.core import Group, Problem, Run, Sampling, Trajectory, measure
from rewardlab.core.domain import PositiveInt
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward


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
            # detached: each side has the same random numbers
            aside = run.detached()
            groups = _replies(problems, aside, n)
        found |= {f"{name}@{side}": _mean(reward, groups, aside) for name, reward in rewards.items()}
    own = [found[f"{name}@{name}"] for name in rewards]
    others = [found[f"{a}@{b}"] for a in rewards for b in rewards if a != b]
    numbers = {"own": sum(own) / len(own), "even": sum(found[f"{name}@even"] for name in rewards) / len(rewards)}
    control = numbers["own"] - sum(others) / len(others) if others else 0.0
    return {**numbers, "control": control, **found, "n": float(len(problems))}


def _replies(problems: Sequence[Problem], run: Run, n: int) -> list[Group]:
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = run.policy.extend([t for t in prompts for _ in range(n)], Sampling(run.max_new), run.rng("eval"))
    return [done[i : i + n] for i in range(0, len(done), n)]


def _mean(reward: Reward, groups: list[Group], run: Run) -> float:
    totals = [s.total for row in reward(groups, run) for s in row if s.total is not None]
    if not totals:
        raise RewardlabError(f"{reward} gave no verdict on any of {len(groups)} held-out problems")
    return sum(totals) / len(totals)
