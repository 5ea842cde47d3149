"""pass@k of a model on held-out problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rewardlab.core import Problem, Recipe, Task
from rewardlab.core.domain import NOT_NEGATIVE, POSITIVE, WORKERS
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import count_right, mean_interval, pass_at
from rewardlab.models.load import Policy
from rewardlab.runs.config import RunConfig, config_of_run, refuse_missing
from rewardlab.util.progress import in_batches

from .arguments import named_model
from .cluster import check_named, spread
from .fitting import fit_prompts, text_reader
from .inputs import as_in_run, begin_run, held_out, policy_of, task_of
from .measuring import need_answers, without_answers
from .result import Result

BATCH = 32
"""Problems that a process of a cluster samples at a time."""


def evaluate(
    model: str | Path | Result | Policy, task: Task | str | None = None, *, k: Sequence[int] = (1, 8), problems: int = 200,
    temperature: float = 1.0, workers: str | None = None, **settings: Any,
) -> dict[str, Any]:  # fmt: skip
    """pass@k on held-out problems, with 95% intervals over problems.

    task: None means that of the run that `model` names, with its columns, system message and length of replies.  workers: "ray" or
    "ray:N", to sample and judge over a Ray cluster, each batch of problems with random numbers of its own: the same whatever the
    processes, and others than without workers.
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
    if workers is not None:
        WORKERS.check("workers", workers)
    refuse_missing(model)
    if task is None and config_of_run(model) is None:
        raise RewardlabError("which task? only a run has one of its own")
    config, task = as_in_run(model, task, settings)
    task = task_of(task, config)
    if without_answers(task):
        raise need_answers(task, "pass@k")
    # refused before a model is loaded, if there are none
    held_out(task, problems)
    # one set of max(k) replies gives the unbiased estimate of pass@k for every smaller k too
    n, what = max(k), (model, config, task, problems, (max(k), temperature))
    right_counts = _right_over(workers, *what) if workers else _right_here(*what)
    scores = {f"pass@{i}": with_interval([pass_at(i, n, r) for r in right_counts]) for i in k}
    return {"model": model if isinstance(model, str) else model.name, "task": task.name, "n": len(right_counts), **scores}


def _right_here(model: str | Policy, config: RunConfig, task: Task, problems: int, sampling: tuple[int, float]) -> list[int]:
    """How many of n replies to each problem are right."""
    policy = policy_of(model, config, task)
    task, _ = fit_prompts(task, policy, config)
    run = begin_run(Recipe(), policy, task, config)
    return [sum(row) for batch in in_batches("evaluating", held_out(task, problems)) for row in count_right(batch, run, *sampling)]


def _right_over(
    workers: str, model: str | Policy, config: RunConfig, task: Task, problems: int, sampling: tuple[int, float]
) -> list[int]:
    """The same over a cluster, whose processes load the model; this one reads prompts alone."""
    check_named(model)
    task, _ = fit_prompts(task, text_reader(model, config, task), config)
    tested = held_out(task, problems)
    batches = [tested[i : i + BATCH] for i in range(0, len(tested), BATCH)]
    # a worker needs of the task what its policy is made for, and its verifier
    about = (model, config, replace(task, train=tested[:1], test=()), sampling)
    counting = "rewardlab.api.evaluation:counting"
    answers = spread("evaluating", workers, counting, about, list(enumerate(batches)), list(map(len, batches)), config.device)
    return [count for answer in answers for count in answer]


def counting(
    model: str, config: RunConfig, task: Task, sampling: tuple[int, float]
) -> Callable[[int, Sequence[Problem]], list[int]]:
    """What a process of a cluster does: count the right replies to a batch of problems."""
    run = begin_run(Recipe(), policy_of(model, config, task), task, config)

    def count(number: int, problems: Sequence[Problem]) -> list[int]:
        # random numbers depend on the seed and the batch alone, whichever process has it
        run.step = number
        return [sum(row) for row in count_right(problems, run, *sampling)]

    return count


def with_interval(values: Sequence[float]) -> dict[str, Any]:
    """The mean of the values, with its 95% interval."""
    low, high = mean_interval(values)
    return {"value": sum(values) / len(values), "ci95": [low, high]}
