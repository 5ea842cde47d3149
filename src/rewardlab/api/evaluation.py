"""pass@k of a model on held-out problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewardlab.core import Recipe, Task
from rewardlab.evals.passk import count_right, mean_interval, pass_at
from rewardlab.models.load import Policy
from rewardlab.runs.config import POSITIVE, TEMPERATURE
from rewardlab.util.progress import in_batches

from .inputs import begin_run, configured, held_out, policy_of, task_of


def evaluate(
    model: str | Policy, task: Task | str, *, k: Sequence[int] = (1, 8), problems: int = 200, temperature: float = 1.0,
    **settings: Any,
) -> dict[str, Any]:  # fmt: skip
    """pass@k on held-out problems, with 95% intervals over problems.

    settings: fields of RunConfig: seed, device, dtype, max_new, prompt_column ...
    """
    # all values are checked before a policy is loaded, which may take minutes
    POSITIVE.check("problems", problems)
    for tries in k:
        POSITIVE.check("k", tries)
    TEMPERATURE.check("temperature", temperature)
    config = configured(None, model, task, settings)
    task = task_of(task, config)
    test_problems, n = held_out(task, problems), max(k)
    policy = policy_of(model, config, task)
    run = begin_run(Recipe(), policy, task, config)
    # one set of max(k) replies gives the unbiased estimate of pass@k for every smaller k too
    right_counts = [
        sum(row) for batch in in_batches("evaluating", test_problems) for row in count_right(batch, run, n, temperature)
    ]
    scores = {f"pass@{i}": with_interval([pass_at(i, n, r) for r in right_counts]) for i in k}
    return {"model": model if isinstance(model, str) else policy.name, "task": task.name, "n": len(test_problems), **scores}


def with_interval(values: Sequence[float]) -> dict[str, Any]:
    """The mean of the values, with its 95% interval."""
    low, high = mean_interval(values)
    return {"value": sum(values) / len(values), "ci95": [low, high]}
