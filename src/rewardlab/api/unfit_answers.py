"""Answers that the verifier of a task cannot compare with a reply: tests of programs, queries, calls, judged as texts."""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from rewardlab.core import Task
from rewardlab.tasks.sources import Listed
from rewardlab.util.progress import console

SAMPLE = 50
"""Problems of either side whose answers are looked at."""
OF_TEXTS = ("final_answer", "final_number", "exact_match", "math", "stated_after", "two_way_match")
"""Verifiers that compare what a reply states with a text or a number."""
_KEYS = {
    "code": ("tests", "test", "io", "input_output", "inputs", "test_list", "test_cases", "public_tests"), "sql": ("query",),
    "instructions": ("instructions", "instruction_id_list"), "function_calls": ("arguments",), "equation": ("numbers",),
}  # fmt: skip
_ABOUT = {
    "code": "tests of programs", "sql": "queries", "instructions": "instructions", "function_calls": "calls",
    "equation": "numbers with a target", "json_value": "objects",
}  # fmt: skip
_TESTS = re.compile(r"^[ \t]*assert\b|^def (?:check|test)\w*\(", re.MULTILINE)
_QUERY = re.compile(r"\s*(?:select\s.{0,2000}\sfrom\s|with\s.{1,200}\sas\s{0,9}\(\s{0,99}select\s)", re.IGNORECASE | re.DOTALL)


def tell_unfit(task: Task) -> None:
    """Warn where most answers are of a kind that the task's verifier, which compares texts, never finds in a reply."""
    if task.verifier not in OF_TEXTS:
        return
    train = task.train.problems[:SAMPLE] if isinstance(task.train, Listed) else ()
    answers = [problem.answer for problem in (*train, *task.test[:SAMPLE])]
    kind, count = Counter(map(kind_of, answers)).most_common(1)[0] if answers else ("", 0)
    if kind and count > len(answers) / 2:
        _warn(str(task.verifier), kind)


def kind_of(answer: Any) -> str:
    """The verifier of such an answer; "" for a text, a number, or a list of these."""
    if isinstance(answer, str) and answer.lstrip()[:1] in ("{", "["):
        try:
            # an object that is written as text may be stated as it is written
            return kind_of(json.loads(answer)).replace("json_value", "")
        except (ValueError, RecursionError):
            return ""
    if isinstance(answer, list) and answer:
        kinds = {kind_of(one) for one in answer}
        return kinds.pop() if len(kinds) == 1 else ""
    if isinstance(answer, Mapping):
        return next((kind for kind, keys in _KEYS.items() if not answer.keys().isdisjoint(keys)), "json_value")
    if not isinstance(answer, str):
        return ""
    return "code" if _TESTS.search(answer) else "sql" if _QUERY.match(answer) else ""


@functools.cache
def _warn(verifier: str, kind: str) -> None:
    console.print(
        f"warning: the answers look like {_ABOUT[kind]}, and the verifier {verifier} looks for them in what a reply states: then "
        f"no reply is right. --verifier {kind} is made for them",
        style="yellow", highlight=False, markup=False, soft_wrap=True,
    )  # fmt: skip
