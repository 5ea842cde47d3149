"""Any task whose replies are verified, as an environment of several tries: after a wrong reply, "try again", and nothing else."""

from __future__ import annotations

from typing import Any

from rewardlab.core import Message, Problem, Turn, environment

State = dict[str, Any]

TOLD = "Incorrect. Please try again."


def _start(problem: Problem, seed: int, **_: Any) -> tuple[Message | None, State]:
    # the rollout writes the verdict on each reply there
    return None, {"task_verdict": None}


@environment(start=_start)
def try_again(state: State, turn: Turn, *, told: str = TOLD) -> tuple[Message | None, State]:
    """Says `told` after a reply that the task's verifier finds wrong; a right reply, or one without a verdict, is the last.

    How often at most is the rollout's setting `turns`. What is said is the same for every mistake, so that it tells nothing but
    that there is one.  Liu et al. 2025, arXiv:2507.14295
    """
    wrong = state["task_verdict"] is not None and state["task_verdict"] < 1.0
    return (Message("user", told) if wrong else None), state
