"""Programs judged by model-written tests, some of them wrong; and how many tests each problem gets."""

from __future__ import annotations

import ast
import heapq
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rewardlab.core import Group, Problem, Run, Sampling, Score, Scores, Term, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.monte_carlo import count_cost
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.unit_tests import asked_for_test, distinct, read_test
from rewardlab.util.outputs import last_values

TERM = "passed_generated"


@reward(over="groups")
def passed_generated(
    groups: list[Group], run: Run, *, column: str = "generated", each: PositiveInt = 16, writer: str = "", probe: str = "",
    temperature: NonNegativeFloat = 1.0, labels: bool = False,
) -> Scores:  # fmt: skip
    """How many of the first tests in the column `column` a program passes; of programs that pass equally many, one that passes the
    same tests as more of the others is paid more, by less than a test.

    column: tests that a model wrote, pairs of input and output or asserts, which the task's verifier runs. each: tests of a
    problem, on average.  writer: the model that writes tests, one a reply at this temperature, for problems without any in the
    column; it reads the problem and the first program; "": only tests of the column are run.  probe: the model whose value at the
    end of a prompt is the log-odds that a program for it is right; it says how tests are shared out (`allocated`).  labels: keep
    the verdict by the gold answer as the term `correct`, without a weight, for the probe to learn. A problem without tests gets no
    verdict.

    Ma et al. 2025, arXiv:2501.01054
    """
    if run.verify is None:
        raise RewardlabError("passed_generated needs the task's verifier to run tests, and this run has none: name a task")
    written = [usable(group[0].problem.meta.get(column)) if group else [] for group in groups]
    bare = {g for g, tests in enumerate(written) if writer and groups[g] and not tests}
    available = [each * len(groups) if g in bare else len(tests) for g, tests in enumerate(written)]
    counts = [min(each, most) for most in available]
    if probe and groups:
        counts = allocated(said_rates(groups, run, probe), available, each * len(groups))
        run.log("tests_most", max(counts))
    for g, tests in written_tests({g: counts[g] for g in bare}, groups, run, writer, temperature).items():
        written[g] = tests
    tables = executed(groups, [tests[:count] for tests, count in zip(written, counts, strict=True)], run)
    known: Sequence[Sequence[Score | None]] = run.verdicts(groups) if labels else [[None] * len(group) for group in groups]
    return [
        [_score(value, verdict) for value, verdict in zip(_paid(table, len(group)), row, strict=True)]
        for group, table, row in zip(groups, tables, known, strict=True)
    ]


def written_tests(
    counts: Mapping[int, int], groups: list[Group], run: Run, writer: str, temperature: float
) -> dict[int, list[Any]]:
    """For each of these groups the different tests in so many replies of the model `writer`, which reads its first program."""
    at = sorted(g for g, count in counts.items() if count)
    if not at:
        return {}
    model, of = run.model(writer), {g: groups[g][0] for g in at}
    pairs = {g: by_pairs(t.problem) for g, t in of.items()}
    asked = [t.problem.reworded(asked_for_test(t.problem.question, t.reply, pairs[g])) for g, t in of.items()]
    read = dict(zip(at, model.read([Trajectory(p) for p in asked], [p.prompt for p in asked]), strict=True))
    # a problem that does not fit the writer's context is left without tests, and gets no verdict
    rows = [g for g in at if len(read[g]) + run.max_new <= model.context for _ in range(counts[g])]
    said = model.extend([read[g] for g in rows], Sampling(run.max_new, temperature), run.rng("tests")) if rows else []
    count_cost(run, len(said), sum(len(read[g]) for g in set(rows)))
    found: dict[int, list[Any]] = {g: [] for g in at}
    for g, t in zip(rows, said, strict=True):
        found[g].append(read_test(t.reply, pairs[g]))
    return {g: distinct(tests) for g, tests in found.items()}


def by_pairs(problem: Problem) -> bool:
    """Whether programs for this problem are judged by pairs of input and output, and not by asserts."""
    answer = problem.answer
    if isinstance(answer, str):
        try:
            answer = json.loads(answer)
        except (ValueError, RecursionError):
            return False
    return isinstance(answer, Mapping) and bool(answer.get("io")) and not answer.get("tests")


def usable(tests: Any) -> list[Any]:
    """The tests that can be run: pairs of texts, and asserts that are Python. A wrong one is judged by being run, not here."""
    return [test for test in tests if _is_pair(test) or _is_python(test)] if isinstance(tests, list | tuple) else []


def _is_pair(test: Any) -> bool:
    return isinstance(test, list | tuple) and len(test) == 2 and all(isinstance(text, str) for text in test)


def _is_python(test: Any) -> bool:
    if not isinstance(test, str) or not test.strip():
        return False
    try:
        ast.parse(test)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # one that cannot be read would take all others of its problem with it
        return False
    return True


def executed(groups: list[Group], tests: Sequence[list[Any]], run: Run) -> list[np.ndarray | None]:
    """(replies, tests) of 0 and 1 for each group: which replies pass which tests; None where there is no test, or no verdict."""
    chosen = [g for g, own in enumerate(tests) if own and groups[g]]
    tried = [[_with_tests(t, tests[g]) for t in groups[g]] for g in chosen]
    tables: list[np.ndarray | None] = [None] * len(groups)
    for g, row in zip(chosen, run.verify(tried, run) if tried else [], strict=True):
        if not any(s.missing for s in row):
            # a program that never came to its tests has passed none of them
            tables[g] = np.array([[*s.tests, *[False] * len(tests[g])][: len(tests[g])] for s in row], float)
    return tables


def _with_tests(t: Trajectory, tests: list[Any]) -> Trajectory:
    answer = t.problem.answer
    kept = {k: v for k, v in answer.items() if k not in ("io", "tests")} if isinstance(answer, Mapping) else {}
    pairs = all(_is_pair(test) for test in tests)
    given = {"io": [list(test) for test in tests]} if pairs else {"tests": "\n".join(x for x in tests if isinstance(x, str))}
    return replace(t, problem=replace(t.problem, answer={**kept, **given}))


def _paid(table: np.ndarray | None, replies: int) -> list[float | None]:
    if table is None:
        return [None] * replies
    alike = Counter(map(tuple, table.tolist()))
    return [float(row.sum()) + alike[tuple(row.tolist())] / (replies + 1) for row in table]


def _score(value: float | None, verdict: Score | None) -> Score:
    terms = {TERM: Term(value)}
    if verdict is not None:
        terms["correct"] = Term(verdict.value, weight=None)
    return Score(terms=terms, missing=value is None, why="" if value is not None else "no generated tests that could be run")


# ---- how many tests a problem is given -------------------------------------------------------------------------------


def said_rates(groups: list[Group], run: Run, probe: str) -> list[float]:
    """The chance of a right program that the probe says of each prompt, before anything is written."""
    problems = [group[0].problem if group else Problem(()) for group in groups]
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    return [float(1 / (1 + np.exp(-v))) for v in last_values(run.model(probe), prompts)]


def allocated(rates: Sequence[float], available: Sequence[int], budget: int) -> list[int]:
    """Tests of each problem, `budget` in all: one after the other goes where it adds most to 1 - (1 - rate)^tests.

    rates: the chance that a program for a problem is right.  available: the most tests that a problem has. Where all gains are 0
    (hopeless or sure problems), and among equal ones, those that have fewest come first.
    """
    counts = [0] * len(rates)

    def gain(i: int) -> tuple[float, int, int]:
        # rounded, so that equal ones are equal
        return -round(rates[i] * (1 - rates[i]) ** counts[i], 12), counts[i], i

    waiting = [gain(i) for i in range(len(rates)) if available[i]]
    heapq.heapify(waiting)
    for _ in range(budget):
        if not waiting:
            break
        *_, i = heapq.heappop(waiting)
        counts[i] += 1
        if counts[i] < available[i]:
            heapq.heappush(waiting, gain(i))
    return counts
