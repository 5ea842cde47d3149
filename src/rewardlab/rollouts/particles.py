"""Particle filtering: partial replies, resampled in proportion to their estimated chance of being right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch

from rewardlab.core import Group, Problem, Run, rollout
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.stepwise import UNSURE, Scored, Stepping, grown, marked, softmax, started, worths
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt

NEAREST = 1e-7
"""How near to 0 and 1 a chance may be: log-odds beyond are those of this."""


@rollout
def particles(
    problems: list[Problem], run: Run, *, score: Reward, n: PositiveInt = 8, weight: Literal["log-odds", "score"] = "log-odds",
    resampling: Literal["multinomial", "systematic"] = "multinomial", temperature: NonNegativeFloat = 1.0,
    step_tokens: PositiveInt | None = None, stop: tuple[str, ...] = ("\n",),
) -> list[Group]:  # fmt: skip
    """n replies to each problem, resampled after every step with probabilities softmax(log weights), until all have ended.

    Rows that have ended are resampled with the others, and not extended. weight: the log weight of a row is the log-odds of its
    score, which must be a chance from 0 to 1, or the score itself. resampling: n independent choices, or one choice of n evenly
    spaced places, which adds less noise. step_tokens: most tokens of a step (None: of a reply).  stop: the texts that end a step.

    Puri et al. 2025, arXiv:2502.01618, whose choices are independent
    """
    how, rng = Stepping(step_tokens, temperature, tuple(stop)), run.rng("resampling")
    clouds: list[list[Scored]] = [[(0.0, t)] * n for t in started(problems, run)]
    while live := [i for i, cloud in enumerate(clouds) if any(t.stop is None for _, t in cloud)]:
        # the number of a particle's place keeps rows apart that were the same until now
        places = [(i, k, clouds[i][k][1]) for i in live for k in range(n) if clouds[i][k][1].stop is None]
        longer = grown([t for _, _, t in places], [k for _, k, _ in places], how, run)
        new: list[Group] = [[] for _ in live]
        for (i, _, _), t in zip(places, longer, strict=True):
            new[live.index(i)].append(t)
        values = worths(new, score, run)
        for i, rows, known in zip(live, new, values, strict=True):
            logs = [_log_weight(value, weight) for value in known]
            cloud = [scored for scored in clouds[i] if scored[1].stop is not None] + list(zip(logs, rows, strict=True))
            # the last rows to end have nothing to give way to
            over = all(t.stop is not None for _, t in cloud)
            clouds[i] = cloud if over else [cloud[k] for k in chosen([w for w, _ in cloud], resampling, rng)]
    return [marked([t for _, t in cloud], run) for cloud in clouds]


def chosen(log_weights: Sequence[float], resampling: str, rng: torch.Generator) -> list[int]:
    """As many places as there are weights, in order: place i about n softmax(log weights)_i times."""
    n = len(log_weights)
    ends = torch.tensor(softmax(log_weights), dtype=torch.float64).cumsum(0)
    if resampling == "systematic":
        points = (torch.arange(n, dtype=torch.float64) + torch.rand(1, generator=rng, dtype=torch.float64)) / n
    else:
        points = torch.rand(n, generator=rng, dtype=torch.float64).sort().values
    # the last end may lie a hair below 1
    return torch.searchsorted(ends, points * ends[-1], right=True).clamp(max=n - 1).tolist()


def _log_weight(value: float, weight: str) -> float:
    if weight == "score" or value == UNSURE:
        return value
    if not 0 <= value <= 1:
        raise RewardlabError(
            f"the log-odds of a score need a chance from 0 to 1, and a row has the score {value:g}: use another score, or the "
            "setting weight=score"
        )
    chance = min(max(value, NEAREST), 1 - NEAREST)
    return math.log(chance) - math.log1p(-chance)
