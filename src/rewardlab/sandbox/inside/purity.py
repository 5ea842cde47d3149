"""Whether tests have side effects in their process.

They do not, if they only define, call and compare, with modules that cannot be changed through what the tests use of them. Other
tests are run as well; their process is then used once.
"""

from __future__ import annotations

import ast
import importlib

from .cases import CASE, REACHED

MODULES = {
    "bisect", "collections", "copy", "datetime", "fractions", "functools", "hashlib", "heapq", "itertools", "json", "math",
    "operator", "random", "re", "statistics", "string", "typing",
}  # fmt: skip
CHANGERS = {
    "__import__", "breakpoint", "compile", "delattr", "eval", "exec", "getattr", "globals", "input", "locals", "object", "open",
    "setattr", "super", "type", "vars",
}  # fmt: skip
_CONSTANT = (bool, int, float, complex, str, bytes, tuple, type(None))


def pure(tree: ast.Module) -> bool:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import))
    modules = {alias.asname or alias.name: alias.name for node in imports for alias in node.names}
    return all(_pure(node, modules) for node in ast.walk(tree))


def _pure(node: ast.AST, modules: dict[str, str]) -> bool:
    if isinstance(node, ast.Import):
        return all(alias.name in MODULES for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.module in MODULES and all(_harmless(node.module, alias.name) for alias in node.names)
    if isinstance(node, ast.Name):
        return node.id not in CHANGERS and (not node.id.startswith("__") or node.id in (CASE, REACHED, "__candidate__"))
    if isinstance(node, ast.Attribute):
        if node.attr.startswith("_") or node.attr == "register" or not isinstance(node.ctx, ast.Load):
            return False
        return not (isinstance(node.value, ast.Name) and node.value.id in modules) or _harmless(modules[node.value.id], node.attr)
    return True


def _harmless(module: str, name: str) -> bool:
    """Whether a name of a module is a function, a class or a constant; "*" is none."""
    value = getattr(importlib.import_module(module), name, ...)
    return value is not ... and (callable(value) or isinstance(value, _CONSTANT))
