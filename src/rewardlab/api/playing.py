"""What answers a model that is measured, and for how many turns."""

from __future__ import annotations

from pathlib import Path

from rewardlab import registry
from rewardlab.api.first_rows import check_engines
from rewardlab.core import Environment, Task
from rewardlab.models.load import Policy
from rewardlab.registry.formula import environment_from
from rewardlab.registry.playing import TURNS, answers, no_environment, refuse_other
from rewardlab.runs.named import config_of_run


def played_by(
    model: str | Policy, task: Task, given: Environment | Path | str | None, turns: int | None
) -> tuple[Environment | None, int]:  # fmt: skip
    """What answers the replies, and how often: as given, else as in the run, else as the task says.

    Raises RewardlabError for turns without an environment, for another one than that of a task that can only be played, and for a
    search engine that does not answer.
    """
    env = None if given is None else environment_from(given)
    refuse_other(task, {"env": env})
    said: int | None = TURNS
    if env is None:
        env, said = _in_run(model)
        env = env if env is not None and answers(task, env) else None
    if env is None and turns is not None:
        raise no_environment(turns)
    if env is None and task.environment:
        env, said = registry.part("environment", task.environment), task.turns
    check_engines(*filter(None, [env]))
    return env, turns or said or TURNS


def _in_run(model: str | Policy) -> tuple[Environment | None, int | None]:
    """What answered the replies in a run, and how often; None for what was not so."""
    document = config_of_run(model)
    rollout = registry.load_recipe(document["recipe"]).rollout if document else None
    found = {} if rollout is None else rollout.innermost.settings
    env = found.get("env")
    return (env, found.get("turns")) if isinstance(env, Environment) else (None, None)
