"""The method that a method's function builds on, read from its syntax tree."""

from __future__ import annotations

import ast
import functools
from pathlib import Path


def builds_on(tree: ast.Module, name: str) -> str | None:
    """The method called in `base = base or grpo()`, also in `base = base or grpo(n=n).but(...)`."""
    call = _base(tree, name)
    # strip `.but(...)` and the call's brackets, down to the function's name
    while isinstance(call, ast.Call | ast.Attribute):
        call = call.func if isinstance(call, ast.Call) else call.value
    return call.id if isinstance(call, ast.Name) and call.id[:1].islower() else None


def plain_base(path: Path, name: str) -> str | None:
    """The method of a plain `base = base or grpo()`, with no setting of its own: the method alone is the stack `grpo+NAME`."""
    return _plain_base(path.read_text("utf-8"), str(path), name)


@functools.lru_cache(1024)
def _plain_base(text: str, path: str, name: str) -> str | None:
    """Of one text, once: a file is asked for its base a dozen times before a run begins."""
    match _base(ast.parse(text, path), name):
        case ast.Call(func=ast.Name(method), args=[], keywords=[]):
            return method
    return None


def _base(tree: ast.Module, name: str) -> ast.expr | None:
    """What stands after `base = base or` in the function of this name, also in `base, env = base or grpo(), env or search()`."""
    functions = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name)
    for node in (n for f in functions for n in f.body if isinstance(n, ast.Assign)):
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            target, value = target.elts[0], value.elts[0]
        match target, value:
            case ast.Name("base"), ast.BoolOp(ast.Or(), [ast.Name("base"), made]):
                return made
    return None
