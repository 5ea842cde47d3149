"""Episodes, in which an environment answers replies: whether a recipe samples them, and how many replies they have."""

from __future__ import annotations

from collections.abc import Sequence

from rewardlab.core import Environment, Recipe, Run, Trajectory
from rewardlab.util.outputs import cut_off_replies


def environment_of(recipe: Recipe | None) -> Environment | None:
    """What answers the replies that a recipe samples."""
    parts = recipe.rollout.walk() if recipe is not None and recipe.rollout is not None else ()
    return next((part for part in parts if isinstance(part, Environment)), None)


def turns_of(episodes: Sequence[Trajectory], run: Run) -> dict[str, float]:
    """turns: replies per episode.  turns_cut_off: of these replies, the share at the length limit, where a policy's text tells.

    out_of_turns, out_of_context: the share of episodes that were stopped since no turn was left, or the context was full.
    """
    replies = sum(len(t.ends) for t in episodes)
    if not replies:
        return {}
    cut = cut_off_replies(episodes, run.policy, run.max_new)
    ends = [t.stop for t in episodes]
    stopped = {f"out_of_{why}": ends.count(why) / len(ends) for why in ("turns", "context")}
    return {"turns": replies / len(ends), **stopped} | ({} if cut is None else {"turns_cut_off": cut / replies})
