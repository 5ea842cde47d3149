"""Rewards of the answers in the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rewardlab import registry
from rewardlab.core import Problem, Run, Score, Trajectory, Turn
from rewardlab.core.policy import TokenCount
from rewardlab.data.drops import Drop, Fates
from rewardlab.data.files import Row
from rewardlab.data.filters import Bounds
from rewardlab.data.picture_rows import NO_COLUMN
from rewardlab.data.values import MISSING, text_of, value_of
from rewardlab.errors import RewardlabError
from rewardlab.registry.formula import reward_from
from rewardlab.rewards.reward import Reward
from rewardlab.tasks.records import problems_of
from rewardlab.tasks.row_columns import Columns
from rewardlab.util.progress import in_batches
from rewardlab.verifiers.contract import Verifier

RIGHT = "1:"
"""The bounds of a verifier's reward for a right answer."""


def own_answers(
    reward: Any, reply_column: str | None = None, bounds: str = RIGHT, *, prompt_column: str = "prompt",
    answer_column: str = "answer", verifier: str = "final_answer",
) -> Callable[[Sequence[Row]], Fates]:  # fmt: skip
    """A judge for `rewardlab.data.filter_file`: rows stay whose own reply the reward accepts.

    reply_column: the reply that is judged, such as a worked solution; None is the answer itself, which shows whether the verifier
    can read it. One that is named, and that no row has, raises RewardlabError.
    bounds: of the reward, as in `filters.Bounds`.  verifier: the one behind `correct()`. A reward that reads the policy, and not
    only its reply, raises RewardlabError.
    """
    part = reward_from(reward)
    require(part)
    # a reply is judged here by its text
    limits, columns = Bounds.read(bounds), Columns(prompt_column, answer_column, None, None, NO_COLUMN)
    run = Run(NoModel(), verify=registry.verifier(verifier))
    reply = answer_column if reply_column is None else reply_column

    def judge(rows: Sequence[Row]) -> Fates:
        if reply_column is not None:
            _check_column(rows, reply_column)
        fates: Fates = []
        named = ((f"row {i}", row) for i, row in enumerate(rows, 1))
        pairs = list(zip(rows, problems_of(named, columns), strict=True))
        for batch in in_batches("judging the answers", pairs, 64):
            read = [_written(text_of(value_of(row, reply)), problem, reply) for row, problem in batch]
            whole = [[t] for t in read if isinstance(t, Trajectory)]
            scores = iter(part(whole, run) if whole else [])
            fates += [of if isinstance(of, Drop) else _fate(next(scores)[0], limits) for of in read]
        return fates

    return judge


class NoModel:
    """In place of the policy."""

    token_count = TokenCount()
    device = "auto"
    """Where a reward model is loaded, which reads text and needs no policy."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RewardlabError("this reward asks the model, and here there is none: it must judge a reply by its text")


def require(reward: Reward) -> None:
    """Raise RewardlabError if a verifier in the reward needs a package that is not installed."""
    for part in reward.walk():
        if isinstance(part, Verifier):
            part.require()


def _check_column(rows: Sequence[Row], column: str) -> None:
    """Raise RewardlabError for a column of replies that no row has: a wrong name, and not rows without a reply."""
    if rows and all(value_of(row, column) is MISSING for row in rows):
        columns = dict.fromkeys(name for row in rows for name in row)
        raise RewardlabError(f"no row to judge has a column {column} of replies; the columns are: {', '.join(columns)}")


def _written(text: str, problem: Problem | RewardlabError, column: str) -> Trajectory | Drop:
    """The reply as one of a policy, or why there is none."""
    if isinstance(problem, RewardlabError):
        return Drop("no problem", str(problem))
    if not text:
        return Drop("no reply", f"there is no text in column {column}")
    # the first turn is the prompt, as in a rollout: what reads a conversation takes the reply from the second
    before = Turn(None, np.zeros(1, np.int64), text=problem.question)
    return Trajectory(problem, (before, Turn("policy", np.zeros(len(text), np.int64), text=text)), "end")


def _fate(score: Score, bounds: Bounds) -> Drop | None:
    if score.total is None:
        return Drop("no verdict", score.why or "the reward gave no verdict")
    refusal = bounds.refusal(score.total)
    return None if refusal is None else Drop("reward", f"reward {refusal}" + (f": {score.why}" if score.why else ""))
