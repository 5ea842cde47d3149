"""The nouns of rewardlab. Imports no sibling package."""

from .batch import Batch, Events, Outputs
from .component import Part, Template, load
from .errors import NotFinite, RewardlabError, unknown
from .objective import Chain, Credit, Objective, Weighting, credit, objective, weigh, weight_of, weighting
from .operator import Operator, operator
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
from .score import Reward, reward
from .term import Score, Scores, Term, check_finite
from .trajectory import Group, Sampling, Trajectory, Turn
from .verifier import GOLD, Pair, Verdict, Verifier, differs, no_verdict, right, verifier, wrong

__all__ = [
    "GOLD", "Batch", "Chain", "Claim", "Credit", "Environment", "Events", "Group", "Learner", "Loop", "Measure", "Message",
    "NotFinite", "Objective", "Operator", "Outputs", "Pair", "Part", "Policy", "Problem", "ProblemSource", "Recipe", "Reward",
    "RewardlabError", "Rollout", "Run", "Sampling", "Score", "Scores", "Select", "Spent", "Study", "Task", "Template", "Term",
    "Trajectory", "Turn", "Update", "Verdict", "Verifier", "Weighting", "ask", "check_finite", "credit", "differs", "environment",
    "load", "loop", "measure", "no_verdict", "objective", "operator", "reward", "right", "rollout", "seed_of", "select", "stack",
    "stream", "study", "unknown", "verifier", "weigh", "weight_of", "weighting", "wrong",
]  # fmt: skip
