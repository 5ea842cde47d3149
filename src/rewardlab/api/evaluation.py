"""pass@k of a model on held-out problems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewardlab.core import Recipe, Task
from rewardlab.core.domain import NOT_NEGATIVE, POSITIVE
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import count_right, mean_interval, pass_at
from rewardlab.models.load import Policy
from rewardlab.runs.config import config_of_run, refuse_missing
from rewardlab.util.progress import in_batches

from .arguments import named_model
from .fitting import fit_prompts
from .inputs import as_in_run, begin_run, held_out, policy_of, task_of
from .measuring import need_answers, without_answers
from .result import Result


def evaluate(
    model: str | Path | Result | Policy, task: Task | str | None = None, *, k: Sequence[int] = (1, 8), problems: int = 200,
    temperature: float = 1.0, **settings: Any,
) -> dict[str, Any]:  # fmt: skip
    """pass@k on held-out problems, with 95% intervals over problems.

    task: None means that of the run that `model` names, with its columns, system message and length of replies.
    settings: fields of RunConfig: seed, device, dtype, max_new, prompt_column ...
    """
    # all values are checked before a policy is loaded, which may take minutes
    POSITIVE.check("problems", problems)
    if isinstance(k, int | str) or not k:
        raise RewardlabError(f"k must be one or more numbers of tries, such as k=(1, 8), not {k!r}")
    model = named_model(model)
    if model is None:
        raise RewardlabError("which model? Give a name, a run, or a policy")
    for tries in k:
        POSITIVE.check("k", tries)
    NOT_NEGATIVE.check("temperature", temperature)
    refuse_missing(model)
    if task is None and config_of_run(model) is None:
        raise RewardlabError("which task? only a run has one of its own")
    config, task = as_in_run(model, task, settings)
    task = task_of(task, config)
    if without_answers(task):
        raise need_answers(task, "pass@k")
    # refused before a model is loaded, if there are none
    held_out(task, problems)
    policy = policy_of(model, config, task)
    task, _ = fit_prompts(task, policy, config)
    run = begin_run(Recipe(), policy, task, config)
    test_problems, n = held_out(task, problems), max(k)
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
