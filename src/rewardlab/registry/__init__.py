"""Find methods, parts and tasks by name, and describe them for `list` and `show`. All is read from files: no list to edit.

Two words that a method's file may state, beside its function and its claim:

    kind = "study"        what it is: "method" (a way to train or to answer; the default), "reward-model", "benchmark",
                          "analysis" or "study" (a table, no training), "data", "survey", "infrastructure" (the same learning,
                          faster), "answer" (search at test time, no training). It is shown, and changes nothing else
    baseline = "grpo"     the method it is compared with in `show` and docs/methods.md; None: a starting point. Without it, the
                          method that its claim runs against, unless that is the method itself under other settings; else the
                          method that its function builds on (`base = base or grpo()`)
"""

from .built import build
from .catalogue import rows
from .find import PACKAGE, file_of, method, method_roots, methods, module_of, parameters, spell
from .find_task import endless, parse_options, parse_value, task, task_files, tasks
from .parts import load_part, load_recipe, part, verifier, verifiers

__all__ = [
    "PACKAGE", "build", "endless", "file_of", "load_part", "load_recipe", "method", "method_roots", "methods",
    "module_of", "parameters", "parse_options", "parse_value", "part", "rows", "spell", "task", "task_files", "tasks", "verifier",
    "verifiers",
]  # fmt: skip
