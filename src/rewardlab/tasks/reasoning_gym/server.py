"""The package reasoning-gym in a process of its own: one JSON request a line, one JSON reply a line.

Run as a script by `kit/reasoning_gym.py`; imports nothing of rewardlab, so that it starts without PyTorch. It is a process apart
since some generators follow the order of sets and the global random state, so that they are deterministic only under a fixed
PYTHONHASHSEED, and since a scorer may hang on what a model wrote, or be brought down by it.

Text of a model is never run as code. Nine scorers of the package evaluate the answer: binary_matrix, n_queens, spiral_matrix and
string_insertion by `eval`; countdown, intermediate_integration, polynomial_multiplication, puzzle24 and simple_integration by
sympy's `parse_expr`. Two more evaluate the entry: bitwise_arithmetic and number_sorting. Here they all get readers of literals and
of arithmetic instead. While an answer is scored, an audit hook refuses what running code would need: a tripwire for scorers of
other versions, no sandbox.
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
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

MEMORY = 4 << 30
"""Bytes of address space, so that an answer cannot take the machine's memory."""

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
"""Files that run code which they write themselves, from no text of anyone's."""

_tripped: list[str] | None = None


# ---- what is asked -----------------------------------------------------------------------------------------------------


def generators() -> dict[str, str | None]:
    """Every generator's name, and why it is refused, if it is."""
    return {name: REFUSED.get(name) for name in sorted(_datasets())}


def options(generator: str) -> list[str]:
    """The settings of a generator. Seed and size are ours to choose."""
    return [f.name for f in dataclasses.fields(_datasets()[generator][1]) if f.name not in ("seed", "size")]


def draw(generator: str, given: str, index: int) -> dict[str, Any]:
    """The entry at a position from 0 to 2^31, the same in every process; `entry` is JSON text that `score` reads."""
    random.seed(index)
    importlib.import_module("numpy").random.seed(index)
    page, place = divmod(index, PAGE) if generator in PAGED else (0, index)
    found = _dataset(generator, given, page)[place]
    return {"question": found["question"], "answer": encode(found["answer"]), "entry": json.dumps(encode(found))}


def score(generator: str, given: str, entry: str, answer: str, seconds: float) -> dict[str, Any]:
    """{"value": what the generator's own scorer says}, or {"raised": why} where it failed on this answer."""
    found, known = _dataset(generator, given), decode(json.loads(entry))
    # should nobody be left to end this process
    signal.setitimer(signal.ITIMER_REAL, 2 * seconds)
    try:
        with _watching() as tripped:
            said = _outcome(found.score_answer, answer, known)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return {"raised": f"the scorer wanted to run code ({tripped[0]})"} if tripped else said


def _outcome(scorer: Callable[..., Any], answer: str, known: Any) -> dict[str, Any]:
    try:
        return {"value": float(scorer(answer, known))}
    except Exception as e:
        return {"raised": f"{type(e).__name__}: {str(e)[:200]}"}


# ---- the package -------------------------------------------------------------------------------------------------------


@functools.cache
def _datasets() -> dict[str, tuple[Any, Any]]:
    """Name to (dataset, configuration) classes; imports the package, tamed."""
    sympy, parser = importlib.import_module("sympy"), importlib.import_module("sympy.parsing.sympy_parser")
    # before the package imports them by name
    sympy.parse_expr = parser.parse_expr = expression  # type: ignore[attr-defined]
    importlib.import_module("reasoning_gym")
    for name in LITERALS:
        vars(importlib.import_module(f"reasoning_gym.{name}"))["eval"] = ast.literal_eval
    vars(importlib.import_module("reasoning_gym.arithmetic.bitwise_arithmetic"))["eval"] = whole
    return importlib.import_module("reasoning_gym.factory").DATASETS


@functools.lru_cache(maxsize=8)
def _dataset(generator: str, given: str, seed: int = 0) -> Any:
    made, config = _datasets()[generator]
    return made(config=_configured(config, json.loads(given), seed))


def _configured(config: Any, given: dict[str, Any], seed: int) -> Any:
    """The configuration with these settings; a dictionary fills in a setting that is a configuration itself."""
    usual, fitted = config(), {}
    for name, value in given.items():
        if dataclasses.is_dataclass(before := getattr(usual, name)) and isinstance(value, dict):
            value = dataclasses.replace(before, **value)  # type: ignore[type-var]
        fitted[name] = [_part_of_composite(x) for x in value] if name == "datasets" else value
    made = config(seed=seed, **fitted)
    if hasattr(made, "validate"):
        made.validate()
    return made


def _part_of_composite(given: dict[str, Any]) -> Any:
    if given.get("name") in REFUSED:
        raise ValueError(f"{given['name']} is refused: {REFUSED[given['name']]}")
    return importlib.import_module("reasoning_gym.composite").DatasetSpec(**{"weight": 1.0, "config": {}, **given})


# ---- entries as plain data ---------------------------------------------------------------------------------------------


def encode(x: Any) -> Any:
    """JSON data for an entry, from which `decode` makes an equal one: tuples, fractions, and keys that are no text are marked."""
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
    raise TypeError(f"the entry holds a {type(x).__name__}, which is no plain data")


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


def whole(text: str) -> int:
    """Whole numbers with + - * << >> ( )."""

    def no(name: str) -> Any:
        raise ValueError(f"only whole numbers and operations, not {name}")

    return _value(_parsed(text), lambda value: value if isinstance(value, int) else no(str(value)), no, no)


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


# ---- the process -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _watching() -> Iterator[list[str]]:
    """What the audit hook refused meanwhile."""
    global _tripped
    _tripped = []
    try:
        yield _tripped
    finally:
        _tripped = None


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _tripped is None:
        return
    text = event == "exec" and getattr(arguments[0], "co_filename", "") == "<string>"
    code = text and not sys._getframe(1).f_code.co_filename.endswith(OWN_CODE)
    written = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if code or written or event.startswith(FORBIDDEN):
        _tripped.append(event)
        raise PermissionError(f"{event} while an answer is scored")


def main() -> None:
    replies = os.fdopen(os.dup(1), "w")
    # what the package prints is no reply
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    sys.addaudithook(_audit)
    commands: dict[str, Callable[..., Any]] = {f.__name__: f for f in (generators, options, draw, score)}
    for line in sys.stdin:
        replies.write(json.dumps(_reply(commands, json.loads(line))) + "\n")
        replies.flush()


def _reply(commands: dict[str, Callable[..., Any]], request: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"is": commands[request["do"]](**request["with"])}
    except ImportError as e:
        return {"missing": str(e)}
    except Exception as e:
        return {"error": f"{type(e).__name__}: {e}"}


if __name__ == "__main__":
    main()
