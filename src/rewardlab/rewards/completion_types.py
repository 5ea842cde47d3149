"""Whether a function takes prompts and completions as texts, or as lists of messages {"role", "content"}."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

TEXTS = ("prompt", "prompts", "completion", "completions")
"""Arguments that hold texts in some frameworks' functions, and messages in others'."""
KEYS = ("role", "content")
PASSED_ON = ("zip", "enumerate", "list", "reversed", "iter", "next", "sorted", "tuple")
"""Functions whose result holds what they are given."""
DEPTH = 4
"""Calls from function to function that are followed."""


def takes_messages(function: Callable) -> bool:
    """Whether prompts and completions are handed over as messages, as TRL does in conversations, and not as texts.

    The annotation of such an argument decides: `list[str]` or `list[list[dict[str, str]]]`. Without one the code decides: messages
    if it reads the key "content" or "role" of a prompt or completion, itself or in a function that it gives them to.
    It is read, not tried out, so that training, evaluation and audit agree whatever the first reply looks like.
    """
    function = _plain(function)
    texts, written = _annotated(function)
    if any(word in written for word in ("dict", "mapping", "message")):
        return True
    # `list` or `Any` alone say nothing
    return "str" not in written and _reads_keys(function, frozenset(texts), DEPTH)


def says_text(function: Callable) -> bool:
    """Whether the annotations of a function say that it takes prompts and completions as texts."""
    _, written = _annotated(_plain(function))
    return "str" in written and not any(word in written for word in ("dict", "mapping", "message"))


def _annotated(function: Any) -> tuple[list[str], str]:
    """The arguments that hold texts or messages, and their annotations in one text."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return [], ""
    texts = {name: p for name, p in signature.parameters.items() if name in TEXTS}
    written = (inspect.formatannotation(p.annotation).lower() for p in texts.values() if p.annotation is not p.empty)
    return list(texts), " ".join(written)


def _plain(function: Any) -> Any:
    """The function below partial objects and decorators; the method `__call__` of an object that can be called."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    return function if inspect.isroutine(function) or inspect.isclass(function) else type(function).__call__


def _reads_keys(function: Any, texts: frozenset[str], depth: int) -> bool:
    """Whether a function reads a key of messages from the arguments named in `texts`, or from what they hold."""
    tree = _syntax(function)
    if tree is None or not texts:
        return False
    names = set(texts)
    # names are given values in any order (a loop may come before the function that uses its variable): repeat until none is new
    while new := {name for node in ast.walk(tree) for name in _given(node, names)} - names:
        names |= new
    nodes = list(ast.walk(tree))
    return any(_reads_key(node, names) for node in nodes) or (
        depth > 0 and any(_passes_on(node, names, _known(function), depth) for node in nodes if isinstance(node, ast.Call))
    )


def _syntax(function: Any) -> ast.AST | None:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None


def _given(node: ast.AST, names: set[str]) -> Iterator[str]:
    """The names that a statement gives a value held by one of `names`."""
    pairs: Iterable[tuple[Any, Any]] = ()
    if isinstance(node, ast.For | ast.comprehension | ast.AsyncFor):
        pairs = _unpacked(node.target, node.iter)
    elif isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        pairs = [(node.target, node.value)]
    for target, value in pairs:
        if _holds(value, names):
            yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))


def _unpacked(target: ast.expr, iterated: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`for c, a in zip(completions, answers)` gives c from completions and a from answers."""
    called = isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id
    if called == "zip" and isinstance(target, ast.Tuple) and isinstance(iterated, ast.Call):
        yield from zip(target.elts, iterated.args, strict=False)
    elif called == "enumerate" and isinstance(target, ast.Tuple) and isinstance(iterated, ast.Call) and iterated.args:
        yield from _unpacked(target.elts[-1], iterated.args[0])
    else:
        yield target, iterated


def _holds(node: ast.expr, names: set[str]) -> bool:
    """Whether an expression is one of `names`, or an item of it, or a list of such items."""
    match node:
        case ast.Name(id=name):
            return name in names
        case ast.Subscript(value=value, slice=key):
            # the value under a key is a text, not a message
            return not _is_key(key) and _holds(value, names)
        case ast.Call(func=ast.Name(id=name), args=args):
            return name in PASSED_ON and any(_holds(x, names) for x in args)
        case ast.IfExp(body=body, orelse=orelse):
            return _holds(body, names) or _holds(orelse, names)
        case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item):
            return _holds(item, names)
    return False


def _reads_key(node: ast.AST, names: set[str]) -> bool:
    match node:
        case ast.Subscript(value=value, slice=key):
            return _is_key(key) and _holds(value, names)
        case ast.Call(func=ast.Attribute(value=value, attr="get"), args=[key, *_]):
            return _is_key(key) and _holds(value, names)
    return False


def _is_key(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in KEYS


def _known(function: Any) -> Mapping[str, Any]:
    """The names that a function's code can use, and what they stand for."""
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None) or ()
    closed = dict(zip(code.co_freevars, cells, strict=False)) if code else {}
    # a cell is empty until the function around it has set the variable
    return {**getattr(function, "__globals__", {}), **{k: c.cell_contents for k, c in closed.items() if _filled(c)}}


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _passes_on(call: ast.Call, names: set[str], known: Mapping[str, Any], depth: int) -> bool:
    """Whether a call gives one of `names` to a function that reads a key of it."""
    helper = known.get(call.func.id) if isinstance(call.func, ast.Name) else None
    # map(helper, completions) calls it with what completions holds
    arguments = call.args
    if isinstance(call.func, ast.Name) and call.func.id in ("map", "filter") and call.args:
        helper = known.get(call.args[0].id) if isinstance(call.args[0], ast.Name) else None
        arguments = call.args[1:]
    if not inspect.isfunction(helper):
        return False
    parameters = list(inspect.signature(helper).parameters)
    given = {name for name, x in zip(parameters, arguments, strict=False) if _holds(x, names)}
    given |= {k.arg for k in call.keywords if k.arg in parameters and _holds(k.value, names)}
    return _reads_keys(inspect.unwrap(helper), frozenset(given), depth - 1)
