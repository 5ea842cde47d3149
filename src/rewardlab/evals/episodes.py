"""Accuracy at the end of an episode, and along the way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, measure
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.rewards.reward import Reward


@measure
def episode_accuracy(problems: Sequence[Problem], run: Run, *, rollout: Rollout) -> dict[str, float]:
    """pass@1 of the episodes that `rollout` samples, one or more per problem, by the task's verifier.

    turns: the mean number of replies per episode. A rollout without a verdict counts as wrong.
    """
    if run.verify is None:
        raise RewardlabError("episode_accuracy needs the task's verifier, and this run has none: name a task")
    groups = rollout(list(problems), run)
    # averaged within a problem first: the interval is over problems, whose episodes are not independent
    right = [float(np.mean([s.value is not None and s.value >= 1.0 for s in row])) for row in run.verify(groups, run)]
    low, high = mean_interval(right)
    turns = float(np.mean([len(t.ends) for group in groups for t in group]))
    return {"pass@1": float(np.mean(right)), "ci95_low": low, "ci95_high": high, "n": float(len(right)), "turns": turns}


@measure
def right_by_the_way(problems: Sequence[Problem], run: Run, *, rollout: Rollout, way: Reward) -> dict[str, float]:
    """pass@1 of the episodes that `rollout` samples, by the task's verifier, and whether intermediate answers were right.

    the_way: share of all episodes that earn at least 1 by `way`, such as exactly the calls that were wanted.  right_by_the_way:
    share of the right episodes that do; lucky: that of those that do not, NaN where none is right. An episode without a verdict
    counts as wrong.
    """
    if run.verify is None:
        raise RewardlabError("right_by_the_way needs the task's verifier, and this run has none: name a task")
    groups = rollout(list(problems), run)
    right, well = (
        [[s.total is not None and s.total >= 1.0 for s in row] for row in judge(groups, run)] for judge in (run.verify, way)
    )
    low, high = mean_interval([float(np.mean(row)) for row in right])
    reached = [ok for row, oks in zip(well, right, strict=True) for ok, solved in zip(row, oks, strict=True) if solved]
    by_it = float(np.mean(reached)) if reached else float("nan")
    return {
        "pass@1": float(np.mean([np.mean(row) for row in right])), "ci95_low": low, "ci95_high": high, "n": float(len(right)),
        "the_way": float(np.mean([np.mean(row) for row in well])), "right_by_the_way": by_it, "lucky": 1 - by_it,
        "turns": float(np.mean([len(t.ends) for group in groups for t in group])),
    }  # fmt: skip


@measure
def planned_success(
    problems: Sequence[Problem], run: Run, *, score: Reward, sampled: Rollout, tree: Rollout, greedy: Rollout
) -> dict[str, float]:  # fmt: skip
    """best: how often the episode with the highest score of those that `sampled` gives is right by the task's verifier; beside it:

    tree: that of the episodes of a tree search.  random: any one of `sampled`.  greedy: that of `greedy`, which gives one.
    """
    if run.verify is None:
        raise RewardlabError("planned_success needs the task's verifier, and this run has none: name a task")
    (best, each), (by_tree, _), (_, alone) = (
        _chosen_and_each(plan(list(problems), run), score, run) for plan in (sampled, tree, greedy)
    )
    low, high = mean_interval(best)
    return {
        "best": float(np.mean(best)), "ci95_low": low, "ci95_high": high, "tree": float(np.mean(by_tree)),
        "random": float(np.mean(each)), "greedy": float(np.mean(alone)), "n": float(len(best)),
    }  # fmt: skip


def _chosen_and_each(groups: list[Group], score: Reward, run: Run) -> tuple[list[float], list[float]]:
    """Whether the episode with the highest score is right, problem by problem, and the mean of all of them."""
    assert run.verify is not None
    right = [[float(s.value is not None and s.value >= 1.0) for s in row] for row in run.verify(groups, run)]
    worth = [[-np.inf if s.total is None else s.total for s in row] for row in score(groups, run)]
    return [row[int(np.argmax(w))] for row, w in zip(right, worth, strict=True)], [float(np.mean(row)) for row in right]
