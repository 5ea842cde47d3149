"""How good a model is that was trained to score or to judge, on held-out rows.

The run of a reward model, or of a judge, is measured by the measure of its method. On plain pairs, which lack what that reads, and
for reward models that are no run, an export or another sequence classifier, the measure is `pair_accuracy`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab import registry
from rewardlab.api.checking import check_columns, instead_of_pairs, of_another_kind, undecided
from rewardlab.api.inputs import begin_run, held_out, policy_of
from rewardlab.api.prompt_lengths import fit_prompts
from rewardlab.core import Message, Problem, Recipe, Run, Task
from rewardlab.engine import checkpoint
from rewardlab.engine.learner import learners_of
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import pairs_told, preference_margins
from rewardlab.models.checkpoint import find
from rewardlab.models.layouts import judge_form_of_run
from rewardlab.models.reads import reads_of
from rewardlab.models.reward_model import is_reward_model, load_reward_model
from rewardlab.runs.config import RunConfig
from rewardlab.runs.named import config_of_run
from rewardlab.text.reference import reference_of

SIDES = ("chosen", "rejected")


def evaluate_as_trained(model: Any, task: Task, config: RunConfig, problems: int, *, judged: bool) -> dict[str, Any] | None:
    """What is measured of a model that scores or judges; None for one that answers problems.

    judged: its replies are to be judged, as those of one that answers problems are.
    """
    if (recipe := scorer_recipe(model)) is not None:
        return evaluate_scorer(str(model), recipe, task, config, problems)
    if not judged and (recipe := judge_recipe(model)) is not None:
        return evaluate_judge(str(model), recipe, task, config, problems)
    if not judged and undecided(task) and learns_preferences(model) and _pairs_in(held_out(task, problems)):
        return evaluate_preferences(str(model), task, config, problems)
    return evaluate_pairs(str(model), task, config, problems) if not judged and is_classifier(model) else None


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

    Plain pairs, in the place of rows as the method reads them, are ranked by the scores that `model:RUN` gives.
    Raises RewardlabError for other rows that lack the method's columns.
    """
    if of_another_kind(recipe, task) and _pairs_in(held_out(task, problems)) and not reads_of(find(model)):
        return evaluate_pairs(model, task, config, problems)
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
        _remember(Path(model), run)
    else:
        run = _as_it_ended(Path(model), recipe, policy, task, config)
    return _measured(model, recipe, run, task, problems)


def _remember(folder: Path, run: Run) -> None:
    """Give the run what its method knew when the best model was saved, or else at the end; nothing, where no checkpoint is kept."""
    if checkpoint.checkpoints(folder / "checkpoints"):
        summary = folder / "summary.json"
        best = json.loads(summary.read_text("utf-8")).get("best") if summary.is_file() else None
        checkpoint.load_memory(folder / "checkpoints", run, best["step"] if best else None)


def is_classifier(model: Any) -> bool:
    """Whether a name stands for a reward model by itself, and not for the policy of a run: PATH, model:PATH, PATH?principle=..."""
    return isinstance(model, str) and is_reward_model(model)


def evaluate_pairs(model: str, task: Task, config: RunConfig, problems: int) -> dict[str, Any]:
    """How often a reward model, of whatever origin, ranks held-out pairs right; as `pair_accuracy`, by tokens of its own.

    Raises RewardlabError for rows without pairs.
    """
    rows = held_out(task, problems)
    if not _pairs_in(rows):
        has = ", ".join(task.columns) or "nothing"
        raise RewardlabError(
            f"{model} is a reward model, which is measured on pairs of replies, and rows of {task.name} lack a text in the column "
            f"'chosen' or 'rejected' (they have: {has}){_instead(rows, task)}"
        )
    scorer = load_reward_model(model, config.device, config.dtype)
    # both replies of a pair beside each other, as in measures: what is sampled about them is then the same
    read = scorer.read([(*_last_reply(p, side), reference_of(p)) for p in rows for side in SIDES])
    scores, _, tokens = (np.array(column).reshape(-1, 2).T for column in zip(*read, strict=True))
    return _document(model, task, pairs_told(scores[0], scores[1], tokens[0] - tokens[1]))


def _instead(rows: Sequence[Problem], task: Task) -> str:
    """What reads such rows, where they hold replies of another form."""
    told = instead_of_pairs(rows[0].meta, task) if rows else ""
    return f"; {told}" if told else ""


def _last_reply(problem: Problem, side: str) -> tuple[tuple[Message, ...], str]:
    """What comes before the last reply of a side, and that reply: a side may be several turns of a conversation."""
    *before, reply = turns if isinstance(turns := problem.meta[side], list) else [turns]
    return (*problem.prompt, *(Message(("assistant", "user")[i % 2], text) for i, text in enumerate(before))), reply


def _pairs_in(rows: Sequence[Problem]) -> bool:
    return all(isinstance(p.meta.get(side), str | list) and p.meta[side] != [] for p in rows for side in SIDES)


def learns_preferences(model: Any) -> bool:
    """Whether a name is that of a run whose policy learnt from pairs of replies, such as one of dpo."""
    document = config_of_run(model) if isinstance(model, str) else None
    recipe = None if document is None else registry.load_recipe(document["recipe"])
    return recipe is not None and recipe.objective is not None and recipe.update.loss_kind == "preference"


def evaluate_preferences(model: str, task: Task, config: RunConfig, problems: int) -> dict[str, Any]:
    """How often a policy finds the chosen reply of a held-out pair likelier than the rejected one: rows without answers let nobody
    say whether its own replies are right. Without the policy that it began as, so that no margin to that one is told.
    """
    policy = policy_of(model, config, task)
    task, _ = fit_prompts(task, policy, config)
    return _measured(model, Recipe(measure=preference_margins()), begin_run(Recipe(), policy, task, config), task, problems)


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
    return _document(model, task, recipe.measure(held_out(task, problems), run.for_evaluation()))


def _document(model: str, task: Task, found: dict[str, float]) -> dict[str, Any]:
    """The leading number with its interval, and the others."""
    low, high, n = (found.pop(name, None) for name in ("ci95_low", "ci95_high", "n"))
    first = next(iter(found))
    leading = {"value": found.pop(first), "ci95": [low, high]} if low is not None else found.pop(first)
    return {"model": model, "task": task.name, "n": int(n or 0), first: leading, **found}
