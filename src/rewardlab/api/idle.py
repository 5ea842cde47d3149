"""Whether a task or a run leaves a method idle: rows lack the column that it is about, or do not come again where it learns from
earlier visits, or all steps are its first stage. It runs all the same, as another method does, and would be compared as if it had
been at work. Beside these, whether its credit pays for the number of steps (`step_rewards.py`)."""

from __future__ import annotations

import math
from collections.abc import Sized

from rewardlab import registry
from rewardlab.api.checking import settings_of
from rewardlab.api.stages import first_stage_alone
from rewardlab.api.step_rewards import paid_by_number
from rewardlab.core import Recipe, Task
from rewardlab.data.columns import Data
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Listed
from rewardlab.util.progress import console
from rewardlab.util.ranks import is_first


def tell_idle(recipe: Recipe, task: Task, config: RunConfig) -> None:
    """Print what a method does not do on these rows in a run of so many updates, and what it does to rewards of steps."""
    if not is_first():
        return
    told_of = (*lacking(recipe, task), few_visits(recipe, task, config), *first_stage_alone(recipe, config), paid_by_number(recipe))
    for told in filter(None, told_of):
        console.print(f"warning: {told}", highlight=False, markup=False, soft_wrap=True)


def lacking(recipe: Recipe, task: Task) -> list[str]:
    """What becomes of the method since no row to train on has a column; of a task that makes its problems nothing is known."""
    data = _data_of(recipe)
    if data is None or not data.idle or not isinstance(task.train, Listed):
        return []
    found = data.idle_on((dict(p.meta) for p in task.train.problems), settings_of(recipe))
    return [f"no row of {task.name} to train on has {columns}, so that {recipe.name} {says}" for columns, says in found.items()]


def _data_of(recipe: Recipe) -> Data | None:
    name = str(recipe.name)
    return registry.data_of(name) if registry.methods().keys() >= set(name.split("+")) else None


def few_visits(recipe: Recipe, task: Task, config: RunConfig) -> str:
    """What the method misses in a run of so many updates, and what to do; "" where rows come again, or nothing is missed.

    A run that ends with a budget of tokens may visit any number of rows, and is not told of.
    """
    data = _data_of(recipe)
    if data is None or not data.again:
        return ""
    misses, visits = f"{recipe.name} {data.again}", data.visits
    if not isinstance(task.train, Sized):
        return f"{misses}, and {task.name} makes a new problem each time: name a file, or a task with a size ({task.name}:size=128)"
    steps, prompts, rows = int(config.settled().steps), recipe.update.problems, len(task.train)
    if steps * prompts >= visits * rows:
        return ""
    # rounded down, so that what is too few is not told as enough
    seen = math.floor(100 * steps * prompts / rows) / 100
    fewer = steps * prompts // visits
    return (
        f"{misses}, and {steps} updates of {prompts} prompts visit each of {rows:,} rows {seen:g} times, where {visits} are "
        f"needed: take --steps {math.ceil(visits * rows / prompts)} or more" + (f", or {fewer} rows or fewer" if fewer else "")
    )
