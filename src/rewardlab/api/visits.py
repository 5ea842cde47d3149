"""Whether rows come again in a run of a method that learns from their earlier visits."""

from __future__ import annotations

import math
from collections.abc import Sized

from rewardlab import registry
from rewardlab.core import Recipe, Task
from rewardlab.runs.config import RunConfig
from rewardlab.util.progress import console
from rewardlab.util.ranks import is_first


def tell_visits(recipe: Recipe, task: Task, config: RunConfig) -> None:
    """Print it where rows of the task are not visited often enough for what the method does where they come again."""
    if is_first() and (told := few_visits(recipe, task, config)):
        console.print(f"warning: {told}", highlight=False, markup=False, soft_wrap=True)


def few_visits(recipe: Recipe, task: Task, config: RunConfig) -> str:
    """What the method misses in a run of so many updates, and what to do; "" where rows come again, or nothing is missed.

    A run that ends with a budget of tokens may visit any number of rows, and is not told of.
    """
    name = str(recipe.name)
    data = registry.data_of(name) if registry.methods().keys() >= set(name.split("+")) else None
    if data is None or not data.again:
        return ""
    misses, visits = f"{name} {data.again}", data.visits
    if not isinstance(task.train, Sized):
        return f"{misses}, and {task.name} makes a new problem each time: name a file, or a task with a size ({task.name}:size=128)"
    steps, prompts, rows = int(config.settled().steps), recipe.update.problems, len(task.train)
    if steps * prompts >= visits * rows:
        return ""
    # rounded down, so that what is too few is not told as enough
    seen = math.floor(100 * steps * prompts / rows) / 100
    return (
        f"{misses}, and {steps} updates of {prompts} prompts visit each of {rows:,} rows {seen:g} times, where {visits} are "
        f"needed: take --steps {math.ceil(visits * rows / prompts)} or more, or {steps * prompts // visits} rows or fewer"
    )
