"""Parse calls in Python syntax. Nothing is executed. Imports no rewardlab module.

Python's parser can crash its process on deeply nested text, so this runs in a worker process.
"""

from __future__ import annotations

import ast
from typing import Any


def calls(text: str) -> dict[str, Any]:
    """{"calls": [{"name", "arguments", "positional"}]} for `f(x=1)`, `[f(x=1), g("a")]`, or one call per line; else {"wrong"}."""
    try:
        body = ast.parse(text.strip()).body
        if not all(isinstance(statement, ast.Expr) for statement in body):
            raise ValueError("it contains something other than calls")
        nodes = [statement.value for statement in body if isinstance(statement, ast.Expr)]
        if len(nodes) == 1 and isinstance(nodes[0], ast.List | ast.Tuple):
            nodes = nodes[0].elts
        return {"calls": [_call(node) for node in nodes]}
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        message = problem.msg if isinstance(problem, SyntaxError) else str(problem)
        return {"wrong": message or type(problem).__name__}


def _call(node: ast.expr) -> dict[str, Any]:
    if not isinstance(node, ast.Call):
        raise ValueError("it contains something other than calls")
    name = ast.unparse(node.func)
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(f"{name[:60]!r} is not the name of a function")
    named = [keyword.arg for keyword in node.keywords]
    if None in named or len(set(named)) < len(named):
        raise ValueError("every argument must be given once, without **")
    arguments = {str(keyword.arg): _literal(keyword.value) for keyword in node.keywords}
    return {"name": name, "arguments": arguments, "positional": [_literal(value) for value in node.args]}


def _literal(node: ast.expr) -> Any:
    """A literal as a JSON value; tuples become lists. Raises ValueError for anything that JSON cannot express."""
    return _plain(ast.literal_eval(node))


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        # inf - inf and nan - nan are nan: JSON has neither
        case float() if value - value == 0:
            return value
        case list() | tuple():
            return [_plain(x) for x in value]
        case dict() if all(isinstance(name, str) for name in value):
            return {name: _plain(x) for name, x in value.items()}
    raise ValueError(f"{str(value)[:60]} is not a JSON value")
