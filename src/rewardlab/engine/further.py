"""Further training problems for a rollout that leaves some of a step's out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rewardlab.core import Problem, Run
from rewardlab.engine.distributed import all_gather, rank, world_size
from rewardlab.engine.learner import LearnerState


@contextmanager
def further_problems(ops: Any, run: Run, learner: LearnerState, across: bool) -> Iterator[None]:
    """In this context the policy's rollout may ask for further training problems by `run.more_problems`.

    ops: of the step, whose position in the data moves on. Each rank takes problems that no other gets, and all then go on from the
    same position.  across: whether rank zero alone samples, since the rollout is not sharded.
    """
    if not (learner.is_policy and ops.refills):
        yield
        return
    ranks, taken = 1 if across else world_size(), 0

    def more(n: int) -> list[Problem]:
        nonlocal taken
        taken += n
        return [ops.task.train[ops.position + ranks * i + rank() % ranks] for i in range(taken - n, taken)]

    run.more_problems = more
    try:
        yield
    finally:
        run.more_problems = None
    counts = all_gather(taken)
    ops.position += ranks * max(counts)
    if any(counts):
        ops.run.log("further_problems", sum(counts))
