"""What a scorer of steps learns from: labelled solutions, those that it can read, and which of them are held out."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rewardlab.core import Message, Problem, Task, uniform_of
from rewardlab.data.solutions import Solution, until_error, verdict_in
from rewardlab.data.step_formats import solutions_in
from rewardlab.errors import RewardlabError
from rewardlab.models.load import Policy
from rewardlab.prm.generative import judged_chat
from rewardlab.prm.head import chat_prompt, steps_after
from rewardlab.prm.held_out import halves
from rewardlab.prm.recipe import SEPARATOR
from rewardlab.tasks.sources import Shuffled
from rewardlab.text.splitters import SPLITTERS


def read_labelled(
    data: Any, format: str, alternatives: bool, threshold: float | None = None, taught: str = "steps"
) -> tuple[list[Solution], int]:
    """The solutions, and how many alternatives were passed over.  threshold: labels from it up are 1, others 0.  taught: one of
    `recipe.TAUGHT`, which labels are learnt."""
    passed_over: list[int] = []
    found = [of_its_own(s) for s in solutions_in(data, format, alternatives=alternatives, passed_over=passed_over)]
    rounded_off = [s if threshold is None else hard(s, threshold) for s in found]
    learnt = {"steps": lambda s: s, "first-error": up_to_error, "outcome": as_outcome}[taught]
    return [learnt(s) for s in rounded_off], sum(passed_over)


def up_to_error(s: Solution) -> Solution:
    """A solution with labels up to its first wrong step alone."""
    last = until_error(s.labels)
    return replace(s, labels=s.labels[:last] + (None,) * (len(s.labels) - last))


def as_outcome(s: Solution) -> Solution:
    """A solution whose last step alone has a label: whether its answer is right, or, where that is not said, all of its steps."""
    right = verdict_in(s.right, s.labels)
    told = None if right is None else float(right)
    return replace(s, right=right, labels=(*(None,) * (len(s.labels) - 1), told))


def splitter_of(data: Any, solutions: Sequence[Solution]) -> str:
    """What a step is in these solutions: paragraphs, where a step holds a line break; else as `prm label` was told, where its
    request stands beside the file; else lines."""
    found = by_steps(solutions)
    if found == "newline" and isinstance(data, str | Path) and (request := Path(f"{data}.request.json")).is_file():
        with contextlib.suppress(ValueError, OSError, AttributeError, KeyError):
            if (told := json.loads(request.read_text("utf-8"))["request"]["splitter"]) in SPLITTERS:
                return str(told)
    return found


def by_steps(solutions: Sequence[Solution]) -> str:
    """What the texts of steps alone show: "paragraph" where one of several lines is among them, else "newline"."""
    return "paragraph" if any("\n" in step.strip() for s in solutions for step in s.steps) else "newline"


def hard(s: Solution, threshold: float) -> Solution:
    """A solution each of whose labels is 1 from the threshold up, and else 0."""
    return replace(s, labels=tuple(None if label is None else float(label >= threshold) for label in s.labels))


def rounded(solutions: Sequence[Solution], loss: str) -> str:
    """What a loss of right and wrong makes of labels that are shares, and how else they can be learnt; "" where there are none."""
    labels = [label for s in solutions for label in s.labels if label is not None]
    low, high = (sum(a < label < b for label in labels) for a, b in ((0, 0.5), (0.5 - 1e-12, 1)))
    if loss not in ("bce", "rank") or not low + high:
        return ""
    return (
        f"{low + high:,} of {len(labels):,} labels are shares between 0 and 1, and --loss {loss} rounds them at .5: {low:,} "
        "of them, such as 1 right continuation of 4, are taught as wrong. --threshold 0.01 takes every share above 0 as right, as "
        "Math-Shepherd's hard labels do, --threshold 0.5 says that this is meant, --loss soft learns the shares"
    )


def of_its_own(s: Solution) -> Solution:
    """An alternative with the label of its last step alone: the steps before it are those of the solution that it is one to."""
    before = s.meta.get("alternative")
    return replace(s, labels=(None,) * before + s.labels[before:]) if isinstance(before, int) else s


def usable(s: Solution) -> bool:
    return any(label is not None for label in s.labels) and all(step.strip() for step in s.steps)


def left_out(solutions: Sequence[Solution], fitting: Sequence[Solution], alternatives: int) -> dict[str, int]:
    """How many solutions were not learnt from, by the reason, where there are any."""
    labelled = [s for s in solutions if any(label is not None for label in s.labels)]
    readable = sum(map(usable, labelled))
    counts = {
        "too_long": readable - len(fitting), "with_an_empty_step": len(labelled) - readable,
        "without_labels": len(solutions) - len(labelled), "alternatives_left_out": alternatives,
    }  # fmt: skip
    return {name: n for name, n in counts.items() if n}


def fits(s: Solution, kind: str, policy: Policy) -> bool:
    """Whether the model can read the solution as it would be written for it."""
    tokenizer = policy.tokenizer
    if kind == "generative":
        row = judged_chat(tokenizer, s.prompt, s.steps)
    else:
        row = steps_after(chat_prompt(tokenizer, problem_of(s).prompt), tokenizer, s.steps, SEPARATOR)
    return len(row.ids) <= policy.context


@dataclass(frozen=True)
class Lessons:
    """What is learnt from, what chooses the step of training that is saved, and what that is measured on; and how many of each."""

    task: Task
    chosen_by: list[Solution]
    measured_on: list[Solution]
    counts: dict[str, int]


def lessons(solutions: Sequence[Solution], passed_over: int, kind: str, policy: Policy, test_share: float, seed: int) -> Lessons:
    """The solutions that the model can read.  passed_over: alternatives that were not asked for."""
    fitting = [s for s in solutions if usable(s) and fits(s, kind, policy)]
    task, kept_out = solutions_task(fitting, test_share, seed)
    chosen_by, measured_on = halves(kept_out)
    counts = {"trained_on": len(fitting) - len(kept_out), **left_out(solutions, fitting, passed_over)}
    return Lessons(replace(task, test=[problem_of(s) for s in chosen_by]), chosen_by, measured_on, counts)


def solutions_task(solutions: Sequence[Solution], test_share: float, seed: int) -> tuple[Task, list[Solution]]:
    """Solutions with labels as problems to train and test on, and those that are held out: all solutions of a prompt, or none."""
    known = [s for s in solutions if usable(s)]
    both = [(problem_of(s), s) for s in known]
    # by a hash of its own: the problems that a generated task trains on are those which the tasks' hash does not hold out
    train_on = [p for p, _ in both if uniform_of("solutions", p.key) >= test_share]
    test = [(p, s) for p, s in both if uniform_of("solutions", p.key) < test_share]
    if not known:
        raise RewardlabError(
            f"none of the {len(solutions)} solutions has a label{_not_read(solutions)}: rewardlab prm label --solutions FILE --out "
            "FILE writes them"
        )
    if not train_on or not test:
        raise RewardlabError(
            f"{len(known)} solutions with labels are {len(train_on)} to train on and {len(test)} held out: both are needed; "
            "give more prompts, or another test share"
        )
    task = Task("solutions", Shuffled(train_on, seed), [p for p, _ in test], "final_answer", about="solutions with labelled steps")
    return task, [s for _, s in test]


def _not_read(solutions: Sequence[Solution]) -> str:
    """What may have been meant as labels, in words."""
    if any(s.right is not None for s in solutions):
        return " (they say whether they are right, which --taught outcome learns)"
    columns = dict.fromkeys(name for s in solutions for name in s.meta if "label" in name.lower() or "rating" in name.lower())
    return (
        f" (they have a column {', '.join(map(repr, columns))}, which is not read: labels are a list in `labels`)"
        if columns
        else ""
    )


def problem_of(s: Solution) -> Problem:
    return Problem((Message("user", s.prompt),), s.answer, {"steps": list(s.steps), "labels": list(s.labels), "right": s.right})
