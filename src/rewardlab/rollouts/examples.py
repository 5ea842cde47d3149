"""Rollouts before which problems are put aside, for a reward to learn from."""

from __future__ import annotations

from rewardlab.core import Group, Problem, Rollout, Run, rollout
from rewardlab.core.domain import PositiveInt

EXAMPLES = "examples"
"""The key of `run.memory` that holds their columns."""


@rollout(inner="of")
def with_examples(
    problems: list[Problem], run: Run, *, of: Rollout, n: PositiveInt = 64, columns: tuple[str, ...] = ()
) -> list[Group]:  # fmt: skip
    """What `of` samples. Once, before the first step, n further problems are remembered, which are not answered then.

    columns: those that are kept of each. Where no further problems can be asked for, those of the step are remembered.
    """
    if EXAMPLES not in run.memory:
        seen = run.more_problems(n) if run.more_problems else problems
        run.memory[EXAMPLES] = [{c: p.meta[c] for c in columns if c in p.meta} for p in seen]
    return of(problems, run)
