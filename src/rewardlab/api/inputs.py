"""From the arguments of an API call to objects: the configuration, recipe, task and policy, and the run that they begin."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata
from typing import Any

from rewardlab import registry
from rewardlab.core import Problem, Recipe, Run, Task
from rewardlab.errors import RewardlabError
from rewardlab.models.load import Policy, learner_model, load_policy
from rewardlab.runs.config import COLUMNS, RunConfig
from rewardlab.tasks.sources import Shuffled


def configured(
    config: RunConfig | None, model: str | Policy | None, task: Task | str | None, changes: Mapping[str, Any]
) -> RunConfig:
    """The configuration with these changes, and with model and task where they are names; objects cannot be part of it."""
    named = {name: value for name, value in (("model", model), ("task", task)) if isinstance(value, str)}
    return (config or RunConfig()).but(**named, **changes)


def recipe_of(recipe: Recipe | str, settings: Mapping[str, Any] | None = None) -> Recipe:
    """A recipe as it is, or that of a method's name under these settings."""
    return registry.build(recipe, settings or {}) if isinstance(recipe, str) else recipe


def task_of(task: Task | str | None, config: RunConfig) -> Task:
    """The task: an object, or the one that the configuration names. A plain list of training problems is shuffled in each epoch."""
    columns = {name: getattr(config, name) for name in COLUMNS}
    if not isinstance(task, Task):
        task = registry.task(config.task, **columns)
    elif set_columns := [name for name, value in columns.items() if value is not None]:
        # a task object holds its problems already: a column name would have no effect
        raise RewardlabError(
            f"{' and '.join(set_columns)}: only for problems in a file, but the task {task.name} was made in Python"
        )
    if isinstance(task.train, list | tuple):
        if not task.train:
            raise RewardlabError(f"the task {task.name} has no problems to train on")
        task = replace(task, train=Shuffled(task.train))
    return task


def policy_of(model: str | Policy | None, config: RunConfig, task: Task) -> Policy:
    """The policy: an object, or the one that the configuration names; without a name, the small one made for the task."""
    if model is not None and not isinstance(model, str):
        return model
    return load_policy(config.model or task.model, config.device, config.dtype, config.lora_rank, task)


def begin_run(recipe: Recipe, policy: Policy, task: Task, config: RunConfig) -> Run:
    """The state that training starts from, with copies of the policy and second models where the recipe asks for them."""
    config = config.settled()
    run = Run(policy, steps=config.steps, budget=config.budget, seed=config.seed, max_new=config.max_new or task.max_new)
    run.verify = registry.part("reward", task.verifier)
    # only on demand: the reference takes as much memory as the policy's weights
    if any(need == "ref" or need.startswith("reference.") for need in recipe.needs):
        run.reference = policy.copy("reference")
    for learner in recipe.also:
        run.models[learner.name] = learner_model(learner, policy)
    return run


def held_out(task: Task, n: int) -> list[Problem]:
    """The first n problems that are never trained on."""
    if not task.test:
        raise RewardlabError(f"the task {task.name} has no problems to measure on")
    return list(task.test[:n])


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that results depend on."""
    packages = ("rewardlab", "torch", "transformers", "tokenizers", "numpy")
    return {"python": platform.python_version(), **{p: metadata.version(p) for p in packages}}
