"""The nouns of rewardlab. Imports no sibling package."""

from .batch import Batch, Events, Outputs
from .component import Part, Template, load
from .errors import NotFinite, RewardlabError, unknown
from .objective import Chain, Credit, Objective, Weighting, credit, objective, weigh, weight_of, weighting
from .problem import Message, Problem, ProblemSource, Task, ask
from .recipe import (
    Claim,
    Environment,
    Learner,
    Loop,
    Measure,
    Recipe,
    Rollout,
    Select,
    Study,
    Update,
    environment,
    loop,
    measure,
    rollout,
    select,
    stack,
    study,
)
from .run import Policy, Run, Spent, seed_of, stream
from .score import Reward, Score, Scores, Term, check_finite, reward
from .trajectory import Group, Sampling, Trajectory, Turn

__all__ = [
    "Batch", "Chain", "Claim", "Credit", "Environment", "Events", "Group", "Learner", "Loop", "Measure", "Message", "NotFinite",
    "Objective", "Outputs", "Part", "Policy", "Problem", "ProblemSource", "Recipe", "Reward", "RewardlabError", "Rollout", "Run",
    "Sampling", "Score", "Scores", "Select", "Spent", "Study", "Task", "Template", "Term", "Trajectory", "Turn", "Update",
    "Weighting", "ask", "check_finite", "credit", "environment", "load", "loop", "measure", "objective", "reward", "rollout",
    "seed_of", "select", "stack", "stream", "study", "unknown", "weigh", "weight_of", "weighting",
]  # fmt: skip
