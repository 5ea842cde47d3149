"""An environment in a Python file of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rewardlab.core import Environment, Message, Problem, Turn, environment
from rewardlab.core.part import PartFactory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.user.functions import find


def environment_in(path: Path | str, function: str, settings: dict[str, Any] | None = None) -> Environment:
    """The environment that `function` in this file makes under these settings. Raises RewardlabError where it makes none."""
    found = find(Path(path), function, "environment")
    if not isinstance(found, PartFactory) or not issubclass(found.make, Environment):
        raise RewardlabError(f"{function} of {path} is no environment: decorate it with @rewardlab.core.environment(start=...)")
    return found(**settings or {})


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
    return environment_in(path, function, settings).start(problem, seed)


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
