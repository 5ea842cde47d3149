"""Replies of a policy with noise on the scales of its norms, less of it from stage to stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, Trajectory, Turn, rollout
from rewardlab.core.domain import PositiveFloat, PositiveInt
from rewardlab.errors import RewardlabError


def sigma_at(progress: float, first: float, last: float, stages: int) -> float:
    """The noise when so much of training is done, 0 to 1: none in the first of equal stages, `first` in the second, then from stage
    to stage the same share of it, down to `last` in the last stage."""
    # in floating point 0.29 * 100 is less than 29
    stage = min(stages - 1, int(progress * stages + 1e-9))
    if stage == 0:
        return 0.0
    return first * (last / first) ** ((stage - 1) / max(1, stages - 2))


@rollout(inner="of")
def parameter_noise(
    problems: list[Problem], run: Run, *, of: Rollout, first: PositiveFloat = 1e-2, last: PositiveFloat = 1e-4,
    stages: PositiveInt = 10, corrected: bool = False,
) -> list[Group]:  # fmt: skip
    """What `of` samples while N(0, sigma^2) is added to the scales by which the norms of the policy's layers multiply: in every
    step another noise, sigma by `sigma_at`. Held-out problems are answered without it.

    corrected: the recorded log-probs are those with the noise, so that importance ratios say how the replies were sampled.  False:
    those of the policy without it, as if it had sampled the replies itself. Logs sigma, and how much more log-prob the sampled
    tokens had with the noise, on average.
    """
    if not hasattr(run.policy, "noised"):
        raise RewardlabError(f"noised puts noise on the norms of a language model, and {run.policy.name!r} is none")
    sigma = 0.0 if run.held_out else sigma_at(run.progress, first, last, stages)
    run.log("sigma", sigma)
    if not sigma:
        return of(problems, run)
    with run.policy.noised(sigma, run.rng("noise")):
        groups = of(problems, run)
    # these log-probs come for free where the trainer takes its own for those of the sampler
    with run.unbilled():
        clean = run.policy.score([t for group in groups for t in group])
    rows = [t for group in groups for t in group]
    run.log("noise_gap", _gap(rows, clean, run.policy.name))
    told = iter([_as_sampled(t) if corrected else _as_without(t, own, run) for t, own in zip(rows, clean, strict=True)])
    return [[next(told) for _ in group] for group in groups]


def _gap(rows: Sequence[Trajectory], clean: Sequence[np.ndarray], name: str) -> float:
    pairs = [(t.column("logprobs")[t.mask_of(name)], own[t.mask_of(name)]) for t, own in zip(rows, clean, strict=True)]
    gaps = np.concatenate([noisy - own for noisy, own in pairs]) if pairs else np.zeros(0)
    return float(np.nanmean(gaps)) if np.isfinite(gaps).any() else 0.0


def _as_sampled(t: Trajectory) -> Trajectory:
    # no step's weights alone sampled this: in low precision the trainer would put its own log-probs in place of the recorded ones
    return replace(t, turns=tuple(turn if turn.author is None else replace(turn, step=-1) for turn in t.turns))


def _as_without(t: Trajectory, clean: np.ndarray, run: Run) -> Trajectory:
    """With the log-probs of this step's own decisions by the policy without noise."""
    turns: list[Turn] = []
    start = 0
    for turn in t.turns:
        end = start + len(turn.ids)
        ours: Any = turn.author == run.policy.name and turn.logprobs is not None and turn.step == run.policy.step
        turns.append(replace(turn, logprobs=clean[start:end].astype(np.float32)) if ours else turn)
        start = end
    return replace(t, turns=tuple(turns))
