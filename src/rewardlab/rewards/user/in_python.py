"""A reward made of a plain function that is given in Python, called as one in a file is (`external`).

    build("grpo").but(reward=lambda completion, answer: float(answer in completion))
    correct() + as_reward(short)

A function at the top of a module that can be imported is found there again, by other processes and by a run that is resumed. Every
other one (a lambda, a function in a function, in a script or a notebook, an object that can be called) this process keeps (`held`).
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any

from rewardlab.core.part import PartFactory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.user.conventions import is_rubric
from rewardlab.rewards.user.external import from_file, from_module, from_python
from rewardlab.rewards.user.functions import find, prepared
from rewardlab.rewards.user.held import file_of, hold, name_of


def reward_of(function: Any) -> Reward:
    """The reward of a function, or of an object that can be called. Raises RewardlabError for what is called in no known manner."""
    name = name_of(function)
    if isinstance(function, PartFactory):
        raise RewardlabError(f"the reward {name} is a part that was not called: write {name}(...)")
    if inspect.isclass(function):
        raise RewardlabError(f"the reward {name} is a class: give an object of it, {name}(...), or a function")
    if not callable(function) and not is_rubric(function):
        raise RewardlabError(f"{function!r} cannot be a reward: it is neither a reward nor a function")
    # a function that cannot be called is refused here, and not after the first rollouts
    prepared(function, file_of(function), None)
    module, path = getattr(function, "__module__", None) or "", module_file(function)
    if path is None:
        given, place, code = hold(function)
        return from_python(function=given, place=place, code=code)
    if module.startswith(OF_FILES):
        return from_file(path=path, function=function.__qualname__)
    return from_module(module=module, function=function.__qualname__, path=path)


OF_FILES = "rewardlab_user_"
"""Begins the names of modules that were read from a file by its path (`functions.module_in`)."""


def module_file(function: Any) -> str | None:
    """The file of the module in which another process finds this very function by its name; None where it does not."""
    name, within = getattr(function, "__module__", None) or "__main__", getattr(function, "__qualname__", "<locals>")
    module, file = sys.modules.get(name), getattr(sys.modules.get(name), "__file__", None)
    # a script, a notebook and the prompt are modules that only this process has
    if name == "__main__" or not file or Path(file).suffix != ".py" or "<" in within:
        return None
    found: Any = module
    for step in within.split("."):
        found = getattr(found, step, None)
    if found is not function:
        return None
    if name.startswith(OF_FILES):
        # of a file that has changed since, the function would be another one
        return file if find(Path(file), within) is function else None
    try:
        return file if importlib.util.find_spec(name) is not None else None
    except (ImportError, ValueError):
        return None
