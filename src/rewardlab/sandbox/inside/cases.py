"""Source of tests, split into cases.

A case is an `assert`, in the tests themselves or in their function `check`, a call of one of their functions that asserts or calls
another that does, or a `try` around an `assert`. Each is put into `with CASE(number):`, which records its result and continues. A
case within a loop passes if it passes each time. Any other `assert` notes that it was reached.
"""

from __future__ import annotations

import ast
import builtins
from typing import NamedTuple

from . import frameworks

CASE, CANDIDATE, CHECK, REACHED = "__case__", "__candidate__", "check", "__reached__"
SHOWN = 200
DOES_NOT_HOLD = "does not hold"
"""How the reason of a case begins whose assertion failed, unlike one that an error of the program ended."""


Function = ast.FunctionDef | ast.AsyncFunctionDef


class Tests(NamedTuple):
    """tree: the tests, cases marked.  cases: the source of each.  names: those that the tests use and do not define.

    complete: whether each `raise` is in a case, so that tests which reached no assertion tested nothing.
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
    made = frameworks.plain(tree)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    helpers, asserting = _helpers(functions, made)
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    # as pytest does, test functions that nothing calls are called
    own = [name for name in functions if name.startswith("test") and name in helpers - called]
    tree.body += [_call(name) for name in own]
    if CHECK in functions and CHECK not in called:
        if not entry_point:
            raise NoTests("the tests define check(), and no entry_point names the function to check")
        tree.body.append(_call(CHECK, CANDIDATE))
    if not made and not _asserts(tree):
        raise NoTests("the tests assert nothing")
    _check_callable(functions, helpers, own)
    _check_reached(tree, made)
    marker = _Marker(helpers, asserting, source)
    tree.body = marker.block(tree.body)
    if CHECK in functions:
        functions[CHECK].body = marker.block(functions[CHECK].body)
    _Noting().visit(tree)
    names = sorted(_used(tree) - _defined(tree) - {CASE, CANDIDATE, REACHED})
    raised_in_helpers = sum(_raises(functions[name]) for name in helpers)
    complete = _raises(tree) == marker.raises + raised_in_helpers
    return Tests(ast.fix_missing_locations(tree), marker.cases, names, complete)


def _helpers(functions: dict[str, Function], made: set[str]) -> tuple[set[str], set[str]]:
    """The functions whose calls are cases, and of these those that assert, or call one that does: others only raise."""
    asserting = {name for name, node in functions.items() if name in made or _has(node, ast.Assert)}
    while more := {name for name, node in functions.items() if name not in asserting and _calls(node, asserting)}:
        asserting |= more
    raising = {name for name, node in functions.items() if _has(node, ast.Raise)}
    return (asserting | raising) - {CHECK}, asserting - {CHECK}


def _check_callable(functions: dict[str, Function], helpers: set[str], own: list[str]) -> None:
    """Raise NoTests for tests that a call alone does not run: their assertions would never be reached."""
    for name in helpers:
        node = functions[name]
        if isinstance(node, ast.AsyncFunctionDef):
            raise NoTests(f"the test {name}() is asynchronous, and a program is called from another process")
        if _yields(node):
            raise NoTests(f"the test {name}() yields, so that a call does not run it")
    for name in own:
        args = functions[name].args
        needed = args.posonlyargs + args.args
        if needed := needed[: len(needed) - len(args.defaults)]:
            raise NoTests(f"the test {name}() takes {needed[0].arg!r}, and nothing says what that is: fixtures are not read")


def _check_reached(tree: ast.Module, made: set[str]) -> None:
    """Raise NoTests where the tests assert in functions and classes alone that nothing ever uses."""
    scopes = {node.name: node for node in tree.body if isinstance(node, Function | ast.ClassDef)}
    waiting: list[ast.AST] = [node for node in tree.body if not isinstance(node, Function | ast.ClassDef)]
    found: set[str] = set()
    while waiting:
        node = waiting.pop()
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} & scopes.keys() - found
        if _asserts(node) or names & made:
            return
        found |= names
        waiting += [scopes[name] for name in names]
    unused = next((name for name, node in scopes.items() if _asserts(node)), "")
    raise NoTests(f"nothing calls {unused}, where the tests assert")


class _Marker:
    def __init__(self, helpers: set[str], asserting: set[str], source: str):
        self.helpers, self.asserting, self.lines = helpers, asserting, source.splitlines()
        self.cases: list[str] = []
        self.raises = 0

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [self.statement(node) for node in body]

    def statement(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, ast.Assert) or self.calls_helper(node) or (isinstance(node, ast.Try | ast.Match) and _asserts(node)):
            self.raises += _raises(node)
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
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in self.helpers:
            return True
        # sys.exit(run()), and failures = run(): not the tests' own computation of what is right, which may raise
        return isinstance(node, ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign) and _calls(node, self.asserting)


class _Noting(ast.NodeTransformer):
    """Has each assertion that is no case note that it was reached."""

    def visit_With(self, node: ast.With) -> ast.AST:
        call = node.items[0].context_expr
        is_case = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == CASE
        return node if is_case else self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        node.test = ast.Call(ast.Name(REACHED, ast.Load()), [node.test], [])
        return node


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


def _has(tree: ast.AST, *kinds: type[ast.AST]) -> bool:
    return any(isinstance(node, kinds) for node in ast.walk(tree))


def _asserts(tree: ast.AST) -> bool:
    return _has(tree, ast.Assert, ast.Raise)


def _yields(node: Function) -> bool:
    """Whether a function is a generator; those within it are its own business."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Yield | ast.YieldFrom):
            return True
        waiting += [] if isinstance(part, Function | ast.Lambda) else ast.iter_child_nodes(part)
    return False


def _raises(tree: ast.AST) -> int:
    return sum(isinstance(node, ast.Raise) for node in ast.walk(tree))


def _calls(tree: ast.AST, names: set[str]) -> bool:
    """Whether it calls one of these functions by its name."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(isinstance(function, ast.Name) and function.id in names for function in calls)


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
