"""Source of tests, split into cases.

A case is an `assert`, in the tests themselves or in their function `check`, a call of one of their functions that asserts, or a
`try` around an `assert`. Each is put into `with CASE(number):`, which records its result and continues. A case within a loop
passes if it passes each time.
"""

from __future__ import annotations

import ast
import builtins
from typing import NamedTuple

CASE, CANDIDATE, CHECK = "__case__", "__candidate__", "check"
SHOWN = 200
DOES_NOT_HOLD = "does not hold"
"""How the reason of a case begins whose assertion failed, unlike one that an error of the program ended."""


class Tests(NamedTuple):
    """tree: the tests, cases marked.  cases: the source of each.  names: those that the tests use and do not define.

    complete: whether each assertion is in a case.
    """

    tree: ast.Module
    cases: list[str]
    names: list[str]
    complete: bool


class NoTests(Exception):
    """There is nothing to test; the message says why."""


def split(source: str, entry_point: str = "") -> Tests:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise NoTests(f"the tests cannot be read: {type(problem).__name__}: {problem}") from None
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    helpers = {name for name, node in functions.items() if name != CHECK and _asserts(node)}
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    # as pytest does, test functions that nothing calls are called
    tree.body += [_call(name) for name in functions if name.startswith("test") and name in helpers - called]
    if CHECK in functions and CHECK not in called:
        if not entry_point:
            raise NoTests("the tests define check(), and no entry_point names the function to check")
        tree.body.append(_call(CHECK, CANDIDATE))
    if not _asserts(tree):
        raise NoTests("the tests assert nothing")
    marker = _Marker(helpers, source)
    tree.body = marker.block(tree.body)
    if CHECK in functions:
        functions[CHECK].body = marker.block(functions[CHECK].body)
    names = sorted(_used(tree) - _defined(tree) - {CASE, CANDIDATE})
    assertions_in_helpers = sum(_assertions(functions[name]) for name in helpers)
    # an assertion outside all cases ends the tests at once, without a case to record it
    complete = _assertions(tree) == marker.assertions + assertions_in_helpers
    return Tests(ast.fix_missing_locations(tree), marker.cases, names, complete)


class _Marker:
    def __init__(self, helpers: set[str], source: str):
        self.helpers, self.lines = helpers, source.splitlines()
        self.cases: list[str] = []
        self.assertions = 0

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [self.statement(node) for node in body]

    def statement(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, ast.Assert) or self.calls_helper(node) or (isinstance(node, ast.Try | ast.Match) and _asserts(node)):
            self.assertions += _assertions(node)
            number = ast.Constant(len(self.cases))
            self.cases.append(self.source(node))
            manager = ast.Call(ast.Name(CASE, ast.Load()), [number], [])
            return ast.copy_location(ast.With([ast.withitem(manager)], [node]), node)
        if isinstance(node, ast.If | ast.For | ast.While | ast.With):
            node.body = self.block(node.body)
            if not isinstance(node, ast.With):
                node.orelse = self.block(node.orelse)
        return node

    def source(self, node: ast.stmt) -> str:
        """The source of a statement, in one line."""
        lines = self.lines[node.lineno - 1 : node.end_lineno] if hasattr(node, "lineno") else [ast.unparse(node)]
        return " ".join(" ".join(lines).split())[:SHOWN]

    def calls_helper(self, node: ast.stmt) -> bool:
        call = node.value if isinstance(node, ast.Expr) else None
        return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in self.helpers


def trusted(prompt: str, entry_point: str) -> ast.Module:
    """What a prompt defines in full, for the tests to use: imports, constants, and functions that have a body."""
    try:
        tree = ast.parse(prompt)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])
    tree.body = [node for node in tree.body if getattr(node, "name", "") != entry_point and not _is_stub(node)]
    return tree


def _is_stub(node: ast.AST) -> bool:
    """A function with nothing but a docstring or `pass`, or a class with such a method."""
    if isinstance(node, ast.ClassDef):
        return any(_is_stub(part) for part in node.body)
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return all(isinstance(part, ast.Pass) or isinstance(getattr(part, "value", None), ast.Constant) for part in node.body)


def _asserts(tree: ast.AST) -> bool:
    return _assertions(tree) > 0


def _assertions(tree: ast.AST) -> int:
    return sum(isinstance(node, ast.Assert | ast.Raise) for node in ast.walk(tree))


def _call(name: str, *args: str) -> ast.stmt:
    return ast.Expr(ast.Call(ast.Name(name, ast.Load()), [ast.Name(arg, ast.Load()) for arg in args], []))


def _used(tree: ast.AST) -> set[str]:
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id for node in names if isinstance(node.ctx, ast.Load)} - set(dir(builtins))


def _defined(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return names
