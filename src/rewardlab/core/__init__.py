"""The nouns of rewardlab. Imports no sibling package but `errors`.

Each name is loaded when first used: domains and literals are needed where importing torch would take too long.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewardlab.core.batch import Batch, Events, Outputs
    from rewardlab.core.part import Part, PartFactory
    from rewardlab.core.policy import Policy, TokenCount, uncounted
    from rewardlab.core.problem import Message, Problem, ProblemSource, Task, ask
    from rewardlab.core.recipe import Learner, Recipe, Update, with_surprise
    from rewardlab.core.run import Run, seed_of, stream, uniform_of
    from rewardlab.core.score import Score, Scores, Term, check_finite
    from rewardlab.core.slots import (  # isort: skip
        Chain, Credit, Environment, Loop, Measure, Objective, Rollout, Select, Study, Weighting, credit, environment, loop,
        measure, objective, rollout, select, study, weighting,
    )  # fmt: skip
    from rewardlab.core.trajectory import Group, Sampling, Trajectory, Turn

_WHERE = {
    "batch": ("Batch", "Events", "Outputs"),
    "part": ("Part", "PartFactory"),
    "policy": ("Policy", "TokenCount", "uncounted"),
    "problem": ("Message", "Problem", "ProblemSource", "Task", "ask"),
    "recipe": ("Learner", "Recipe", "Update", "with_surprise"),
    "run": ("Run", "seed_of", "stream", "uniform_of"),
    "score": ("Score", "Scores", "Term", "check_finite"),
    "slots": (
        "Chain", "Credit", "Environment", "Loop", "Measure", "Objective", "Rollout", "Select", "Study", "Weighting", "credit",
        "environment", "loop", "measure", "objective", "rollout", "select", "study", "weighting",
    ),
    "trajectory": ("Group", "Sampling", "Trajectory", "Turn"),
}  # fmt: skip
_MODULE = {name: module for module, names in _WHERE.items() for name in names}

__all__ = [
    "Batch", "Chain", "Credit", "Environment", "Events", "Group", "Learner", "Loop", "Measure", "Message", "Objective",
    "Outputs", "Part", "PartFactory", "Policy", "Problem", "ProblemSource", "Recipe", "Rollout", "Run", "Sampling", "Score",
    "Scores", "Select", "Study", "Task", "Term", "TokenCount", "Trajectory", "Turn", "Update", "Weighting", "ask", "check_finite",
    "credit", "environment", "loop", "measure", "objective", "rollout", "seed_of", "select", "stream", "study", "uncounted",
    "uniform_of", "weighting", "with_surprise",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_MODULE[name]}", __name__), name)
    # kept, so that the next use does not come through here
    globals()[name] = value
    return value
