"""How good the model is that a run trained beside a policy that stood still: a reward model, by the measure of its method."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rewardlab import registry
from rewardlab.api.inputs import begin_run, held_out, policy_of
from rewardlab.api.measuring import check_columns
from rewardlab.api.prompt_lengths import fit_prompts
from rewardlab.core import Recipe, Task
from rewardlab.runs.config import RunConfig, config_of_run


def scorer_recipe(model: Any) -> Recipe | None:
    """The recipe of a run that trained one model, and no policy: its folder holds that model. None for any other model."""
    document = config_of_run(model) if isinstance(model, str) else None
    if document is None:
        return None
    recipe = registry.load_recipe(document["recipe"])
    # whatever a loop does, a policy without an objective has no optimiser
    alone = recipe.objective is None and len(recipe.also) == 1 and recipe.also[0].recipe.objective is not None
    return recipe if alone and recipe.measure is not None else None


def evaluate_scorer(model: str, recipe: Recipe, task: Task, config: RunConfig, problems: int) -> dict[str, Any]:
    """What the method's own measure says of the run's model on held-out rows; of its leading number the 95% interval too.

    Raises RewardlabError for rows that lack the method's columns.
    """
    check_columns(recipe, task)
    document = config_of_run(model)
    assert document is not None
    # the policy that stood still: it reads the rows, as it did in training
    config = config.but(model=RunConfig.from_json(document).model)
    policy = policy_of(None, config, task)
    task, _ = fit_prompts(task, policy, config, recipe)
    run = begin_run(recipe.but(also=(replace(recipe.also[0], init=model),)), policy, task, config)
    assert recipe.measure is not None
    found = recipe.measure(held_out(task, problems), run)
    low, high, n = (found.pop(name, None) for name in ("ci95_low", "ci95_high", "n"))
    first = next(iter(found))
    leading = {"value": found.pop(first), "ci95": [low, high]} if low is not None else found.pop(first)
    return {"model": model, "task": task.name, "n": int(n or 0), first: leading, **found}
