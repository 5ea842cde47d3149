"""rewardlab: one system for learning from rewards.

Everything named here is loaded when first used, so that `rewardlab list` needs no PyTorch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import Result, answer, evaluate, export, plan, resume, train
    from .core import Problem, Recipe, Reward, RewardlabError, Score, Task, Trajectory, ask, credit, objective, reward
    from .demonstration import demo
    from .index import build, part, task
    from .models import load_policy

_WHERE = {
    "demonstration": ("demo",),
    "api": ("Result", "answer", "evaluate", "export", "plan", "resume", "train"),
    "core": (
        "Problem", "Recipe", "Reward", "RewardlabError", "Score", "Task", "Trajectory", "ask", "credit", "objective", "reward",
    ),
    "index": ("build", "part", "task"),
    "models": ("load_policy",),
}  # fmt: skip
_MODULE = {name: module for module, names in _WHERE.items() for name in names}

__all__ = [
    "Problem", "Recipe", "Result", "Reward", "RewardlabError", "Score", "Task", "Trajectory", "answer", "ask", "build", "credit",
    "demo", "evaluate", "export", "load_policy", "objective", "part", "plan", "resume", "reward", "task", "train",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'rewardlab' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULE[name]}", __name__), name)
