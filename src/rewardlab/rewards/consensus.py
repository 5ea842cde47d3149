"""Step labels of the replies on which several annotators agree where the first error is."""

from __future__ import annotations

from collections.abc import Sequence

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.monte_carlo import rows_in_steps
from rewardlab.rewards.reward import Reward, reward
from rewardlab.settings.domain import Share

KEPT = "consensus_kept"
"""The metric in which the share of replies that keep their labels is logged."""


@reward(over="groups")
def consensus_steps(groups: list[Group], run: Run, *, inner: tuple[Reward, ...], at: Share = 0.0, hard: bool = True) -> Scores:
    """1 at the end of each step before the first wrong one, 0 at that one, and none after it, where all annotators agree which it
    is, or that there is none.

    inner: rewards of steps, such as `monte_carlo_steps` and `judged_steps`; one alone keeps all that it has labels for.  at: a step
    is wrong where an annotator pays it so much or less; 0 with shares of right continuations: where none is right.  hard=False:
    the labels are what the first annotator pays.
    No verdict, so that the reply teaches nothing, where they disagree, and where one is silent on a step before the first that it
    calls wrong: the error may be there. The share of replies with labels is logged as `consensus_kept`.
    Zhang et al. 2025, arXiv:2501.07301 (Qwen2.5-Math-PRM)
    """
    if not inner:
        raise RewardlabError("consensus_steps needs annotators: inner=(monte_carlo_steps(n=8), judged_steps(...))")
    rows_in_steps(groups, "consensus_steps")
    found = agreed(groups, [part(groups, run) for part in inner], at, hard)
    kept = [not score.missing for row in found for score in row]
    run.log(KEPT, sum(kept) / len(kept) if kept else 0.0)
    return found


def agreed(groups: list[Group], said: Sequence[Scores], at: float = 0.0, hard: bool = True) -> Scores:
    """The same from what each annotator has said."""
    return [
        [_agreed(t, [scores[g][i] for scores in said], at, hard) for i, t in enumerate(group)] for g, group in enumerate(groups)
    ]


def first_error(t: Trajectory, said: Score, at: float) -> int | None:
    """The index of the first step that is paid at most `at`, the number of steps if there is none; None if a step before it is
    not judged."""
    paid = {} if said.missing else dict(said.steps)
    for k, end in enumerate(t.steps):
        if end not in paid:
            return None
        if paid[end] <= at:
            return k
    return len(t.steps)


def _agreed(t: Trajectory, said: Sequence[Score], at: float, hard: bool) -> Score:
    places = [first_error(t, score, at) for score in said]
    unsure = [f"annotator {k} of {len(said)}" for k, place in enumerate(places, 1) if place is None]
    if unsure:
        reasons = "; ".join(dict.fromkeys(s.why for s, place in zip(said, places, strict=True) if place is None and s.why))
        return Score(
            None, why=f"{' and '.join(unsure)} does not say where the first error is" + (f": {reasons}" if reasons else "")
        )
    if len(set(places)) > 1:
        told = ("none" if place == len(t.steps) else f"step {(place or 0) + 1}" for place in places)
        return Score(None, why=f"the annotators disagree on the first wrong step: {', '.join(told)}")
    upto = t.steps[: (places[0] or 0) + 1]
    paid = dict(said[0].steps)
    return Score(steps=[(end, float(paid[end] > at) if hard else paid[end]) for end in upto])
