"""rewardlab: one system for learning from rewards.

Everything named here is loaded when first used, so that `rewardlab list` needs no PyTorch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewardlab.api import Result, RunConfig, answer, evaluate, export, plan, resume, train
    from rewardlab.api.demo import demo
    from rewardlab.comparisons.compare import compare
    from rewardlab.core import Message, Problem, Recipe, Score, Task, Trajectory, ask, credit, environment, objective
    from rewardlab.errors import RewardlabError
    from rewardlab.models.load import load_policy
    from rewardlab.registry import build, part, task
    from rewardlab.report.diagnosis import diagnose
    from rewardlab.rewards.operator import operator
    from rewardlab.rewards.reward import Reward, as_reward, reward

_WHERE = {
    "api.demo": ("demo",),
    "api": ("Result", "RunConfig", "answer", "evaluate", "export", "plan", "resume", "train"),
    "core": (
        "Message", "Problem", "Recipe", "Score", "Task", "Trajectory", "ask", "credit", "environment", "objective",
    ),
    "errors": ("RewardlabError",),
    "rewards.operator": ("operator",),
    "rewards.reward": ("Reward", "as_reward", "reward"),
    "registry": ("build", "part", "task"),
    "models.load": ("load_policy",),
    "comparisons.compare": ("compare",),
    "report.diagnosis": ("diagnose",),
}  # fmt: skip
_MODULE = {name: module for module, names in _WHERE.items() for name in names}

__all__ = [
    "Message", "Problem", "Recipe", "Result", "Reward", "RewardlabError", "RunConfig", "Score", "Task", "Trajectory",
    "answer", "as_reward", "ask", "build", "compare", "credit", "demo", "diagnose", "environment", "evaluate", "export",
    "load_policy", "objective", "operator", "part", "plan", "resume", "reward", "task", "train",
]  # fmt: skip


def __dir__() -> list[str]:
    """What `rewardlab.` completes to: the public names, also those that are not loaded yet."""
    return [*__all__, "__doc__", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version(__name__)
    if name not in _MODULE:
        raise AttributeError(f"module 'rewardlab' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULE[name]}", __name__), name)
