"""rewardlab from Python: train, resume, plan, evaluate, answer, search, export, pass rates, labels of steps and their models.

    from rewardlab import build, train

    recipe = build("grpo", {"n": 16})
    result = train(recipe, task="arithmetic", steps=50)
    print(result.summary["before"], result.summary["after"])

All settings of a run besides its recipe are fields of `RunConfig`. Pass `config=RunConfig(...)`, or fields by name as above.
"""

from rewardlab.runs.config import RunConfig

from .answering import answer
from .evaluation import evaluate
from .exporting import export, export_recipe
from .inputs import versions
from .labelling import label_file
from .own_answers import own_answers
from .pass_rates import pass_rate_file
from .planning import plan
from .result import Result
from .searching import search
from .step_scores import evaluate_scorer
from .step_training import train_scorer
from .training import resume, train
from .unit_tests import written_tests_file

__all__ = [
    "Result",
    "RunConfig",
    "answer",
    "evaluate",
    "evaluate_scorer",
    "export",
    "export_recipe",
    "label_file",
    "own_answers",
    "pass_rate_file",
    "plan",
    "resume",
    "search",
    "train",
    "train_scorer",
    "versions",
    "written_tests_file",
]  # fmt: skip
