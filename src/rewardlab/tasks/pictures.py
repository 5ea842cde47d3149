"""Problems whose prompts show pictures: which message shows which, and what cannot be shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rewardlab.core import Message, Problem, Task
from rewardlab.data.conversations import MARK
from rewardlab.data.picture_rows import NAME, NO_COLUMN, placed
from rewardlab.errors import RewardlabError

from .sources import Listed


def seeing(prompt: Sequence[Message], pictures: Sequence[Any], place: str) -> tuple[Message, ...]:
    """The prompt with a row's pictures: each message shows as many as its text has marks <image>, which stay there.

    Without any mark the last message of the user shows all of them. Raises RewardlabError for another number of marks.
    """
    if not pictures:
        return tuple(prompt)
    counts = placed([m.text for m in prompt], [m.role for m in prompt], len(pictures), place)
    ends = [sum(counts[: i + 1]) for i in range(len(counts))]
    return tuple(replace(m, images=tuple(pictures[end - n : end])) for m, n, end in zip(prompt, counts, ends, strict=True))


def check_replies(pictures: Sequence[Any], replies: Iterable[Any], place: str) -> None:
    """Raise RewardlabError where what the user says after the first reply shows a picture: only prompts do.

    replies: texts, or lists in which replies and the user's messages take turns.
    """
    said = [text for of in replies if isinstance(of, list) for text in of[1::2]]
    if pictures and any(MARK in text for text in said):
        raise RewardlabError(
            f"{place}: a picture is shown after the first reply, and pictures are read in prompts alone: give the conversation up "
            "to its last question as the prompt, and the reply to it in a column of its own"
        )


def check_named(column: str | None, problems: Sequence[Problem]) -> None:
    """Raise RewardlabError where a column of pictures is named, and no row has any picture."""
    if column is not None and column != NO_COLUMN and not any(map(shows_pictures, problems)):
        raise RewardlabError(f"no row has a picture in the column {column!r}, which {NAME} names")


def shows_any(task: Task) -> bool:
    """Whether a problem of rows shows a picture, whose file may change while the rows stay as they are."""
    return isinstance(task.train, Listed) and any(map(shows_pictures, (*task.train.problems, *task.test)))


def shows_pictures(problem: Problem) -> bool:
    return any(m.images for m in problem.prompt)
