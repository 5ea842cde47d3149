"""Rewards for programs that are judged by several tests, whichever verifier runs them: `code` in the sandbox, or one of a world.

A verifier says of each test whether it was passed (`Score.tests`), and beside its verdict whether the program `compiled`, whether
it `ran` and what it cost: `operations` where they are counted, else `seconds`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import numpy as np

from rewardlab.core import Group, Problem, Run, Score, Scores, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat

Tier = Literal["compile_error", "runtime_error", "wrong", "right"]
COSTS = ("operations", "seconds")
MEMORY = "tests.reference_cost"


@reward(over="groups")
def weighted_tests(
    groups: list[Group], run: Run, *, alpha: NonNegativeFloat = 1.0, sigma: PositiveFloat = 0.1, delta: NonNegativeFloat = 1e-6
) -> Scores:
    """For each reply the weights of the tests that it passes, at its end; in an episode every reply is tested.

        w_j = exp(-alpha rho_j) / (sum_k exp(-(rho_j - rho_k)^2 / 2 sigma^2) + delta)

    rho_j: the share of the group's replies that pass test j. Tests that few pass weigh more, and those passed equally often
    share one weight, however many they are. Raises RewardlabError where the task's verifier tells no single tests.
    Wang et al. 2026, arXiv:2601.03525
    """
    # one row for each reply of an episode
    replies = [[_alone(t, i) for t in group for i in range(len(t.ends))] for group in groups]
    verdicts = _verdicts(groups, replies, run)
    _require(verdicts, "passed", "weighted_tests: the task's verifier tells no single tests")
    return [_weighted(group, row, alpha, sigma, delta) for group, row in zip(groups, verdicts, strict=True)]


def _require(verdicts: Scores, name: str, why: str) -> None:
    """Raise RewardlabError where there are verdicts, and none has a number of this name."""
    known = [s for row in verdicts for s in row if not s.missing]
    if known and all(_number(s, name) is None for s in known):
        raise RewardlabError(f"{why}; use `code`, with answers of tests or of io pairs")


def _alone(t: Trajectory, i: int) -> Trajectory:
    return replace(t, turns=(Turn("policy", np.zeros(0, np.int64), text=t.replies[i]),), steps=())


def _verdicts(groups: list[Group], replies: list[Group], run: Run) -> Scores:
    # a single reply has been judged already, or will be: running programs is what costs
    if all(len(t.ends) == 1 for group in groups for t in group):
        return run.verdicts(groups)
    return run.verify(replies, run)


def _weighted(group: Group, verdicts: list[Score], alpha: float, sigma: float, delta: float) -> list[Score]:
    tests = max((len(s.tests) for s in verdicts), default=0)
    # a program that never came to its tests has passed none of them
    passed = {k: np.array([*s.tests, *[False] * (tests - len(s.tests))], float) for k, s in enumerate(verdicts) if not s.missing}
    weights = weights_of(np.array(list(passed.values())), alpha, sigma, delta) if passed else np.zeros(0)
    paid = [float(weights @ passed[k]) if k in passed else None for k in range(len(verdicts))]
    counts = np.cumsum([0, *(len(t.ends) for t in group)])
    scores = []
    for t, (first, end) in zip(group, pairwise(counts), strict=True):
        own = paid[first:end]
        if not own or None in own:
            scores.append(Score(None, why=next((s.why for s in verdicts[first:end] if s.missing), "no reply")))
        else:
            scores.append(Score(steps=[(at, value) for at, value in zip(t.ends, own, strict=True) if value is not None]))
    return scores


def weights_of(passed: np.ndarray, alpha: float, sigma: float, delta: float) -> np.ndarray:
    """(tests,) the weight of each test; passed: (replies, tests) of 0 and 1."""
    rate = passed.mean(0)
    alike = np.exp(-((rate[:, None] - rate[None, :]) ** 2) / (2 * sigma**2)).sum(1)
    return np.exp(-alpha * rate) / (alike + delta)


@reward(over="groups")
def execution_tiers(
    groups: list[Group], run: Run, *, compile_error: float = -1.0, runtime_error: float = -0.6, wrong: float = -0.3,
    right: float = 1.0,
) -> Scores:  # fmt: skip
    """The outcome of running a program, as one of four hand-set numbers: syntax error, runtime error, failed test, or all tests
    passed. The defaults are CodeRL's: Le et al. 2022, arXiv:2207.01780
    """
    verdicts = run.verdicts(groups)
    _require(verdicts, "ran", "execution_tiers: the task's verifier does not tell whether a program ran")
    worth = {"compile_error": compile_error, "runtime_error": runtime_error, "wrong": wrong, "right": right, None: None}
    return [[Score(worth[tier_of(s)], why=s.why) for s in row] for row in verdicts]


def tier_of(verdict: Score) -> Tier | None:
    """How far a program came; None without a verdict."""
    if verdict.missing or verdict.value is None:
        return None
    if verdict.value >= 1.0:
        return "right"
    if _number(verdict, "ran"):
        return "wrong"
    # a verifier that does not say has read the program
    return "compile_error" if _number(verdict, "compiled") == 0.0 else "runtime_error"


@reward(over="groups")
def right_and_fast(
    groups: list[Group], run: Run, *, error: float = -1.0, wrong: float = -0.5, speed: float = 0.5, max_ratio: PositiveFloat = 1.0,
    reference: str = "solution",
) -> Scores:  # fmt: skip
    """The outcome of running a program, in tiers: `error` where it does not run, `wrong` where a test fails, and if it is right

        1 - speed + speed min(cost of the reference / cost, max_ratio)

    reference: the column with a right program; it is run once, by the same verifier. No verdict on a right program where it has
    none, or where that one is not right. Yang et al. 2024, arXiv:2412.17264
    """
    verdicts = run.verdicts(groups)
    _require(verdicts, "ran", "right_and_fast: the task's verifier does not tell whether a program ran")
    known = _reference_costs([group[0].problem for group in groups if group], run, reference)
    return [
        [_level(s, known[t.problem.key], error, wrong, speed, max_ratio) for t, s in zip(group, row, strict=True)]
        for group, row in zip(groups, verdicts, strict=True)
    ]


def _level(s: Score, reference: float | None, error: float, wrong: float, speed: float, most: float) -> Score:
    tier = tier_of(s)
    if tier != "right":
        return Score({None: None, "wrong": wrong}.get(tier, error), why=s.why)
    cost = cost_of(s)
    if reference is None or cost is None:
        return Score(None, why="there is no right reference program to compare with, or its cost is not known")
    # a clock may show 0 for a short program
    return Score(1 - speed + speed * min(reference / max(cost, 1e-9), most), why=f"costs {cost:.4g}, reference {reference:.4g}")


@reward(over="groups")
def log_cost(groups: list[Group], run: Run, *, reference: str = "solution") -> Scores:
    """log(cost / cost of the reference): below 0 where the program is cheaper. No verdict where either is not known."""
    known = _reference_costs([group[0].problem for group in groups if group], run, reference)
    rows = zip(groups, run.verdicts(groups), strict=True)
    return [[_log(cost_of(s), known[t.problem.key]) for t, s in zip(group, row, strict=True)] for group, row in rows]


def _log(cost: float | None, reference: float | None) -> Score:
    return Score(math.log(cost / reference) if cost and reference else None, why=f"costs {cost}, reference {reference}")


def cost_of(verdict: Score) -> float | None:
    """What a program took: operations where the verifier counts them, else seconds; None where it tells neither."""
    return next((x for name in COSTS if (x := _number(verdict, name)) is not None), None)


def _number(verdict: Score, name: str) -> float | None:
    return next((term.value for key, term in verdict.terms.items() if key.endswith(f".{name}")), None)


def _reference_costs(problems: list[Problem], run: Run, column: str) -> dict[str, float | None]:
    """By the problem's key; those of new problems are measured together."""
    memory = run.memory.setdefault(MEMORY, {})
    new = {p.key: p for p in problems if p.key not in memory}
    texts = {key: p.meta.get(column) for key, p in new.items()}
    tried = {key: text for key, text in texts.items() if isinstance(text, str) and text.strip()}
    rows = [[Trajectory(new[key], (Turn("policy", np.zeros(0, np.int64), text=text),), "end")] for key, text in tried.items()]
    found = {key: row[0] for key, row in zip(tried, run.verify(rows, run) if rows else [], strict=True)}
    for key in new:
        score = found.get(key)
        memory[key] = cost_of(score) if score is not None and score.value is not None and score.value >= 1.0 else None
    return {p.key: memory[p.key] for p in problems}
