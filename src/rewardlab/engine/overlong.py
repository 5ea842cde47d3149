"""Rows too long for a model that reads them in a training step: left out and counted, so that no run ends at one of them.

Most are found before training (`api/prompt_lengths.py`, `api/written_lengths.py`). What is left is known only then: a question
about a text that a model has just written, another order of replies, a text that a method makes itself.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from rewardlab.core import Group, Problem, Rollout, Run, Scores
from rewardlab.engine.distributed import is_rank_zero, world_size
from rewardlab.errors import NothingKept, RewardlabError, TooLong
from rewardlab.util.progress import console

LOGGED = "overlong"
"""The metric that counts the rows which a step leaves out."""
SKIPPED = "engine.skipped"
"""The key of `run.memory` with the number of steps in a row in which no row fits."""
PATIENCE = 10
"""So many steps in a row may be left out; then nothing is learnt from, and the run ends."""


class NothingFits(TooLong):
    """Not one row of a step can be read."""


def fitting(part: Rollout, problems: list[Problem], run: Run, context: int) -> tuple[list[Group], int]:
    """The groups of a rollout without those too long to be read, and how many problems and groups are left out for it.

    Where a text is refused, each problem is tried alone, and the rollout is made anew with the others.
    context: the most tokens of a trajectory that whoever learns from it can read.
    """
    # a rollout that compares problems may keep a memory of them, in which an attempt leaves nothing
    before = copy.deepcopy(run.memory) if part.across_problems else None
    try:
        groups, out = part(problems, run), 0
    except TooLong:
        kept = [p for p in problems if _anew(part, [p], run, before) is not None]
        out = len(problems) - len(kept)
        groups = _anew(part, kept, run, before) if kept else []
        if groups is None:
            # what is sampled anew may be longer than the attempt
            each = [_anew(part, [p], run, before) for p in kept]
            groups, out = [g for found in each for g in found or []], out + sum(found is None for found in each)
    short = [group for group in groups if all(len(t) <= context for t in group)]
    return short, out + len(groups) - len(short)


Left = tuple[int, NothingKept | None]
"""What a process leaves out of a rollout: how many problems and groups are too long, and why it found nothing to learn from."""


def shared_out(part: Rollout, problems: list[Problem], run: Run, context: int) -> tuple[list[Group], Left]:
    """`fitting` for this process's share of the problems. Where there is nothing to learn from, there may be in another's."""
    try:
        groups, out = fitting(part, problems, run, context)
    except NothingKept as error:
        if world_size() == 1:
            raise
        return [], (0, error)
    return groups, (out, None)


def note_left(left: Sequence[Left], groups: Sequence[Group], problems: Sequence[Problem], run: Run) -> None:
    """Count what all processes left out. Raises where no group is left: why the first of them has none."""
    note(run, out := sum(n for n, _ in left))
    if out and not groups:
        raise NothingFits(f"{problems[0].question[:80]!r}, for one, is too long with what is written in its row")
    if not groups and (why := next((error for _, error in left if error), None)):
        raise why


def _anew(part: Rollout, problems: list[Problem], run: Run, memory: dict[str, Any] | None) -> list[Group] | None:
    """The groups of these problems, with this memory before; None where a text among them is too long."""
    if memory is not None:
        run.memory.clear()
        run.memory.update(copy.deepcopy(memory))
    try:
        return part(problems, run)
    except TooLong:
        return None


def scored(part: Callable[[list[Group], Run], Scores], groups: list[Group], run: Run) -> tuple[Scores, list[int]]:
    """The scores of the groups that the models which judge them can read, and the places of those that they cannot."""
    try:
        return part(groups, run), []
    except TooLong:
        unread = [i for i, group in enumerate(groups) if not _reads(part, [group], run)]
    known = [group for i, group in enumerate(groups) if i not in unread]
    return (part(known, run) if known else []), unread


def leave_out(groups: list[Group], places: Sequence[int], run: Run) -> None:
    """Take the groups at these places out of the list, and count them. Raises NothingFits where none is left."""
    note(run, len(places))
    said = groups[places[0]][0].problem.question if places and groups[places[0]] else ""
    for i in reversed(places):
        del groups[i]
    if places and not groups:
        raise NothingFits(f"what judges the replies to {said[:80]!r}, for one, cannot read them")


def measured(part: Callable[[list[Problem], Run], dict[str, float]], problems: Sequence[Problem], run: Run) -> dict[str, float]:
    """The measure of the held-out problems that its models can read; `overlong`, how many they cannot, where there are any."""
    try:
        return part(list(problems), run)
    except TooLong:
        kept = [p for p in problems if _reads(part, [p], run)]
    if not kept:
        raise RewardlabError(f"{part} can measure none of {len(problems)} held-out problems: each is too long for the context")
    return part(kept, run) | {LOGGED: float(len(problems) - len(kept))}


def _reads(part: Callable[[list[Any], Run], Any], one: list[Any], run: Run) -> bool:
    """Whether the models that a part asks can read this one group or problem."""
    # alone it may be refused for something else, as by a correlation, and still be read among others
    with suppress(RewardlabError):
        try:
            part(one, run.detached())
        except TooLong:
            return False
    return True


def note(run: Run, out: int) -> None:
    """Add to the step's count of rows left out."""
    if out:
        run.log(LOGGED, run.metrics.get(LOGGED, 0.0) + out)


def skip(run: Run, error: TooLong) -> None:
    """Count a step that is left out, and say so. Raises RewardlabError after PATIENCE of them in a row."""
    run.memory[SKIPPED] = run.memory.get(SKIPPED, 0) + 1
    if not isinstance(error, NothingFits):
        note(run, 1)
    if run.memory[SKIPPED] >= PATIENCE:
        raise RewardlabError(f"in {PATIENCE} steps in a row no row fits the context, so nothing is learnt: {error}") from error
    if is_rank_zero():
        console.print(f"warning: step {run.step + 1} is left out: {error}", highlight=False, soft_wrap=True, markup=False)
