"""The nouns of rewardlab. Imports no sibling package."""

from .batch import Batch, Events, Outputs
from .component import Part, Template, load
from .errors import NotFinite, RewardlabError, unknown
from .objective import Chain, Credit, Objective, Weighting, credit, objective, weigh, weight_of, weighting
from .problem import Message, Problem, ProblemSource, Task, ask
from .recipe import (
    Claim,
    Learner,
    Loop,
    Measure,
    Recipe,
    Rollout,
    Select,
    Update,
    loop,
    measure,
    rollout,
    select,
    stack,
)
from .run import Policy, Run, seed_of, stream
from .score import Reward, Score, Scores, Term, check_finite, reward
from .trajectory import Group, Sampling, Trajectory, Turn

__all__ = [
    "Batch", "Chain", "Claim", "Credit", "Events", "Group", "Learner", "Loop", "Measure", "Message", "NotFinite", "Objective",
    "Outputs", "Part", "Policy", "Problem", "ProblemSource", "Recipe", "Reward", "RewardlabError", "Rollout", "Run", "Sampling",
    "Score", "Scores", "Select", "Task", "Template", "Term", "Trajectory", "Turn", "Update", "Weighting", "ask", "check_finite",
    "credit", "load", "loop", "measure", "objective", "reward", "rollout", "seed_of", "select", "stack", "stream", "unknown",
    "weigh", "weight_of", "weighting",
]  # fmt: skip
