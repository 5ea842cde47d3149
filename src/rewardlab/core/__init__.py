"""The nouns of rewardlab. Imports no sibling package but `errors`."""

from .batch import Batch, Events, Outputs
from .part import Part, PartFactory
from .policy import Policy, TokenCount, last_values, uncounted, values
from .problem import Message, Problem, ProblemSource, Task, ask
from .recipe import Learner, Recipe, Update
from .run import Run, seed_of, stream
from .score import Score, Scores, Term, check_finite
from .slots import (
    Chain,
    Credit,
    Environment,
    Loop,
    Measure,
    Objective,
    Rollout,
    Select,
    Weighting,
    credit,
    environment,
    loop,
    measure,
    objective,
    rollout,
    select,
    weighting,
)
from .trajectory import Group, Sampling, Trajectory, Turn

__all__ = [
    "Batch",
    "Chain",
    "Credit",
    "Environment",
    "Events",
    "Group",
    "Learner",
    "Loop",
    "Measure",
    "Message",
    "Objective",
    "Outputs",
    "Part",
    "PartFactory",
    "Policy",
    "Problem",
    "ProblemSource",
    "Recipe",
    "Rollout",
    "Run",
    "Sampling",
    "Score",
    "Scores",
    "Select",
    "Task",
    "Term",
    "TokenCount",
    "Trajectory",
    "Turn",
    "Update",
    "Weighting",
    "ask",
    "check_finite",
    "credit",
    "environment",
    "last_values",
    "loop",
    "measure",
    "objective",
    "rollout",
    "seed_of",
    "select",
    "stream",
    "uncounted",
    "values",
    "weighting",
]  # fmt: skip
