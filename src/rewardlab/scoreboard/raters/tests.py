"""Tests as a rater of programs: which share of the asserts in a column of the row a reply passes, in the sandbox.

`tests:unit_tests?k=8` runs the first 8 tests of the column `unit_tests`, as a model has written them; each test is a text with one
assert or more, and passes where all of them hold. A test that is no Python fails for every program.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rewardlab.errors import RewardlabError
from rewardlab.sandbox.asserts import passed
from rewardlab.scoreboard.items import Item, Verdict, flat
from rewardlab.scoreboard.raters.rater import Rater, verdicts
from rewardlab.text.blocks import program_of

if TYPE_CHECKING:
    from rewardlab.scoreboard.benchmark import Benchmark


class Tests(Rater):
    """column: of the rows, with a list of texts, which the benchmark's `read` keeps as `meta`.  k: so many of them; 0: all."""

    __test__ = False

    def __init__(self, name: str, column: str, k: int = 0):
        super().__init__(name)
        self.column, self.k = column, k

    def fingerprint(self) -> str:
        return f"tests {self.column} {self.k}"

    def reads(self, item: Item) -> str:
        return "\n".join(self._tests(item))

    def judge(self, items: Sequence[Item], benchmark: Benchmark) -> list[Verdict]:
        read = [(tests, [t for t in tests if _is_python(t)]) for tests in map(self._tests, items)]
        each = [pair for pair, item in zip(read, items, strict=True) for _ in item.replies]
        ran = [i for i, (_, fit) in enumerate(each) if fit]
        programs = [program_of(item.replies[k]) for item, k in flat(items)]
        outcomes = dict(zip(ran, passed([programs[i] for i in ran], [each[i][1] for i in ran]), strict=True))
        scores = [_share(len(tests) - len(fit), outcomes.get(i, ())) for i, (tests, fit) in enumerate(each)]
        return verdicts(items, scores, ["" if tests else f"the row has no {self.column}" for tests, _ in each])

    def _tests(self, item: Item) -> list[str]:
        tests = item.meta.get(self.column) or ()
        if isinstance(tests, str) or not all(isinstance(t, str) for t in tests):
            raise RewardlabError(f"{self.name}: {self.column} of {item.id} must be a list of texts")
        return [t.strip() for t in tests][: self.k or None]


def _is_python(test: str) -> bool:
    try:
        return any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(test)))
    except (SyntaxError, ValueError, RecursionError):
        return False


def _share(broken: int, cases: Sequence[bool] | None) -> float | None:
    """Of all tests, those that are no Python among them; None where the sandbox failed, or there are no tests."""
    return None if cases is None or not (n := broken + len(cases)) else sum(cases) / n
