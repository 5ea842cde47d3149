"""Throughput of the verifiers on GSM8K-style answers: worked solutions that end on a number, half of them a wrong one.

The solutions are GSM8K's own test split, which `REWARDLAB_DATA` holds.
"""

from __future__ import annotations

from typing import Any

from _math import Triple, by_math_verify, by_rewardlab, compared, measured
from _sides import Rows, main

ENDINGS = (
    "The answer is {}.", "#### {}", "So the final answer is $\\boxed{{{}}}$.", "Therefore, the answer is ${}.", "\\boxed{{{}}}",
    "**Answer:** {}", "That makes {} in total.",
)  # fmt: skip


def run(*, count: int = 1319) -> Rows:
    return compared("math-gsm8k", __file__, {"answers": "GSM8K, test split, half of them wrong"}, count=count)


def pairs(count: int) -> list[Triple]:
    """Every second reply ends on the number of the problem after it, or on one more."""
    from rewardlab import registry

    problems = registry.task("gsm8k").test[:count]
    found = []
    for i, problem in enumerate(problems):
        other = problems[(i + 1) % len(problems)].answer
        wrong = other if other != problem.answer else f"{problem.answer}1"
        right = i % 2 == 0
        solution = problem.meta["solution"].rpartition("\nAnswer:")[0]
        ending = ENDINGS[i // 2 % len(ENDINGS)].format(problem.answer if right else wrong)
        found.append((f"{solution}\n{ending}", f"{solution}\n#### {problem.answer}", right))
    return found


def ours(*, count: int) -> dict[str, Any]:
    return measured(by_rewardlab, pairs(count))


def peer(*, count: int) -> dict[str, Any]:
    return measured(by_math_verify, pairs(count))


if __name__ == "__main__":
    main(run, {"ours": ours, "peer": peer})
