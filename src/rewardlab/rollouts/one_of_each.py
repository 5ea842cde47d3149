"""One right and one wrong reply to each problem, chosen among several."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from rewardlab.core import Batch, Group, Problem, Rollout, Run, Trajectory, rollout
from rewardlab.errors import RewardlabError

PASS_RATE, JUDGED, RIGHT = "pass_rate", "judged", "right"


@rollout(inner="of")
def right_wrong_pair(problems: list[Problem], run: Run, *, of: Rollout) -> list[Group]:
    """Of each group that `of` samples a right reply and a wrong one, each chosen at random; groups that lack either are dropped.

    What was seen of the whole group stays with the problem: meta["pass_rate"], the share of right replies, and meta["judged"], how
    many have a verdict, by the task's verifier; and meta["right"], which of the two this reply is (`right_of`). If no group has
    both, all are returned, so that a step always has a batch. Logs `pass_rate`, the mean over all groups with a verdict, and
    `mixed`, the share of groups that are kept. Lyu et al. 2025, arXiv:2502.06781
    """
    if run.verify is None:
        raise RewardlabError("one_of_each needs the task's verifier, and this run has none: name a task, or leave it out")
    groups, rng, kept, rates = of(problems, run), run.rng("one_of_each"), [], []
    whole: list[Group] = []
    for group, verdicts in zip(groups, run.verdicts(groups), strict=True):
        right = [i for i, v in enumerate(verdicts) if v.value is not None and v.value >= 1]
        wrong = [i for i, v in enumerate(verdicts) if v.value is not None and v.value < 1]
        judged = len(right) + len(wrong)
        rate = len(right) / max(1, judged)
        seen = [_with(t, {PASS_RATE: rate, JUDGED: judged, RIGHT: i in right}) for i, t in enumerate(group)]
        whole.append(seen)
        rates += [rate] if judged else []
        if right and wrong:
            kept.append([seen[int(side[torch.randint(len(side), (1,), generator=rng)])] for side in (right, wrong)])
    if rates:
        run.log("pass_rate", sum(rates) / len(rates))
    run.log("mixed", len(kept) / max(1, len(groups)))
    return kept or whole


def right_of(batch: Batch) -> Tensor:
    """(B,) bool: the replies that `right_wrong_pair` found right, which is what the verifier says and not what a reply earned: one
    that is partly right is wrong. Raises RewardlabError for replies that it has not seen.
    """
    found = [t.problem.meta.get(RIGHT) for t, _ in batch.rows]
    if None in found:
        raise RewardlabError("these replies are told right from wrong by one_of_each: wrap the rollout in one_of_each(of=...)")
    return torch.tensor(found, dtype=torch.bool, device=batch.ids.device)


def _with(t: Trajectory, seen: dict[str, float | bool]) -> Trajectory:
    return replace(t, problem=replace(t.problem, meta={**t.problem.meta, **seen}))
