"""Benchmarks of steps: a solution with labelled steps as an item, how it was judged, and PRMBench's counts and score.

`evals.process` has the figures of solutions that are judged; here they are made of the marks of items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rewardlab.core import Message
from rewardlab.data.solutions import Solution
from rewardlab.evals.process import Judged, confusion, first_errors, prm_score
from rewardlab.scoreboard.figures import Marks, mean_of_known
from rewardlab.scoreboard.items import Item, Verdict, users

COUNTS = ("tp", "fp", "tn", "fn")


def item_of(solution: Solution, name: str, subset: str, prompt: tuple[Message, ...] = ()) -> Item:
    """One reply, whose steps are asked about. It is worth 1 where no step is known to be wrong.  prompt: without one, the
    solution's."""
    whole = "\n\n".join(solution.steps)
    worth = float(solution.first_error is None)
    return Item(
        name, prompt or users(solution.prompt), (whole,), (worth,), subset, compared=(), steps=(solution.steps,),
        labels=(solution.labels,),
    )  # fmt: skip


def judged(item: Item, verdict: Verdict) -> list[Judged]:
    """The replies of an item of which every step was judged, in order; those without such a verdict are left out."""
    known = zip(item.steps, item.labels, verdict.steps, strict=False)
    return [
        Judged(Solution(item.question, steps, labels), tuple(chances))
        for steps, labels, chances in known
        if chances is not None and len(chances) == len(steps)
    ]


def first_error_mark(item: Item, verdict: Verdict) -> dict[str, float]:
    """error, or correct where no step is wrong: whether the first wrong step is named, or none is; without a verdict it is not."""
    name = "error" if item.worth[0] < 1.0 else "correct"
    found = judged(item, verdict)
    return {name: first_errors(found)[f"{name}_accuracy"] if found else 0.0}


def prm_marks(item: Item, verdict: Verdict) -> dict[str, float]:
    """Numbers of steps, right or wrong, said to be right or wrong; and whether the first wrong step is said to be wrong."""
    found = judged(item, verdict)
    if not found:
        return {}
    error = found[0].solution.first_error
    counts = confusion(found)
    right = counts["tp"] + counts["tn"]
    first = {} if error is None else {"first": float(found[0].chances[error] <= 0.5)}
    return counts | {"accuracy": right / sum(counts.values())} | first


def prm_figures(marks: Marks, groups: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """prm_score: of all steps together; the mean of categories (subsets), groups of categories, and categories; the two F1;
    first_error: how often the first wrong step is said to be wrong; step_accuracy: the share of steps told rightly, high for a
    rater that finds all right."""
    whole = score_of(marks)
    each = {name: score_of(marks.only(name))["prm_score"] for name in marks.subsets()}
    scores = {group: [each[name] for name in names if name in each] for group, names in groups.items()}
    steps = sum(marks.total(name) for name in COUNTS)
    return {
        "prm_score": whole["prm_score"], "mean_of_categories": mean_of_known(each.values()),
        **{group: mean_of_known(row) for group, row in scores.items() if row}, **each,
        "f1": whole["f1"], "negative_f1": whole["negative_f1"], "first_error": marks.mean("first"),
        "step_accuracy": (marks.total("tp") + marks.total("tn")) / steps if steps else float("nan"),
    }  # fmt: skip


def score_of(marks: Marks) -> dict[str, float]:
    """PRMBench's score of all steps of these items, and its two parts."""
    return prm_score(**{name: marks.total(name) for name in COUNTS})


def mcc(tp: float, fp: float, tn: float, fn: float) -> float:
    """Matthews' correlation of what is said and what is so, of numbers of each kind; 0 where one of the two never varies."""
    spread = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return (tp * tn - fp * fn) / spread if spread else 0.0
