"""Models' solutions to mathematical problems in the shared data, with whether each is right."""

from __future__ import annotations

import functools
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rewardlab.tasks.sources import data_file

Labelled = tuple[str, str, str, bool]
"""A reply, the gold answer, the question, whether it is right."""


def solutions(name: str) -> list[Labelled]:
    """Every solution of a set whose true answer is known. Raises RewardlabError where the shared data is not there."""
    return SETS[name]()


def _strictprm(name: str) -> list[Labelled]:
    answers = {(r["problem_id"], r["candidate_index"]): r["is_correct"] for r in lines("strictprm", f"answers_{name}.jsonl.gz")}
    candidates = lines("strictprm", f"candidates_{name}.jsonl.gz")
    questions = {r["problem_id"]: r["problem"] for r in candidates if "problem" in r}
    golds = {problem: _gold(name, about) for problem, about in questions.items()}
    judged = answers | adjudicated(name)
    return [
        ("\n\n".join(r["steps"]), gold, questions[r["problem_id"]]["question"], judged[r["problem_id"], r["candidate_index"]])
        for r in candidates
        if (gold := golds[r["problem_id"]]) is not None
    ]


def adjudicated(name: str) -> dict[tuple[str, int], bool]:
    """Whether each of the replies that were read is right, by problem and candidate."""
    path = Path(__file__).parent / "adjudicated" / f"{name}.json"
    kept = json.loads(path.read_text()) if path.is_file() else {}
    return {(problem, i): verdict == "right" for verdict, ids in kept.items() for problem, found in ids.items() for i in found}


def _gold(name: str, about: dict[str, Any]) -> str | None:
    return about["ground_truth"] if name == "gsm8k" else _true_answers().get(" ".join(about["question"].split()))


@functools.cache
def _true_answers() -> dict[str, str]:
    found = lines("rewardmath", "problems.jsonl.gz")
    return {" ".join(r["problem"].split()): r["answer"] for r in found if "answer" in r}


def lines(*parts: str) -> list[dict[str, Any]]:
    path = data_file(*parts)
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


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
