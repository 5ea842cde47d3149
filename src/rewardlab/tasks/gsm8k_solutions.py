"""Solutions of four real models to GSM8K, with labels of their steps, to learn from; and ProcessBench's, labelled by people.

Cobbe et al. 2021, arXiv:2110.14168 (openai/grade-school-math, MIT) published four solutions to each of the 1,319 test problems and
whether they are right; Zheng et al. 2024, arXiv:2412.06559, have people name the first wrong step of 400 solutions of newer models
to some of the same problems. These problems are held out. What is learnt here is for comparing ways to learn, and no model to
publish: it has seen test problems of GSM8K.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from rewardlab.core import Problem, Task, ask
from rewardlab.data.files import rows_of
from rewardlab.data.published import from_processbench
from rewardlab.text.numbers import one_number

from .sources import OnDemand, Shuffled, data_file

MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
_CALCULATION = re.compile(r"<<[^<>\n]*=([^<>=\n]*)>>")


def gsm8k_solutions(*, seed: int = 0) -> Task:
    """A problem for each solution: columns steps, labels, right.

    To learn from: the four models' solutions to problems that ProcessBench has not. Held out: in turn a solution of ProcessBench,
    without `right`, and the four models' to one of its problems, without labels.

    A step of a right solution is right. Of a wrong one, those up to the last that computes a number which the published solution
    computes too, and the question does not give; so labels have errors, as automatic ones do. `seed` orders the training epochs.
    Needs gsm8k_solutions/ and processbench/ in the folder that REWARDLAB_DATA names.
    """
    return Task(
        name="gsm8k_solutions",
        train=Shuffled(_Rows(held_out=False), seed),
        test=OnDemand(_test),
        verifier="final_number",
        about="solutions of four models to GSM8K with labelled steps; held out: ProcessBench's, and four to each of its problems",
        columns=("prompt", "answer", "steps", "labels", "right"),
    )


class _Rows(Sequence[Problem]):
    """The four models' solutions to the problems that ProcessBench has, or has not; read when first asked for."""

    def __init__(self, held_out: bool) -> None:
        self.held_out = held_out

    def __len__(self) -> int:
        return len(solutions(self.held_out))

    def __getitem__(self, at: Any) -> Any:
        return solutions(self.held_out)[at]


def _test() -> Iterator[Problem]:
    """A solution of ProcessBench, then four to one of its problems, and so on."""
    ours = solutions(held_out=True)
    four = [ours[i : i + len(MODELS)] for i in range(0, len(ours), len(MODELS))]
    for theirs, group in zip_longest(_processbench(), four):
        yield from chain([theirs] if theirs else [], group or [])


@cache
def _processbench() -> list[Problem]:
    path = data_file("processbench", "gsm8k.jsonl.gz")
    found = [from_processbench(row)[0] for _, row in rows_of(path)]
    gold = {_plain(row["question"]): _answer(row) for _, row in rows_of(_published())}
    return [ask(s.prompt, gold.get(_plain(s.prompt)), steps=list(s.steps), labels=list(s.labels)) for s in found]


def _published() -> Path:
    return data_file("gsm8k_solutions", "example_model_solutions.jsonl.gz")


def _answer(row: dict[str, Any]) -> str:
    return row["ground_truth"].splitlines()[-1].removeprefix("A:").strip()


@cache
def solutions(held_out: bool) -> list[Problem]:
    """The four models' solutions, those to a problem together."""
    known = {_plain(problem.question) for problem in _processbench()}
    rows = [row for _, row in rows_of(_published()) if (_plain(row["question"]) in known) == held_out]
    return [_solution(row, row[model], labelled=not held_out) for row in rows for model in MODELS]


def _plain(question: str) -> str:
    return " ".join(question.replace("\u2019", "'").split()).lower()


def _solution(row: dict[str, Any], of: dict[str, Any], labelled: bool) -> Problem:
    worked = row["ground_truth"].splitlines()
    steps = [line for line in of["solution"].splitlines() if line.strip()]
    labels = step_labels(steps, worked, row["question"], of["is_correct"]) if labelled else [None] * len(steps)
    return ask(
        row["question"], _answer(row), steps=[_CALCULATION.sub("", step) for step in steps], labels=labels, right=of["is_correct"]
    )  # fmt: skip


def step_labels(steps: Sequence[str], worked: Sequence[str], question: str, right: bool) -> list[float]:
    """1 for each step of a right solution; else for those up to the last that computes one of the worked solution's numbers."""
    if right:
        return [1.0] * len(steps)
    given = {one_number(text) for text in re.findall(r"\d[\d,.]*", question)}
    wanted = {number for line in worked for number in _computed(line)} - given
    reached = [i for i, step in enumerate(steps) if wanted & _computed(step)]
    # the last step states the wrong answer
    good = min(reached[-1] + 1, len(steps) - 1) if reached else 0
    return [1.0] * good + [0.0] * (len(steps) - good)


def _computed(line: str) -> set[Fraction]:
    found = (one_number(result) for result in _CALCULATION.findall(line))
    return {number for number in found if number is not None}
