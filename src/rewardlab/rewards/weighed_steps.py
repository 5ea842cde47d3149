"""Step labels from several complementary annotators, and a label of the whole reply at its end."""

from __future__ import annotations

from collections.abc import Sequence

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward, reward
from rewardlab.settings.domain import Share


@reward(over="groups")
def weighed_steps(
    groups: list[Group], run: Run, *, inner: dict[str, Reward], weights: tuple[float, ...], whole: dict[str, Reward] | None = None,
    at: Share = 0.5, hard: bool = True,
) -> Scores:  # fmt: skip
    """At the end of each step, 1 where the weighted mean of the step rewards `inner` is at least `at`, else 0.

    weights: of each of `inner`. Who says nothing of a step does not count there; a step of which nobody says anything has no label.
    whole: rewards of the whole reply, whose mean over those with a verdict makes the label of its last step: 1 above `at`, so that
    of two that contradict each other neither makes it right.
    hard=False: the means themselves are the labels.  Zhou et al. 2025, arXiv:2508.15202
    """
    if len(weights) != len(inner):
        raise RewardlabError(
            f"weighed_steps: {len(inner)} annotators ({', '.join(inner)}) need as many weights, not {len(weights)}"
        )
    said = [part(groups, run) for part in inner.values()]
    told = [part(groups, run) for part in (whole or {}).values()]
    return [
        [_label(t, [x[g][i] for x in said], weights, [x[g][i] for x in told], at, hard) for i, t in enumerate(group)]
        for g, group in enumerate(groups)
    ]


def _label(
    t: Trajectory, said: Sequence[Score], weights: Sequence[float], told: Sequence[Score], at: float, hard: bool
) -> Score:  # fmt: skip
    known = [{} if s.missing else dict(s.steps) for s in said]
    means = {}
    for end in t.steps:
        pairs = [(w, row[end]) for w, row in zip(weights, known, strict=True) if end in row and w]
        if pairs:
            means[end] = sum(w * x for w, x in pairs) / sum(w for w, _ in pairs)
    labels = {end: float(x >= at) if hard else x for end, x in means.items()}
    if told and t.steps:
        labels.pop(t.steps[-1], None)
        if values := [s.value for s in told if s.value is not None]:
            mean = sum(values) / len(values)
            labels[t.steps[-1]] = float(mean > at) if hard else mean
    return Score(steps=labels.items()) if labels else Score(None, why="nobody says anything of a step, or of the reply")
