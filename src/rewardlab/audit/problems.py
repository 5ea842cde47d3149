"""Questions to audit with: each has the right answer, wrong answers that come close, and other ways to write the right one."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from rewardlab.core import Problem, Task
from rewardlab.errors import RewardlabError
from rewardlab.text import answers as extraction
from rewardlab.text.numbers import number

FAR = "8967912345"
"""What each digit becomes in an answer that is plainly wrong: digit d becomes FAR[d], which is never d."""
MOST = 500
"""The most of the user's problems that are used."""
WRITTEN = ("canonical_solution", "reply", "response", "completion", "gold_reply")
"""Columns that hold a right reply, where the answer itself cannot be one (the tests of a program, say)."""

QUERY = re.compile(r"\s*(?:select\s.{0,2000}\sfrom\s|with\s.{1,200}\sas\s{0,9}\(\s{0,99}select\s)", re.IGNORECASE | re.DOTALL)
TESTS = re.compile(r"^[ \t]*(?:assert\b|def check\()", re.MULTILINE)
NO_ANSWER = "```sql\nSELECT 'no answer'\n```"
"""A query that answers nothing: that of another problem may return the same rows."""

AS_IS = (
    *("replies", "code", "sql", "lists", "json", "schemas", "graphs"),
    *("calls", "citations", "instructions", "rankings", "boolean"),
)
"""Kinds whose right answers are whole replies, without an answer format."""

Named = tuple[tuple[str, str], ...]
"""Texts, each with a name for how it differs."""


@dataclass(frozen=True)
class Item:
    """A question of an audit.

    kind: what its answers are (numbers, latex, ...).  answer: the gold answer, as the reward takes it.  gold: the right
    answer as a reply states it.  far: an answer that is plainly wrong.  near: wrong answers that come close.  same: other ways to
    write the right answer.  options: what may be chosen from.
    """

    kind: str
    prompt: str
    answer: Any
    gold: str
    far: str
    near: Named = ()
    same: Named = ()
    options: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)


def number_item(prompt: str, gold: str, answer: Any = None, kind: str = "numbers", **rest: Any) -> Item:
    value = number(gold)
    assert value is not None
    # as long as the right one, so that length alone earns nothing
    far = re.sub(r"[0-9]", lambda m: FAR[int(m[0])], gold)
    gold_answer = gold if answer is None else answer
    return Item(kind, prompt, gold_answer, gold, far, near=near_numbers(gold, value), same=same_numbers(gold, value), **rest)


def near_numbers(gold: str, value: Fraction) -> Named:
    """The number with another sign, another digit, ten times as large, one more, and rounded."""
    variants = {"sign": gold[1:] if gold[:1] in "-−" else f"-{gold}"}
    places = [i for i, char in enumerate(gold) if char.isdigit()]
    for name, i in (("first digit", places[0]), ("last digit", places[-1])):
        variants[name] = gold[:i] + str(int(gold[i]) % 9 + 1) + gold[i + 1 :]
    if re.fullmatch(r"[-−]?[0-9]+", gold):
        variants |= {"factor of ten": f"{gold}0", "off by one": str(int(value) + 1)}
        # what stands beside the digits makes it another number
        variants |= {
            "thousands in words": f"{gold} thousand", "leading dot": f".{gold.lstrip('-−')}", "exponent": f"1e{gold}",
            "minus in words": f"minus {gold}", "part of an expression": f"{gold} + x",
        }  # fmt: skip
    # a decimal that does not end: any rounding changes its value
    if value.denominator % 3 == 0:
        variants["rounded"] = f"{float(value):.2f}"
    return tuple((name, text) for name, text in variants.items() if number(text) != value)


def same_numbers(gold: str, value: Fraction) -> Named:
    variants = {}
    if gold.startswith("-"):
        variants["unicode minus"] = f"−{gold[1:]}"
    if re.fullmatch(r"-?[0-9]{4,}", gold):
        variants["separators"] = f"{int(gold):,}"
    if re.fullmatch(r"-?[0-9]+", gold):
        variants["decimal zero"] = f"{gold}.0"
    return tuple(variants.items())


def choice_item(prompt: str, gold: str, options: Sequence[str], answer: Any = None, **rest: Any) -> Item:
    others = [option for option in options if option != gold]
    near = (("another option", others[-1]),)
    same = (("brackets", f"({gold})"), ("small letter", gold.lower()))
    gold_answer = gold if answer is None else answer
    return Item("choice", prompt, gold_answer, gold, others[0], near, same, tuple(options), **rest)


def text_item(prompt: str, gold: str, far: str, near: Named = (), answer: Any = None, **rest: Any) -> Item:
    same = (("upper case", gold.upper()), ("lower case", gold.lower()))
    return Item("text", prompt, gold if answer is None else answer, gold, far, near, tuple(s for s in same if s[1] != gold), **rest)


def of_task(task: Task) -> list[Item]:
    """Items of a task's problems: of its test data, and of all else where it holds no more than that. In a random order."""
    finite = getattr(task.train, "problems", ())
    # without repetitions, which would be probed twice
    problems = list({(p.question, str(p.answer)): p for p in (*finite, *task.test)}.values())
    # the same order in every audit, so that the results of two rewards compare
    random.Random(0).shuffle(problems)
    golds = [_gold(p) for p in problems[:MOST]]
    return [_item(p, gold, golds) for p, gold in zip(problems, golds, strict=False)]


def _gold(problem: Problem) -> str:
    """The right answer as a reply states it: without a worked solution before "####", without maths delimiters or a box."""
    answer = problem.answer
    whole = isinstance(answer, dict | list) or answer is None or (isinstance(answer, str) and TESTS.search(answer))
    # where the answer can be stated, a solution is how it is found
    columns = (*WRITTEN, "solution") if whole else WRITTEN
    if reply := next((str(problem.meta[name]) for name in columns if isinstance(problem.meta.get(name), str)), None):
        return reply
    query = answer.get("query") if isinstance(answer, dict) else answer if QUERY.match(str(answer)) else None
    if isinstance(query, str):
        return f"```sql\n{query}\n```"
    if whole:
        what = f"a {type(answer).__name__}" if not isinstance(answer, str) else "a text of tests"
        raise RewardlabError(
            f"the answer of {problem.question[:40]!r} is {what}, so no right reply can be made of it; "
            f"give the right replies in a column named {' or '.join(columns)}"
        )
    text = str(answer).rpartition("####")[2].strip()
    return (extraction.boxed(text) or re.sub(r"^\$+|\$+$", "", text)).strip()


def _item(problem: Problem, gold: str, golds: Sequence[str]) -> Item:
    fields = {"answer": problem.answer, "meta": dict(problem.meta)}
    if gold.startswith("```sql"):
        return Item("sql", problem.question, gold=gold, far=NO_ANSWER, **fields)
    others = [other for other in golds if extraction.tidy(other) != extraction.tidy(gold)]
    if re.fullmatch(r"\(?[A-J]\)?", gold):
        letters = "ABCDEFGHIJ"[: max(4, "ABCDEFGHIJ".index(gold.strip("()")) + 1)]
        return choice_item(problem.question, gold.strip("()"), tuple(letters), **fields)
    # whether units matter is for the user to decide: only plain numbers are changed as numbers
    if number(gold) is not None and not re.search(r"[^-−+0-9.,/eE]", gold):
        return number_item(problem.question, gold, **fields)
    near = edits(gold)
    # the answer to another problem of the task is wrong, and of the right form
    far = others[0] if others else near[0][1] if near else f"{gold} {gold}"
    if re.search(r"[\\^_{}=<>$]", gold):
        return Item("latex", problem.question, problem.answer, gold, far, near, meta=fields["meta"])
    if isinstance(problem.answer, dict | list) or TESTS.search(str(problem.answer)):
        return Item("replies", problem.question, problem.answer, gold, far, meta=fields["meta"])
    return text_item(problem.question, gold, far, near if len(gold) < 40 else (), **fields)


def edits(gold: str) -> Named:
    """A text with another sign, and another last digit."""
    variants = {}
    if not gold.startswith(("\\text", "\\begin", "\\left", "\\pm")) and re.search(r"[0-9a-z]", gold):
        variants["sign"] = gold[1:] if gold.startswith("-") else f"-{gold}"
    places = [m.start() for m in re.finditer(r"[0-9]", gold)]
    if places:
        i = places[-1]
        variants["last digit"] = gold[:i] + str(int(gold[i]) % 9 + 1) + gold[i + 1 :]
    if re.search(r"[=<>(\[{,]", gold):
        variants.pop("sign", None)
    return tuple(variants.items())
