"""Whether rows come again in a run of a method that learns from their earlier visits."""

from __future__ import annotations

import math
from collections.abc import Sized

from rewardlab.api.checking import stated_data
from rewardlab.core import Recipe, Task
from rewardlab.runs.config import RunConfig
from rewardlab.util.progress import console

TWICE = 2


def tell_visits(recipe: Recipe, task: Task, config: RunConfig) -> None:
    """Print it where most rows of the task are not visited twice, and the method says that it does something only then."""
    if told := few_visits(recipe, task, config):
        console.print(f"warning: {told}", highlight=False, markup=False, soft_wrap=True)


def few_visits(recipe: Recipe, task: Task, config: RunConfig) -> str:
    """What the method misses in a run of so many updates, and what to do; "" where rows come again, or nothing is missed.

    A run that ends with a budget of tokens may visit any number of rows, and is not told of.
    """
    known = [data for name in str(recipe.name).split("+") if (data := stated_data(name))]
    again = ", and ".join(data.again for data in known if data.again)
    if not again:
        return ""
    misses, steps = f"{recipe.name} {again}", int(config.settled().steps)
    if not isinstance(task.train, Sized):
        return f"{misses}, and {task.name} makes a new problem each time: name a file, or a task with a size ({task.name}:size=128)"
    rows, seen = len(task.train), steps * recipe.update.problems
    if seen >= TWICE * rows:
        return ""
    enough = math.ceil(TWICE * rows / recipe.update.problems)
    return (
        f"{misses}, and {steps} updates of {recipe.update.problems} prompts visit each of {rows:,} rows {seen / rows:.1g} "
        f"times: take --steps {enough} or more, or {seen // TWICE} rows or fewer"
    )
