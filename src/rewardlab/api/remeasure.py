"""Measure a finished run by another measure, before and after its training, from the weights that its folder keeps."""

from __future__ import annotations

import shutil
from pathlib import Path

from rewardlab import registry
from rewardlab.core import Measure
from rewardlab.engine import checkpoint
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.runs.config import RunConfig, read_config

from .inputs import begin_run, policy_of, task_of

Numbers = dict[str, float]


def remeasure(folder: Path, measure: Measure, problems: int | None = None) -> tuple[Numbers, Numbers]:
    """What `measure` finds on held-out problems before and after the training of the run in `folder`.

    problems: how many; None: as many as the run was evaluated on.
    Raises RewardlabError for a folder without a run, or without checkpoints, and for a run that was started with objects made in
    Python, which cannot be loaded again.
    """
    ops = begun_again(folder, "be measured again", measure, problems)
    before = ops.evaluate()
    checkpoint.load_weights(folder / "checkpoints", ops.learners)
    return before, ops.evaluate()


def begun_again(folder: Path, what: str, measure: Measure | None = None, problems: int | None = None) -> Ops:
    """The run in `folder` as it was before its first step, with another measure. Raises RewardlabError, that it cannot `what`."""
    document = read_config(folder)
    config = RunConfig.from_json(document)
    if not document.get("source") or not checkpoint.checkpoints(folder / "checkpoints"):
        raise RewardlabError(f"{folder} cannot {what}: it keeps no checkpoint, or was started with objects made in Python")
    config = config.but(eval_problems=problems or config.eval_problems)
    recipe = registry.load_recipe(document["recipe"])
    recipe = recipe.but(measure=measure) if measure else recipe
    task = task_of(None, config)
    return Ops(recipe, begin_run(recipe, policy_of(None, config, task), task, config), task, config)


def keep_weights(folder: Path) -> None:
    """Remove from the folder of a finished run the weights that `remeasure` does not need: models and optimisers."""
    checkpoint.keep_weights(folder / "checkpoints")
    for model in ("best", "model"):
        shutil.rmtree(folder / model, ignore_errors=True)
