"""What rows of pairs say besides their order, and whether the method reads it: said before training."""

from __future__ import annotations

from collections.abc import Sequence

from rewardlab.api.checking import check_accepted, check_columns, check_some, parts_of, stated_data
from rewardlab.core import Problem, Recipe, Task
from rewardlab.data.pair_scores import CHANCES, MARGIN, SCORES, origin
from rewardlab.data.values import number_of
from rewardlab.errors import RewardlabError
from rewardlab.tasks.sources import Listed
from rewardlab.util.progress import console

BY_CHANCE, BY_MARGIN, EITHER = "votes", "margins", ""
MEANS = {
    BY_CHANCE: "the chance that the chosen reply is the better one",
    BY_MARGIN: "how much better the chosen reply is",
    EITHER: "how good each reply is",
}
"""What a column says, by the setting `labels` that reads it; either setting may read a number for each reply."""


def check_rows(recipe: Recipe, task: Task) -> None:
    """Raise RewardlabError where data lacks columns that the recipe reads, or teaches nothing; print what of pairs is not read."""
    check_columns(recipe, task)
    check_some(recipe, task)
    check_accepted(recipe, task)
    tell_labels(recipe, task)


def tell_labels(recipe: Recipe, task: Task) -> None:
    """Print which columns of pairs say how good their replies are, and which setting reads them where the recipe does not.

    Raises RewardlabError where the recipe would read a margin as votes, or a chance as a margin.
    """
    if not isinstance(task.train, Listed) or not task.train.problems or not {"chosen", "rejected"} <= {*task.columns}:
        return
    names = next(filter(None, (origin(p.meta) for p in task.train.problems)), ())
    labels = next((part.settings["labels"] for part in parts_of(recipe) if part.name == "preference_loss"), None)
    if not names or not _reads_pairs(recipe):
        return
    said = " and ".join(names)
    kind = BY_CHANCE if names[0] in CHANCES else BY_MARGIN if names == (MARGIN,) else EITHER
    if kind and labels not in (None, "order", kind):
        raise RewardlabError(
            f"--labels {labels} cannot read the column {said} ({MEANS[kind]}): --labels {kind} reads it"
            + (", or give how many preferred each reply, in chosen_score and rejected_score" if labels == BY_CHANCE else "")
        )
    if _reads_scores(recipe):
        if names != SCORES:
            _say(f"read as {' and '.join(SCORES)}: {said}")
        return
    # whole numbers in a column `label` alone may be anything
    if kind == BY_CHANCE and not _graded(task.train.problems, names[0]):
        return
    method = "" if labels == "order" else "bradley_terry "
    _say(
        f"not read by {recipe.name or 'this recipe'}: {said} ({MEANS[kind]}); {method}--labels {kind or BY_MARGIN} learns from it"
        f"{'' if kind else ' (--labels votes, where they count votes)'}"
    )


def _graded(problems: Sequence[Problem], column: str) -> bool:
    return any((number_of(p.meta.get(column)) or 0.0) % 1 for p in problems)


def _reads_pairs(recipe: Recipe) -> bool:
    data = stated_data(recipe.name)
    fields = [part.settings.get("fields") or () for part in parts_of(recipe)]
    return any({"chosen", "rejected"} <= {*found} for found in (*fields, data.columns if data else ()))


def _reads_scores(recipe: Recipe) -> bool:
    data = stated_data(recipe.name)
    column = data.columns.get("chosen_score") if data else None
    return any(part.name == "score_in_data" for part in parts_of(recipe)) or (column is not None and not column.needed_with)


def _say(text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
