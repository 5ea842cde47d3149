"""A training plan without training: computation and requirements."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.api.arguments import check_settings, named_model
from rewardlab.api.inputs import configured, policy_of, recipe_of, require_learning, task_of
from rewardlab.api.machine import disk_bytes, disk_free
from rewardlab.api.measuring import check_columns, measured
from rewardlab.api.played import played
from rewardlab.api.prompt_lengths import fit_prompts
from rewardlab.core import Problem, Recipe, Task, Trajectory, Turn
from rewardlab.engine.learner import fitting_tokens
from rewardlab.engine.rates import told
from rewardlab.models.load import Policy
from rewardlab.rewards.returned import is_ours
from rewardlab.rewards.reward import Reward
from rewardlab.runs.config import RunConfig
from rewardlab.settings.hyperparameters import positional

PROMPTS = 50
"""Prompts whose mean length is taken for the mean of all."""
JUDGED = 8
"""Problems that the rewards are tried on."""


def plan(
    recipe: Recipe | str, model: str | Policy | None = None, task: Task | str | None = None, *,
    config: RunConfig | None = None, settings: Mapping[str, Any] | None = None, **changes: Any,
) -> dict[str, Any]:  # fmt: skip
    """The formula, the tokens and bytes of memory that a step of `train` would need, and the lengths of the prompts.

    columns: of the data.  batch_columns: what the recipe computes beside them, such as the reference's log-probabilities.
    no_verdict: rewards that judge none of the first problems when the reply is the gold answer, and what they say is missing.

    disk_bytes: the least that its models would take on disk; disk_free_bytes: what is free there.
    Raises RewardlabError for what would end such a run, such as prompts too long for the model.
    """
    check_settings(recipe, settings, changes)
    model = named_model(model)
    recipe, config = recipe_of(recipe, settings), configured(config, model, task, changes)
    require_learning(recipe)
    task = task_of(task, config)
    check_columns(recipe, task)
    recipe = measured(played(recipe, task), task)
    policy = policy_of(model, config, task)
    task, prompts = fit_prompts(task, policy, config, recipe)
    rows = recipe.update.problems * recipe.rows_per_problem
    # an upper bound: every reply at full length
    tokens = int(rows * (_mean_prompt(policy, task) + (config.max_new or task.max_new)))
    weights = sum(p.numel() for p in policy.parameters())
    trained = (recipe.objective is not None) + len(recipe.also)
    # the reference, if a part reads it, beside the models that learn
    loaded = 1 + len(recipe.also) + ("ref" in recipe.needs)
    # a backward pass holds the activations of one micro-batch, not of the whole batch
    activations = policy.activation_bytes(min(tokens, config.micro_tokens or fitting_tokens(policy)))
    # weights, and for each model that trains a gradient and the two moments of Adam, all in float32
    return {
        "formula": str(recipe), "learning_rates": told(recipe, policy, {}), "columns": list(task.columns),
        "batch_columns": list(recipe.needs), "tokens_per_step": tokens, "rows_per_step": rows,
        "memory_bytes": 4 * weights * (loaded + 3 * trained) + activations, "parameters": weights,
        "prompts": prompts, "no_verdict": _without_verdict(recipe, task),
        # second learners are taken to be as large as the policy
        "disk_bytes": disk_bytes(recipe, policy, {learner.name: policy for learner in recipe.also}, config),
        "disk_free_bytes": disk_free(Path(config.out or "runs")),
    }  # fmt: skip


def _mean_prompt(policy: Policy, task: Task) -> float:
    """The mean length in tokens of the first training prompts."""
    problems = [task.train[i] for i in range(PROMPTS)]
    read = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    return sum(len(t) for t in read) / len(read)


def _without_verdict(recipe: Recipe, task: Task) -> dict[str, str]:
    """Rewards of single replies by name, and why they judged none: mostly, the data lacks a column that they read.

    Rewards of whole groups, of models and of the user's own files are not tried: they may take long, or need a run.
    """
    if not isinstance(recipe.reward, Reward):
        return {}
    groups = [[_gold(task.train[i])] for i in range(JUDGED)]
    scores = {part.name: [score for (score,) in part(groups)] for part in recipe.reward.walk() if _tried(part)}
    return {name: row[0].why for name, row in scores.items() if all(score.missing for score in row)}


def _tried(part: Any) -> bool:
    single = isinstance(part, Reward) and getattr(part.options, "over", None) == "trajectory" and not part.of
    return single and is_ours(part.function) and len(positional(part.function)) == 1


def _gold(problem: Problem) -> Trajectory:
    text = str(problem.meta.get("solution") or problem.answer or "")
    return Trajectory(problem, (Turn("policy", np.zeros(1, np.int64), text=text),), "end")
