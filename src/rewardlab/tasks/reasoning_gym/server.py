"""The package reasoning-gym: what `process.py` calls in a process of its own.

A process of its own, since some generators follow the order of sets and the global random state, so that they are deterministic
only under a fixed PYTHONHASHSEED, and since a scorer may hang or die on what a model wrote.

Text of a model is never run as code. Nine scorers of the package evaluate the answer: binary_matrix, n_queens, spiral_matrix and
string_insertion by `eval`; countdown, intermediate_integration, polynomial_multiplication, puzzle24 and simple_integration by
sympy's `parse_expr`. Two more evaluate the entry: bitwise_arithmetic and number_sorting. Here they all get readers of literals and
of arithmetic instead. While an answer is scored, an audit hook refuses what running code would need: this catches scorers of other
versions, and is no sandbox.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import importlib
import json
import operator
import os
import random
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

REFUSED = {
    "codeio": "its problems are made by running programs that a language model wrote, and there is no sandbox to run them in"
}

PAGE = 500
PAGED = {"acre", "composite", "gsm_symbolic", "list_functions", "word_ladder"}
"""Generators that lay out PAGE problems beforehand: other positions need another seed."""

LITERALS = (
    *("algorithmic.binary_matrix", "algorithmic.number_sorting", "algorithmic.spiral_matrix", "algorithmic.string_insertion"),
    "games.n_queens",
)
"""Modules whose scorer calls `eval` where a list is expected."""

OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: operator.pow,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip
FUNCTIONS = (
    *("sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("exp", "log", "ln", "sqrt", "Abs", "erf", "erfi", "Ei", "Si", "Ci", "li", "gamma"),
)
CONSTANTS = ("pi", "E", "I")

FORBIDDEN = (
    *("subprocess.", "socket.", "shutil.", "ctypes.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.kill"),
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown"),
)
OWN_CODE = ("sympy/polys/monomials.py", "/collections/__init__.py", "/dataclasses.py")
"""Files that run code which they generate themselves, from no text of a model or an entry."""

_refused: list[str] | None = None
"""Events that the audit hook has refused; None while no answer is scored."""


# ---- what can be called ------------------------------------------------------------------------------------------------


def generators() -> dict[str, str | None]:
    """Every generator's name, and why it is refused, if it is."""
    return {name: REFUSED.get(name) for name in sorted(_datasets())}


def options(generator: str) -> list[str]:
    """The settings of a generator, but for seed and size, which are chosen here."""
    return [f.name for f in dataclasses.fields(_datasets()[generator][1]) if f.name not in ("seed", "size")]


def sample(generator: str, settings: str, index: int) -> dict[str, Any]:
    """The entry at a position from 0 to 2^31, the same in every process; `entry` is JSON text that `score` reads."""
    # some generators read the global random state instead of their own seed
    random.seed(index)
    importlib.import_module("numpy").random.seed(index)
    page, place = divmod(index, PAGE) if generator in PAGED else (0, index)
    entry = _dataset(generator, settings, page)[place]
    return {"question": entry["question"], "answer": encode(entry["answer"]), "entry": json.dumps(encode(entry))}


def score(generator: str, settings: str, entry: str, answer: str) -> dict[str, Any]:
    """{"value": what the generator's own scorer says}, or {"raised": why} where it failed on this answer."""
    dataset, decoded_entry = _dataset(generator, settings), decode(json.loads(entry))
    with _refusing_code() as refused:
        outcome = _outcome(dataset.score_answer, answer, decoded_entry)
    return {"raised": f"the scorer wanted to run code ({refused[0]})"} if refused else outcome


def _outcome(scorer: Callable[..., Any], answer: str, entry: Any) -> dict[str, Any]:
    try:
        return {"value": float(scorer(answer, entry))}
    except Exception as e:
        return {"raised": f"{type(e).__name__}: {str(e)[:200]}"}


# ---- the package -------------------------------------------------------------------------------------------------------


@functools.cache
def _datasets() -> dict[str, tuple[Any, Any]]:
    """Name to (dataset, configuration) classes; imports the package, and replaces its uses of `eval`."""
    sympy, parser = importlib.import_module("sympy"), importlib.import_module("sympy.parsing.sympy_parser")
    # before the package imports them by name
    sympy.parse_expr = parser.parse_expr = expression  # type: ignore[attr-defined]
    importlib.import_module("reasoning_gym")
    for name in LITERALS:
        vars(importlib.import_module(f"reasoning_gym.{name}"))["eval"] = ast.literal_eval
    vars(importlib.import_module("reasoning_gym.arithmetic.bitwise_arithmetic"))["eval"] = whole_number
    return importlib.import_module("reasoning_gym.factory").DATASETS


@functools.lru_cache(maxsize=8)
def _dataset(generator: str, settings: str, seed: int = 0) -> Any:
    dataset, config = _datasets()[generator]
    return dataset(config=_configured(config, json.loads(settings), seed))


def _configured(config: Any, settings: dict[str, Any], seed: int) -> Any:
    """The configuration with these settings; a dictionary fills in a setting that is a configuration itself."""
    defaults, values = config(), {}
    for name, value in settings.items():
        if dataclasses.is_dataclass(default := getattr(defaults, name)) and isinstance(value, dict):
            value = dataclasses.replace(default, **value)  # type: ignore[type-var]
        values[name] = [_part_of_composite(x) for x in value] if name == "datasets" else value
    configured = config(seed=seed, **values)
    if hasattr(configured, "validate"):
        configured.validate()
    return configured


def _part_of_composite(part: dict[str, Any]) -> Any:
    if part.get("name") in REFUSED:
        raise ValueError(f"{part['name']} is refused: {REFUSED[part['name']]}")
    return importlib.import_module("reasoning_gym.composite").DatasetSpec(**{"weight": 1.0, "config": {}, **part})


# ---- entries as plain data ---------------------------------------------------------------------------------------------


def encode(x: Any) -> Any:
    """JSON data for an entry, from which `decode` makes an equal one.

    Tuples, fractions, and dictionaries with other keys than text are tagged.
    """
    if isinstance(x, tuple):
        return {"$": "tuple", "of": [encode(v) for v in x]}
    if isinstance(x, list):
        return [encode(v) for v in x]
    if isinstance(x, dict):
        if all(type(k) is str and k != "$" for k in x):
            return {k: encode(v) for k, v in x.items()}
        return {"$": "dict", "of": [[encode(k), encode(v)] for k, v in x.items()]}
    if isinstance(x, Fraction):
        return {"$": "fraction", "of": [x.numerator, x.denominator]}
    if x is None or isinstance(x, str | int | float):
        return x
    if hasattr(x, "item"):
        return x.item()
    raise TypeError(f"the entry holds a {type(x).__name__}, which is not plain data")


KINDS: dict[str, Callable[..., Any]] = {"tuple": tuple, "dict": dict, "fraction": lambda of: Fraction(*of)}


def decode(x: Any) -> Any:
    if isinstance(x, list):
        return [decode(v) for v in x]
    if not isinstance(x, dict):
        return x
    if "$" not in x:
        return {k: decode(v) for k, v in x.items()}
    return KINDS[x["$"]](decode(x["of"]))


# ---- reading without running ---------------------------------------------------------------------------------------------


def expression(text: str, local_dict: dict[str, Any] | None = None, *_: Any, **__: Any) -> Any:
    """In place of sympy's parse_expr, which evaluates: numbers, names, + - * / ** ( ) and FUNCTIONS, as a sympy expression."""
    import sympy

    def number(value: Any) -> Any:
        return sympy.Integer(value) if isinstance(value, int) else sympy.Float(str(value))

    names = {name: getattr(sympy, name) for name in CONSTANTS} | (local_dict or {})
    return _value(_parsed(text), number, lambda name: names.get(name) or sympy.Symbol(name), lambda name: getattr(sympy, name))


def whole_number(text: str) -> int:
    """Whole numbers with + - * << >> ( )."""

    def refuse(name: str) -> Any:
        raise ValueError(f"only whole numbers and operations, not {name}")

    return _value(_parsed(text), lambda value: value if isinstance(value, int) else refuse(str(value)), refuse, refuse)


def _parsed(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _value(node: ast.expr, number: Callable, name: Callable, function: Callable) -> Any:
    def of(inner: ast.expr) -> Any:
        return _value(inner, number, name, function)

    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return number(value)
        case ast.Name(id=called):
            return name(called)
        case ast.UnaryOp(op=op, operand=inner) if type(op) in OPERATORS:
            return OPERATORS[type(op)](of(inner))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](of(left), of(right))
        case ast.Call(func=ast.Name(id=called), args=[_, *_] as arguments, keywords=[]) if called in FUNCTIONS:
            return function(called)(*map(of, arguments))
    raise ValueError(f"not arithmetic: {type(node).__name__}")


# ---- the audit hook ----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _refusing_code() -> Iterator[list[str]]:
    """While this is open, `refuse_code` is active. Yields the events that it refuses."""
    global _refused
    _refused = []
    try:
        yield _refused
    finally:
        _refused = None


def refuse_code(event: str, arguments: tuple[Any, ...]) -> None:
    """The audit hook: raises PermissionError on what only running code would do."""
    if _refused is None:
        return
    from_string = event == "exec" and getattr(arguments[0], "co_filename", "") == "<string>"
    # frame 1 is the caller of exec: the package's own generators of code are allowed
    runs_code = from_string and not sys._getframe(1).f_code.co_filename.endswith(OWN_CODE)
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if runs_code or writes or event.startswith(FORBIDDEN):
        _refused.append(event)
        raise PermissionError(f"{event} while an answer is scored")
