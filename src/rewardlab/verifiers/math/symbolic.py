"""Equality that needs a computer algebra system: trigonometry, nested roots, logarithms, series. Runs in a worker process.

Numerical values rule out expressions that differ; expressions that agree count as equal only if SymPy reduces their difference to
zero by exact steps. Trees are converted to SymPy expressions node by node: SymPy never parses text, since its parsers evaluate it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import sympy as sp

from .numeric import differ
from .trees import Tree

BITS = 200_000
NOT_PROVEN = "their values agree to 30 digits, but they are not proven equal"

_X = sp.Symbol("x")
_LOG_BASE = sp.Symbol("base of log", positive=True)
_CONSTANTS = {"pi": sp.pi, "e": sp.E, "i": sp.I, "inf": sp.oo}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "arcsin": sp.asin, "arccos": sp.acos, "arctan": sp.atan, "arccot": sp.acot, "arcsec": sp.asec, "arccsc": sp.acsc,
    "arcsinh": sp.asinh, "arccosh": sp.acosh, "arctanh": sp.atanh, "ln": sp.log, "abs": sp.Abs, "ceil": sp.ceiling, "max": sp.Max,
    "min": sp.Min, **{name: getattr(sp, name) for name in (
        "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "floor", "binomial", "factorial2", "gcd", "lcm")},
}  # fmt: skip


class TooLarge(ValueError):
    """A number is too large to compute."""


def equal(a: list[Any], b: list[Any]) -> list[Any]:
    """[whether two trees are proven equal, the reason if not]. Trees arrive as lists, since workers exchange JSON."""
    one, other = frozen(a), frozen(b)
    if differ(one, other):
        return [False, "they have different values"]
    rest = expression(one) - expression(other)
    return [True, ""] if any(step == 0 for step in _steps(rest)) else [False, NOT_PROVEN]


def frozen(tree: Any) -> Tree:
    return tuple(frozen(part) for part in tree) if isinstance(tree, list) else tree


def _steps(rest: Any) -> Iterator[Any]:
    """Equivalent forms of an expression, by ever more expensive simplifications, until one is zero."""
    yield rest
    yield sp.expand(rest)
    constant = not rest.free_symbols
    if constant and rest.is_algebraic:
        yield sp.minimal_polynomial(rest.rewrite(sp.cos).rewrite(sp.sqrt), _X) - _X
        return
    yield sp.together(sp.expand_log(sp.expand(rest, trig=True)))
    yield sp.trigsimp(rest)
    yield sp.combsimp(sp.gammasimp(rest))
    yield sp.simplify(sp.logcombine(rest))
    yield sp.simplify(rest.rewrite(sp.exp))
    yield sp.simplify(sp.sqrtdenest(rest))


def expression(tree: Tree) -> Any:
    head = tree[0]
    if head == "num":
        return sp.Rational(tree[1], tree[2])
    if head == "sym":
        return sp.Symbol(tree[1], real=True)
    if head == "const":
        return _CONSTANTS[tree[1]]
    if head == "fn" and tree[1] in ("sum", "prod"):
        _, name, variable, low, high, body = tree
        series = sp.Sum if name == "sum" else sp.Product
        return series(expression(body), (expression(variable), expression(low), expression(high))).doit()
    parts = [expression(part) for part in tree[2 if head == "fn" else 1 :]]
    if head == "add":
        return sp.Add(*parts)
    if head == "mul":
        return sp.Mul(*parts)
    if head == "root":
        return _power(parts[1], 1 / parts[0])
    if head == "pow":
        return _power(*parts)
    return _function(tree[1], parts)


def _power(base: Any, exponent: Any) -> Any:
    """A power with real odd roots. Raises ZeroDivisionError for 0^0 and negative powers of 0, and TooLarge for long numbers."""
    if base == 0 and not exponent.is_positive:
        raise ZeroDivisionError("a power of zero")
    if base.is_Rational and exponent.is_Rational:
        bits = max(abs(base.p), base.q).bit_length()
        if abs(base) != 1 and bits * abs(exponent) > BITS:
            raise TooLarge(f"{base}^{exponent}")
    if exponent.is_Rational and exponent.q % 2 == 1 and exponent.q > 1 and base.is_negative:
        return sp.Integer(-1) ** exponent.p * (-base) ** exponent
    return base**exponent


def _function(name: str, of: list[Any]) -> Any:
    if name == "log":
        return sp.log(of[0]) / sp.log(_LOG_BASE)
    if name.startswith("factorial") or name == "binomial":
        if of[0].is_number and abs(of[0]) > 5000:
            raise TooLarge(f"{name} of {of[0]}")
        return sp.factorial(of[0]) if name == "factorial" else _FUNCTIONS[name](*of)
    if name in _FUNCTIONS:
        return _FUNCTIONS[name](*of)
    return sp.Function(name)(*of)
