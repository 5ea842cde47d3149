"""How good the model is that a run trained to score or to judge, by the measure of its method: a reward model, or a judge."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.api.inputs import begin_run, held_out, policy_of
from rewardlab.api.measuring import check_columns
from rewardlab.api.prompt_lengths import fit_prompts
from rewardlab.core import Recipe, Run, Task
from rewardlab.engine import checkpoint
from rewardlab.engine.learner import learners_of
from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import find
from rewardlab.models.layouts import judge_form_of_run
from rewardlab.models.reads import reads_of
from rewardlab.runs.config import RunConfig, config_of_run


def scorer_recipe(model: Any) -> Recipe | None:
    """The recipe of a run that trained a model that scores, perhaps with others beside it, and no policy: its folder holds it.

    None for any other model.
    """
    document = config_of_run(model) if isinstance(model, str) else None
    if document is None:
        return None
    recipe = registry.load_recipe(document["recipe"])
    # whatever a loop does, a policy without an objective has no optimiser
    taught = [learner.recipe for learner in recipe.also if learner.recipe.objective is not None]
    # what learns beside others may be no scorer: then the run is measured as a policy
    scores = taught and (len(recipe.also) == 1 or taught[0].update.loss_kind == "scorer")
    return recipe if recipe.objective is None and scores and recipe.measure is not None else None


def _as_it_ended(folder: Path, recipe: Recipe, policy: Any, task: Task, config: RunConfig) -> Run:
    """A run whose reward model is measured with the models that learnt beside it, such as one that writes critiques: all as they
    were at the newest checkpoint, with what the method remembered then.
    """
    checkpoints = folder / "checkpoints"
    if not checkpoint.checkpoints(checkpoints):
        raise RewardlabError(f"{folder} keeps no checkpoint, and its reward model is measured with the models that are saved there")
    run = begin_run(recipe, policy, task, config)
    checkpoint.load_weights(checkpoints, learners_of(recipe, run))
    checkpoint.load_memory(checkpoints, run)
    return run


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
    if len(recipe.also) == 1:
        # its own measure shows it what it was taught to read, which older runs do not state
        learner = replace(recipe.also[0], init=model, reads=reads_of(find(model)))
        run = begin_run(recipe.but(also=(learner,)), policy, task, config)
    else:
        run = _as_it_ended(Path(model), recipe, policy, task, config)
    return _measured(model, recipe, run, task, problems)


def judge_recipe(model: Any) -> Recipe | None:
    """The recipe of a run that trained a judge: its policy judges replies, and answers no problems. None for any other model."""
    if not isinstance(model, str) or judge_form_of_run(model) is None:
        return None
    document = config_of_run(model)
    assert document is not None
    recipe = registry.load_recipe(document["recipe"])
    return recipe if recipe.objective is not None and recipe.measure is not None else None


def evaluate_judge(model: str, recipe: Recipe, task: Task, config: RunConfig, problems: int) -> dict[str, Any]:
    """What the method's own measure says of the judge that the run trained, on held-out rows.

    Raises RewardlabError for rows that lack the method's columns.
    """
    check_columns(recipe, task)
    policy = policy_of(model, config, task)
    task, _ = fit_prompts(task, policy, config, recipe)
    # models that learn beside the judge, such as one that weighs its votes, are those of the run
    learns = any(learner.recipe.objective is not None for learner in recipe.also)
    run = _as_it_ended(Path(model), recipe, policy, task, config) if learns else begin_run(recipe, policy, task, config)
    return _measured(model, recipe, run, task, problems)


def _measured(model: str, recipe: Recipe, run: Run, task: Task, problems: int) -> dict[str, Any]:
    assert recipe.measure is not None
    found = recipe.measure(held_out(task, problems), run)
    low, high, n = (found.pop(name, None) for name in ("ci95_low", "ci95_high", "n"))
    first = next(iter(found))
    leading = {"value": found.pop(first), "ci95": [low, high]} if low is not None else found.pop(first)
    return {"model": model, "task": task.name, "n": int(n or 0), first: leading, **found}
