"""Replies whose steps a small model drafts, and the policy writes where a reward does not like the draft."""

from __future__ import annotations

from typing import Literal

import torch

from rewardlab.core import Group, Problem, Run, Trajectory, rollout
from rewardlab.core.domain import NonNegativeFloat, PositiveInt
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.stepwise import UNSURE, Stepping, grown, marked, read_alike, started, worths

Rule = Literal["threshold", "clipped", "constant"]


@rollout
def speculative_steps(
    problems: list[Problem], run: Run, *, score: Reward, draft: str = "draft",
    rule: Literal["threshold", "clipped", "constant"] = "threshold", threshold: float = 0.7, n: PositiveInt = 1,
    temperature: NonNegativeFloat = 0.0, step_tokens: PositiveInt | None = None, stop: tuple[str, ...] = ("\n\n",),
) -> list[Group]:  # fmt: skip
    """n replies to each problem. Each step is drafted by the model `draft`; the policy writes it anew if the draft is refused.

    rule: a draft is accepted where its score reaches the threshold; with the chance min(1, max(0, score)) (clipped); or with the
    chance `threshold`, whatever it scores (constant). A draft without a verdict is refused. step_tokens: most tokens of a step
    (None: of a reply).  stop: the texts that end a step.  Logged: drafted, the share of steps that are drafts.

    Liao et al. 2025, arXiv:2501.19324
    """
    if rule == "constant" and not 0 <= threshold <= 1:
        raise RewardlabError(f"rule=constant accepts with the chance `threshold`, from 0 to 1, not {threshold:g}")
    read_alike(run, (draft,))
    how, rng = Stepping(step_tokens, temperature, tuple(stop)), run.rng("accept")
    groups: list[Group] = [[t] * n for t in started(problems, run)]
    kept = steps = 0
    while open_ := [(g, k) for g, rows in enumerate(groups) for k, t in enumerate(rows) if t.stop is None]:
        begun = [groups[g][k] for g, k in open_]
        # of even number, as what the policy writes instead is of odd: siblings that differ
        drafts = grown(begun, [2 * k for _, k in open_], how, run, draft)
        chances = _chances(drafts, score, rule, threshold, run)
        luck = torch.rand(len(drafts), generator=rng).tolist()
        refused = [i for i, (chance, u) in enumerate(zip(chances, luck, strict=True)) if not u < chance]
        written = grown([begun[i] for i in refused], [2 * open_[i][1] + 1 for i in refused], how, run) if refused else []
        instead = dict(zip(refused, written, strict=True))
        for i, (g, k) in enumerate(open_):
            groups[g][k] = instead.get(i, drafts[i])
        kept, steps = kept + len(drafts) - len(refused), steps + len(drafts)
    run.log("drafted", kept / max(1, steps))
    return [marked(rows, run) for rows in groups]


def _chances(drafts: list[Trajectory], score: Reward, rule: Rule, threshold: float, run: Run) -> list[float]:
    """Of being accepted, for each draft."""
    if rule == "constant":
        return [threshold] * len(drafts)
    # each is a group of its own: drafts of different replies are not compared
    known = [value for (value,) in worths([[t] for t in drafts], score, run)]
    if rule == "threshold":
        return [float(value >= threshold) for value in known]
    return [0.0 if value == UNSURE else min(1.0, max(0.0, value)) for value in known]
