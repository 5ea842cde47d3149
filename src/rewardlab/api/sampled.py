"""What is told of replies that were sampled to answer: that they were cut off, were not scored, or cannot be judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rewardlab.api.checking import need_answers
from rewardlab.core import Group, Run, Score, Scores, Task, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.util.outputs import cut_off_replies
from rewardlab.util.progress import console


class Ends(NamedTuple):
    """cut_off: of the `replies` of some rollouts, those that were cut off at the length limit."""

    cut_off: int
    replies: int


def ends(groups: Sequence[Group], run: Run, played: bool) -> Ends:
    """played: each rollout is an episode, of several replies."""
    sampled = [t for group in groups for t in group]
    found = cut_off_replies(sampled, run.policy, run.max_new) if played else None
    cut_off = sum(t.stop == "length" for t in sampled) if found is None else found
    return Ends(cut_off, sum(len(t.ends) for t in sampled) if played else len(sampled))


class Unscored(NamedTuple):
    """missing: of the `scored` replies, those on which the reward has no verdict.  why: of the first of them."""

    missing: int
    scored: int
    why: str = ""


def unscored(scores: Scores) -> Unscored:
    flat = [s for row in scores for s in row]
    missing = [s for s in flat if s.total is None]
    return Unscored(len(missing), len(flat), next((s.why for s in missing if s.why), ""))


def check_scored(reward: Any, found: Unscored, run: Run) -> None:
    """Tell that the choice is arbitrary where the reward has no verdict on any reply, as where no generated test can be run.

    Raises RewardlabError where the policy is served: without its log-probs that is what many searches choose by.
    """
    if found.missing < found.scored or not found.scored:
        return
    why = found.why or "it says nothing of why"
    told = f"{reward} has no verdict on any of {found.scored} replies, so that the choice among them is arbitrary: {why}"
    # what a served policy cannot do it says it does not have
    if not hasattr(run.policy, "evaluate"):
        raise RewardlabError(
            f"{told}. Give another reward (--reward), or the policy's own log-probs: openai:URL#NAME,tokenizer=FOLDER,ids=true"
        )
    console.print(f"warning: {told}", highlight=False, markup=False, soft_wrap=True)


def tell_undecided(task: Task) -> None:
    """Say that nothing tells which replies are right, and what would."""
    why = need_answers(task, "a verdict", instead="")
    console.print(f"note: which replies are right is not known: {why}", highlight=False, markup=False, soft_wrap=True)


def candidates_of(group: Sequence[Trajectory], scores: Sequence[Score]) -> list[dict[str, Any]]:
    """The replies that were chosen among, with their scores (null: no verdict), and those of their steps, where they have some."""
    return [
        {"reply": t.reply, "score": s.total} | ({"steps": [reward for _, reward in s.steps]} if s.steps else {})
        for t, s in zip(group, scores, strict=True)
    ]
