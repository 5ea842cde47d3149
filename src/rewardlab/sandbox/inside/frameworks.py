"""Tests written for pytest or unittest, as plain tests, which the sandbox runs without these.

from solution import add                 the tests have the program's names anyway; solution.add is add
with pytest.raises(ValueError): ...      try, except, else
x == pytest.approx(y)                    near_(x, y)
@pytest.mark.parametrize("a, b", rows)   a loop that calls the test
class TestAdd, of unittest or not        a function for each of its tests, each with an object of its own, set up and torn down
unittest.main()                          nothing

What else there is of pytest is left as it is: its import fails, and the tests are to blame.
"""

from __future__ import annotations

import ast

PROGRAM = ("solution", "solutions", "program", "submission", "main", "my_module", "your_module", "your_code")
"""Modules that tests import the program from: KodCode's is solution, models often write your_module."""
SET_UP, TEAR_DOWN = ("setUpClass", "setup_class", "setUp", "setup_method"), ("tearDown", "teardown_method")
NEAR = """
def near_(said, wanted, rel=None, abs=None, nan_ok=False):
    if isinstance(wanted, dict):
        return isinstance(said, dict) and set(said) == set(wanted) and all(near_(said[k], wanted[k], rel, abs) for k in wanted)
    if isinstance(wanted, (list, tuple)):
        return isinstance(said, (list, tuple)) and len(said) == len(wanted) and all(
            near_(x, y, rel, abs) for x, y in zip(said, wanted))
    if not isinstance(said, (int, float)) or not isinstance(wanted, (int, float)):
        return said == wanted
    size = wanted if wanted >= 0 else -wanted
    most = abs if abs is not None and rel is None else max((1e-6 if rel is None else rel) * size, 1e-12 if abs is None else abs)
    return said == wanted or -most <= said - wanted <= most
"""
"""How pytest.approx compares."""


def plain(tree: ast.Module) -> set[str]:
    """Rewrite the tests in place. Returns the names of functions that were made of the tests of classes."""
    if not _uses(tree):
        return set()
    rewriter = _Rewriter(tree)
    rewriter.visit(tree)
    made = [function for node in tree.body if isinstance(node, ast.ClassDef) for function in _of_class(node)]
    for node in [node for node in tree.body if isinstance(node, ast.FunctionDef)]:
        tree.body += _looped(node)
    calls = [ast.Expr(ast.Call(ast.Name(function.name, ast.Load()), [], [])) for function in made]
    tree.body = [*(ast.parse(NEAR).body if rewriter.near else ()), *tree.body, *made, *calls]
    if not any(map(_is_pytest, ast.walk(tree))):
        tree.body = [
            node for node in tree.body if not (isinstance(node, ast.Import) and [x.name for x in node.names] == ["pytest"])
        ]
    return {function.name for function in made}


def _uses(tree: ast.Module) -> bool:
    """Whether there is anything to rewrite: most tests are plain."""
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return not names.isdisjoint((*PROGRAM, "pytest", "unittest")) or any(
        _tests_of(node) for node in tree.body if isinstance(node, ast.ClassDef)
    )


class _Rewriter(ast.NodeTransformer):
    def __init__(self, tree: ast.Module):
        imports = [alias for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
        self.modules = {alias.asname or alias.name for alias in imports if alias.name in PROGRAM}
        self.near = False

    def visit_Import(self, node: ast.Import) -> ast.AST:
        node.names = [alias for alias in node.names if alias.name not in PROGRAM]
        return node if node.names else ast.Pass()

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        if node.module not in PROGRAM:
            return node
        renamed = [alias for alias in node.names if alias.asname not in (None, alias.name)]
        return [_assigned(str(alias.asname), ast.Name(alias.name, ast.Load())) for alias in renamed] or ast.Pass()

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        of_program = isinstance(node.value, ast.Name) and node.value.id in self.modules
        return ast.copy_location(ast.Name(node.attr, node.ctx), node) if of_program else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        self.generic_visit(node)
        return ast.Pass() if _called(node.value, "unittest.main") else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        at = next((i for i, side in enumerate(sides) if _called(side, "pytest.approx")), None)
        if at is None or len(sides) > 2 or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
            return node
        self.near, approx, said = True, sides[at], sides[1 - at]
        assert isinstance(approx, ast.Call)
        found = ast.Call(ast.Name("near_", ast.Load()), [said, *approx.args], approx.keywords)
        return found if isinstance(node.ops[0], ast.Eq) else ast.UnaryOp(ast.Not(), found)

    def visit_With(self, node: ast.With) -> ast.AST:
        self.generic_visit(node)
        call = node.items[0].context_expr
        if len(node.items) > 1 or not _called(call, "pytest.raises") or not isinstance(call, ast.Call) or not call.args:
            return node
        match = next((keyword.value for keyword in call.keywords if keyword.arg == "match"), None)
        named = ast.unparse(node.items[0].optional_vars) if node.items[0].optional_vars else ""
        source = "try: pass\nexcept Exception as raised_:\n    pass\nelse: raise AssertionError('nothing was raised')"
        (tried,) = ast.parse(source).body
        assert isinstance(tried, ast.Try)
        tried.body, tried.handlers[0].type = node.body, call.args[0]
        if named:
            # what it caught, which pytest has as `value`
            tried.handlers[0].body += ast.parse(f"{named} = raised_\n{named}.value = raised_").body
        if match is not None:
            searched = f"import re as re_\nassert re_.search({ast.unparse(match)}, str(raised_))"
            tried.handlers[0].body += ast.parse(searched).body
        return ast.copy_location(tried, node)


def _is_pytest(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "pytest"


def _called(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and ast.unparse(node.func) == name


def _assigned(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _looped(node: ast.FunctionDef) -> list[ast.stmt]:
    """The loop that calls a test for each row of its parameters; nothing for one without any."""
    marks = [mark for mark in node.decorator_list if _called(mark, "pytest.mark.parametrize")]
    within = [part for mark in marks if isinstance(mark, ast.Call) for arg in mark.args for part in ast.walk(arg)]
    if not marks or len(marks) < len(node.decorator_list) or any(map(_is_pytest, within)):
        return []
    loop, names = None, []
    for mark in marks:
        assert isinstance(mark, ast.Call)
        try:
            written = ast.literal_eval(mark.args[0])
            rows = mark.args[1]
        except (ValueError, IndexError):
            return []
        own = [name.strip() for name in written.split(",")] if isinstance(written, str) else list(written)
        names += own
        target = ast.parse(f"for {', '.join(own)} in (): pass").body[0]
        assert isinstance(target, ast.For)
        target.iter, loop = rows, target if loop is None else _around(target, loop)
    _innermost(loop).body = ast.parse(f"{node.name}({', '.join(f'{name}={name}' for name in names)})").body
    node.decorator_list = []
    return [_unplaced(loop)] if loop else []


def _unplaced(tree: ast.For) -> ast.For:
    """Without the lines of the source that it was made from, which are not those of the tests."""
    for node in ast.walk(tree):
        for name in ("lineno", "end_lineno"):
            vars(node).pop(name, None)
    return tree


def _around(outer: ast.For, inner: ast.For) -> ast.For:
    outer.body = [inner]
    return outer


def _innermost(loop: ast.For | None) -> ast.For:
    assert loop is not None
    return _innermost(loop.body[0]) if isinstance(loop.body[0], ast.For) else loop


def _tests_of(node: ast.ClassDef) -> list[str]:
    """The tests of a class, as pytest and unittest find them."""
    if not (node.name.startswith("Test") or _is_case(node)):
        return []
    return [part.name for part in node.body if isinstance(part, ast.FunctionDef) and part.name.startswith("test")]


def _is_case(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).rpartition(".")[2] == "TestCase" for base in node.bases)


def _of_class(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """A function for each test of a class."""
    # what is called before and after each; pytest's may want the test as their argument
    parts = [part for part in node.body if isinstance(part, ast.FunctionDef)]
    calls = {part.name: f"    it.{part.name}({'None' * (len(part.args.args) > 1)})\n" for part in parts}
    before, after = ("".join(calls[name] for name in names if name in calls) for names in (SET_UP, TEAR_DOWN))
    functions: list[ast.FunctionDef] = []
    for test in _tests_of(node):
        made = f"{node.name}({test!r})" if _is_case(node) else f"{node.name}()"
        source = f"def {node.name}_{test}():\n    it = {made}\n{before}    it.{test}()\n{after}"
        functions += [part for part in ast.parse(source).body if isinstance(part, ast.FunctionDef)]
    return functions
