"""The verifier of derivations in propositional logic: every line is checked by a truth table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardlab.text.derivations import check
from rewardlab.text.logic import parse
from rewardlab.verifiers.contract import Pair, Verdict, no_verdict, right, verifier, wrong

LINES = 100
"""Of a reply, at most: each is a table of its own."""


@verifier(over="pairs")
def derivation(pairs: list[Pair], *, premises: str = "premises") -> list[Verdict]:
    """Right if every line of a derivation follows from the lines that it cites, and the last one is the goal.

    answer: the goal, with the premises, a list of formulas, in the data column `premises`; or {"premises": [...], "goal": "q"}.
    Lines are those of `text/derivations.py`.  parts: steps, the share of right lines.  tests: which lines are right.
    """
    return [_judged(pair, premises) for pair in pairs]


def _judged(pair: Pair, column: str) -> Verdict:
    whole = isinstance(pair.answer, Mapping)
    given = pair.answer.get("premises") if whole else pair.meta.get(column)
    goal = pair.answer.get("goal") if whole else pair.answer
    if not isinstance(given, list | tuple) or not isinstance(goal, str):
        return no_verdict(f"a derivation needs a goal as its answer, and a list of premises in the column {column!r}")
    lines = [line for line in pair.response.splitlines() if line.strip()][:LINES]
    try:
        wanted, checked = parse(goal), check(lines, [str(p) for p in given])
    except ValueError as problem:
        return no_verdict(f"goal or premises cannot be read: {problem}")
    tests = tuple(line.right for line in checked)
    said: dict[str, Any] = {"parts": {"steps": sum(tests) / max(1, len(tests))}, "tests": tests}
    for number, found in enumerate(checked, len(given) + 1):
        if not found.right:
            return wrong(f"line {number}: {found.why}", **said)
    if not checked or checked[-1].formula != wanted:
        return wrong("the last line is not the goal", **said)
    return right(lines[-1].strip(), "every line follows, and the last one is the goal", **said)
