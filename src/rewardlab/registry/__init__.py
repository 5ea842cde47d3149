"""Find methods, parts and tasks by name, and describe them for `list` and `show`. All is read from files: no list to edit.

A method's file makes `claim = Claim(...)`, of how good a policy or an answer becomes, or `check = Check(...)`, of what its
mechanism does, or neither: `claim = None`. Words that it may state beside them:

    kind = "study"        what it is: "method" (a way to train or to answer; the default), "reward-model", "benchmark",
                          "analysis" or "study" (a table, no training), "data", "survey", "infrastructure" (the same learning,
                          faster), "answer" (search at test time, no training). It is shown, and changes nothing else
    baseline = "grpo"     the method it is compared with in `show` and docs/methods.md; None: a starting point. Without it, the
                          method that its claim runs against, unless that is the method itself under other settings; else the
                          method that its function builds on (`base = base or grpo()`)
    fidelity = "core"     how much of the published method it is: "whole"; "core", its mechanism; or "reading", ours of a text that
                          leaves the formula open. Without it: not yet read against the paper
    left_out = "..."      what of the published method it leaves out, in one sentence; needed unless it is the whole
"""

from .built import build
from .catalogue import rows
from .find import PACKAGE, claim_of, file_of, method, method_roots, methods, module_of, parameters, spell
from .find_task import endless, parse_options, parse_value, task, task_files, tasks
from .parts import load_part, load_recipe, part, verifier, verifiers

__all__ = [
    "PACKAGE", "build", "claim_of", "endless", "file_of", "load_part", "load_recipe", "method", "method_roots", "methods",
    "module_of", "parameters", "parse_options", "parse_value", "part", "rows", "spell", "task", "task_files", "tasks", "verifier",
    "verifiers",
]  # fmt: skip
