"""Names to files: methods, parts and tasks. There is no list to edit."""

from .find import (
    PACKAGE,
    build,
    dotted,
    error,
    file_of,
    method,
    method_roots,
    methods,
    module_of,
    parameters,
    parse_options,
    parse_value,
    reach_methods,
    rows,
    spell,
    task,
    task_files,
    tasks,
    unknown,
    verifiers,
)
from .parts import load_part, load_recipe, part

__all__ = [
    "PACKAGE", "build", "dotted", "error", "file_of", "load_part", "load_recipe", "method", "method_roots", "methods",
    "module_of", "parameters", "parse_options", "parse_value", "part", "reach_methods", "rows", "spell", "task",
    "task_files", "tasks", "unknown", "verifiers",
]  # fmt: skip
