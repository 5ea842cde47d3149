"""rewardlab from Python: train, resume, plan, evaluate, answer, search, export, pass rates, labels of steps and their models.

    from rewardlab import build, train

    recipe = build("grpo", {"n": 16})
    result = train(recipe, task="arithmetic", steps=50)
    print(result.summary["before"], result.summary["after"])

All settings of a run besides its recipe are fields of `RunConfig`. Pass `config=RunConfig(...)`, or fields by name as above.
Each name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewardlab.prm.evaluation import evaluate_scorer
    from rewardlab.prm.labelling import label_file
    from rewardlab.prm.stress import stress_scorer
    from rewardlab.prm.training import train_scorer
    from rewardlab.runs.config import RunConfig

    from .answering import answer
    from .benchmark_rows import benchmark_rows_file
    from .calibrations import calibrate_file
    from .code_traces import code_traces_file
    from .contamination import contamination_file
    from .environment_package import export_environment
    from .evaluation import evaluate
    from .exporting import export, export_recipe
    from .inputs import versions
    from .pass_rates import pass_rate_file
    from .planning import plan
    from .result import Result
    from .row_rewards import own_answers
    from .searching import search
    from .strengths import strength_file
    from .terminal_tasks import terminal_tasks_file
    from .training import resume, train
    from .unit_tests import written_tests_file

_WHERE = {
    "prm.evaluation": ("evaluate_scorer",), "prm.labelling": ("label_file",), "prm.stress": ("stress_scorer",),
    "prm.training": ("train_scorer",),
    "runs.config": ("RunConfig",), "api.answering": ("answer",),
    "api.benchmark_rows": ("benchmark_rows_file",), "api.calibrations": ("calibrate_file",),
    "api.code_traces": ("code_traces_file",), "api.contamination": ("contamination_file",),
    "api.environment_package": ("export_environment",), "api.evaluation": ("evaluate",),
    "api.exporting": ("export", "export_recipe"), "api.inputs": ("versions",), "api.row_rewards": ("own_answers",),
    "api.pass_rates": ("pass_rate_file",), "api.planning": ("plan",), "api.searching": ("search",),
    "api.strengths": ("strength_file",),
    "api.terminal_tasks": ("terminal_tasks_file",),
    "api.result": ("Result",), "api.training": ("resume", "train"), "api.unit_tests": ("written_tests_file",),
}  # fmt: skip
_MODULE = {name: module for module, names in _WHERE.items() for name in names}

__all__ = [
    "Result", "RunConfig", "answer", "benchmark_rows_file", "calibrate_file", "code_traces_file", "contamination_file",
    "evaluate", "evaluate_scorer", "export", "export_environment", "export_recipe", "label_file", "own_answers", "pass_rate_file",
    "plan", "resume", "search", "strength_file", "stress_scorer", "terminal_tasks_file", "train", "train_scorer", "versions",
    "written_tests_file",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"rewardlab.{_MODULE[name]}"), name)
