"""Length of right and of wrong replies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Rollout, Run, Trajectory, measure
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.util.outputs import entropies


@measure
def length_of_right(problems: Sequence[Problem], run: Run, *, rollout: Rollout) -> dict[str, float]:
    """pass@1 of the samples of `rollout`, and the mean length of the right ones.

    right_length: sampled tokens.  log_right_length: its natural logarithm, so that the difference between two runs is a log ratio.
    right_calls: replies before the last one, each of which an environment answered.  All three are NaN if no reply is right. A
    rollout without a verdict counts as wrong.
    """
    judged = _judged(problems, run, rollout, "length_of_right")
    solved = [t for row in judged for t, ok in row if ok]
    shares = [float(np.mean([bool(ok) for _, ok in row])) for row in judged]
    low, high = mean_interval(shares)
    length = _mean_length(solved)
    calls = float(np.mean([len(t.ends) - 1 for t in solved])) if solved else math.nan
    return {
        "pass@1": float(np.mean(shares)), "ci95_low": low, "ci95_high": high, "n": float(len(shares)),
        "right_length": length, "log_right_length": math.log(length), "right_calls": calls,
    }  # fmt: skip


@measure
def length_by_verdict(problems: Sequence[Problem], run: Run, *, rollout: Rollout) -> dict[str, float]:
    """pass@1 of the samples of `rollout`, and the mean lengths of the right and of the wrong ones.

    right_length, wrong_length: sampled tokens.  log_wrong_to_right: the logarithm of their ratio, above 0 where a policy writes
    more before a wrong answer than before a right one. NaN where there are none of a kind. A rollout without a verdict counts as
    wrong for pass@1 alone.
    """
    judged = _judged(problems, run, rollout, "length_by_verdict")
    shares = [float(np.mean([bool(ok) for _, ok in row])) for row in judged]
    low, high = mean_interval(shares)
    right, wrong = (_mean_length([t for row in judged for t, ok in row if ok is kind]) for kind in (True, False))
    return {
        "pass@1": float(np.mean(shares)), "ci95_low": low, "ci95_high": high, "n": float(len(shares)),
        "right_length": right, "wrong_length": wrong, "log_wrong_to_right": math.log(wrong / right),
    }  # fmt: skip


@measure
def entropy_of_right(problems: Sequence[Problem], run: Run, *, rollout: Rollout) -> dict[str, float]:
    """pass@1 of the samples of `rollout`, and length, entropy and their correlation among the right ones.

    right_length, log_right_length: as of `length_of_right`.  right_entropy: nats per decision, of the policy's whole distribution.
    entropy_to_length: the correlation of a trajectory's mean entropy with its length, both less their means over the right ones of
    the problem; NaN where no problem has two right ones that differ. `rollout` samples several to a problem.
    """
    judged = _judged(problems, run, rollout, "entropy_of_right")
    groups = [[t for t, ok in row if ok and t.mask.any()] for row in judged]
    shares = [float(np.mean([bool(ok) for _, ok in row])) for row in judged]
    low, high = mean_interval(shares)
    solved = [t for group in groups for t in group]
    entropy = iter([float(h[t.mask].mean()) for t, h in zip(solved, entropies(run.policy, solved), strict=True)])
    pairs = [np.array([(next(entropy), float(t.mask.sum())) for t in group]) for group in groups if group]
    length = _mean_length(solved)
    return {
        "pass@1": float(np.mean(shares)), "ci95_low": low, "ci95_high": high, "n": float(len(shares)),
        "right_length": length, "log_right_length": math.log(length),
        "right_entropy": float(np.concatenate(pairs)[:, 0].mean()) if pairs else math.nan,
        "entropy_to_length": _correlation([pair - pair.mean(0) for pair in pairs]),
    }  # fmt: skip


def _correlation(pairs: Sequence[np.ndarray]) -> float:
    """Of the two columns of arrays (n, 2), taken together; NaN where one of them never varies."""
    table = np.concatenate(pairs) if pairs else np.zeros((1, 2))
    spread = np.sqrt((table**2).sum(0))
    return float((table[:, 0] * table[:, 1]).sum() / spread.prod()) if (spread > 1e-12).all() else math.nan


def _judged(problems: Sequence[Problem], run: Run, rollout: Rollout, who: str) -> list[list[tuple[Trajectory, bool | None]]]:
    """Every rollout, with whether it is right; None without a verdict."""
    if run.verify is None:
        raise RewardlabError(f"{who} needs the task's verifier, and this run has none: name a task")
    groups = rollout(list(problems), run)
    right = [[None if s.value is None else s.value >= 1.0 for s in row] for row in run.verify(groups, run)]
    return [list(zip(group, row, strict=True)) for group, row in zip(groups, right, strict=True)]


def _mean_length(trajectories: Sequence[Trajectory]) -> float:
    """Sampled tokens. NaN, not 0, of none: 0 would look like a very short one."""
    return float(np.mean([t.mask.sum() for t in trajectories])) if trajectories else math.nan
