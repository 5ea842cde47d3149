"""Models' solutions to mathematical problems in the shared data, with whether each is right."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from rewardlab.tasks.strictprm.problems import adjudicated, lines, problems

__all__ = ["SETS", "adjudicated", "solutions"]

Labelled = tuple[str, str, str, bool]
"""A reply, the gold answer, the question, whether it is right."""


def solutions(name: str) -> list[Labelled]:
    """Every solution of a set whose true answer is known. Raises RewardlabError where the shared data is not there."""
    return SETS[name]()


def _strictprm(name: str) -> list[Labelled]:
    return [
        ("\n\n".join(steps), problem.answer, problem.question, right)
        for problem in problems(name)
        for steps, right in zip(problem.meta["replies"], problem.meta["right"], strict=True)
    ]


def _processbench() -> list[Labelled]:
    """Models of several families; the labels are ProcessBench's, of the final answer."""
    golds = {_letters(row["question"]): row["answer"] for part in ("train", "test") for row in lines("gsm8k", f"{part}.jsonl")}
    rows = [(row, golds.get(_letters(row["problem"]))) for row in lines("processbench", "gsm8k.jsonl.gz")]
    return [("\n\n".join(row["steps"]), gold, row["problem"], row["final_answer_correct"]) for row, gold in rows if gold]


def _qwen_math() -> list[Labelled]:
    """Eight replies to each of a hundred MATH problems; the labels are Qwen2.5-Math's own."""
    rows = lines("qwen_math_rm", "math_cot_100.jsonl.gz")
    return [
        (reply, str(row["gt"]), row["question"], bool(right))
        for row in rows
        for reply, right in zip(row["response"], row["score"], strict=True)
    ]


def _examples() -> list[Labelled]:
    """GSM8K's example solutions, by four older models."""
    rows = lines("gsm8k_solutions", "example_model_solutions.jsonl.gz")
    return [
        (said["solution"], row["ground_truth"].rpartition("A:")[2].strip(), row["question"], said["is_correct"])
        for row in rows
        for said in row.values()
        if isinstance(said, dict)
    ]


def _letters(text: str) -> str:
    return re.sub(r"\W", "", text.lower())


SETS: dict[str, Callable[[], list[Labelled]]] = {
    "gsm8k": functools.partial(_strictprm, "gsm8k"),
    "math500": functools.partial(_strictprm, "math500"),
    "processbench-gsm8k": _processbench,
    "qwen-math": _qwen_math,
    "gsm8k-examples": _examples,
}
