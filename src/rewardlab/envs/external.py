"""An environment in a Python file of the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from pathlib import Path
from typing import Any

from rewardlab.core import Environment, Message, Problem, Turn, environment
from rewardlab.core.part import PartFactory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.user.functions import find, module_in, only
from rewardlab.settings.hyperparameters import hyperparameters


def environment_in(path: Path | str, function: str, settings: dict[str, Any] | None = None) -> Environment:
    """The environment that `function` in this file makes under these settings. Raises RewardlabError where it makes none."""
    found = find(Path(path), function, "environment")
    if not _is_environment(found):
        raise RewardlabError(f"{function} of {path} is no environment: decorate it with @rewardlab.core.environment(start=...)")
    # a wrong signature would show at the first reply of training
    for called, given in ((found.function, "state, turn"), (found.options.start, "problem, seed")):
        if not _takes_two(called, hyperparameters(found.function)):
            name = getattr(called, "__name__", function)
            raise RewardlabError(
                f"{name} of {path} is called with two arguments: write def {name}({given}), and settings after a *"
            )
    _check_settings(found, path)
    made: Environment = found(**settings or {})
    return made


def _check_settings(found: Any, path: Path | str) -> None:
    """Raise RewardlabError where the start of an environment does not take the settings that its steps have."""
    start = found.options.start
    names = list(hyperparameters(found.function))
    try:
        parameters = inspect.signature(start).parameters
    except (TypeError, ValueError):
        return
    lacking = [name for name in names if name not in parameters]
    if lacking and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        name = getattr(start, "__name__", "start")
        raise RewardlabError(
            f"{name} of {path} begins the episodes of {found.function.__name__} under the same settings, and has no {lacking[0]}: "
            f"write def {name}(problem, seed, *, {', '.join(names)}), or def {name}(problem, seed, **settings)"
        )


def only_environment(path: Path) -> str:
    """The name of the only environment in a file. Raises RewardlabError that lists them if there are several, or none."""
    module = module_in(path, "environment")
    names = [name for name, x in vars(module).items() if _is_environment(x) and x.function.__module__ == module.__name__]
    return only(names, path, "environment", "in it: decorate a function with @rewardlab.core.environment(start=...)")


def _takes_two(function: Any, settings: Collection[str]) -> bool:
    """Whether a function can be called with two arguments by position, and settings by name; True where it has no signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    placed = [p for p in parameters if p.kind in kinds]
    enough = len(placed) >= 2 or any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return enough and all(p.default is not p.empty or p.name in settings for p in placed[2:])


def _is_environment(found: Any) -> bool:
    return isinstance(found, PartFactory) and issubclass(found.make, Environment)


def _start(
    problem: Problem,
    seed: int,
    *,
    path: str,
    function: str,
    settings: dict[str, Any] | None,
    stop: tuple[str, ...],
    waits: bool,
) -> tuple[Message | None, Any]:
    message, state = environment_in(path, function, settings).start(problem, seed)
    # nothing was decided yet that a reward could be for, and who is told that all is over would be asked all the same
    if message is not None and (message.reward is not None or message.last):
        what = f"the reward {message.reward}" if message.reward is not None else "last=True"
        raise RewardlabError(
            f"the environment {function} of {path} begins an episode with a message that has {what}: rewards, and an end, come "
            "with the answer to a reply"
        )
    return message, state


def _logged(
    episodes: list[Any], *, path: str, function: str, settings: dict[str, Any] | None, stop: tuple[str, ...], waits: bool
) -> dict[str, float]:  # fmt: skip
    return environment_in(path, function, settings).logged(episodes)


@environment(start=_start, logged=_logged)
def from_file(
    state: Any,
    turn: Turn,
    *,
    path: str,
    function: str,
    settings: dict[str, Any] | None = None,
    stop: tuple[str, ...] = (),
    waits: bool = False,
) -> tuple[Message | None, Any]:
    """The environment that `function`, decorated with @environment, makes in the Python file `path`.

    stop: texts at which replies end.  waits: whether it is asked by threads, for several episodes at once.
    Raises RewardlabError, with file and line, for any error in it.
    """
    return environment_in(path, function, settings)(state, turn)
