"""Episodes, in which an environment answers replies: whether a recipe samples them, and how many replies they have."""

from __future__ import annotations

from collections.abc import Sequence

from rewardlab.core import Environment, Part, Recipe, Run, Task, Trajectory
from rewardlab.util.outputs import cut_off_replies
from rewardlab.util.progress import console

JUDGE_PAY = ("final_state", "earned")
"""Verifiers that judge an episode by what its environment paid."""
READ_PAY = (
    *("paid", "earned", "final_state", "found_labels", "principled_turns", "strategy_rewards", "cheapness", "all_clicked"),
    *("from_file", "from_module", "from_python"),
)  # fmt: skip
"""Rewards that look at what an environment pays, and those of users, which may."""


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


def warn_of_unread_pay(episodes: Sequence[Trajectory], recipe: Recipe, task: Task) -> None:
    """Say that an environment pays, where nothing that the reward is made of looks at that."""
    parts = list(recipe.reward.walk()) if recipe.reward is not None else []
    # one of a user's own method may look at anything
    reads = any(part.name in READ_PAY or not part.function.__module__.startswith("rewardlab.") for part in _leaves(parts))
    paid = [sum(amount for _, amount in t.paid) for t in episodes]
    if not parts or reads or task.verifier in JUDGE_PAY or not any(paid):
        return
    console.print(
        f"warning: the environment pays {sum(paid) / len(paid):.3g} in an episode of step 1, and the reward {recipe.reward} does "
        'not look at that. To learn from it, give --reward "paid()", or "correct() + paid()"',
        highlight=False, soft_wrap=True, markup=False,
    )  # fmt: skip


def _leaves(parts: Sequence[Part]) -> list[Part]:
    """The parts that were written as functions; sums and products of them are none."""
    return [part for part in parts if hasattr(part, "function")]
