"""Numerical evaluation to many digits. A difference proves that two expressions are not equal; agreement proves nothing."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import mpmath
from mpmath import mp

from .exact import rational
from .trees import Tree, names

DIGITS = 60
AGREE = mpmath.mpf(10) ** -30
"""Relative difference above which two values differ. It is far above 10^-DIGITS, to allow for cancellation on the way."""
NOISE = mpmath.mpf(10) ** -45
"""Absolute difference below which two values never differ: rounding errors about zero have no relative size."""
LARGEST = 10**9
POINTS = 6

_FUNCTIONS = {
    "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "cot": mp.cot, "sec": mp.sec, "csc": mp.csc, "arcsin": mp.asin, "arccos": mp.acos,
    "arctan": mp.atan, "arccot": mp.acot, "arcsec": mp.asec, "arccsc": mp.acsc, "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh,
    "coth": mp.coth, "arcsinh": mp.asinh, "arccosh": mp.acosh, "arctanh": mp.atanh, "ln": mp.ln, "abs": mp.fabs, "floor": mp.floor,
    "ceil": mp.ceil, "factorial": mp.factorial, "factorial2": mp.fac2, "binomial": mp.binomial, "max": max, "min": min,
}  # fmt: skip


class NoValue(ArithmeticError):
    """The expression has no value here, or one too large to compute."""


def differ(a: Tree, b: Tree) -> bool:
    """Whether the expressions have different values at one of the test points. False proves nothing."""
    with mp.workdps(DIGITS):
        symbols = sorted(names(a) | names(b))
        return any(_differ_at(a, b, point) for point in (_points(symbols) if symbols else [{}]))


def _differ_at(a: Tree, b: Tree, point: Mapping[str, Any]) -> bool:
    try:
        first, second = value(a, point), value(b, point)
        if not (mp.isfinite(first) and mp.isfinite(second)):
            return False
        if point and not (_real(first) and _real(second)):
            # outside of where both are defined as real functions
            return False
        distance = abs(first - second)
        return bool(distance > NOISE and distance > AGREE * max(abs(first), abs(second)))
    except (ArithmeticError, ValueError, TypeError):
        return False


def _real(x: Any) -> bool:
    return abs(mp.im(x)) <= AGREE * (1 + abs(mp.re(x)))


def _points(symbols: list[str]) -> list[dict[str, Any]]:
    """POINTS assignments of numbers to the symbols: integers, positive and negative rationals. The same on every call."""
    rng = random.Random(0)
    # the prime denominator 1009 keeps the points away from special values such as 1/2
    points = []
    for i in range(POINTS):
        use_integers, sign = i % 3 == 0, -1 if i % 3 == 2 else 1
        # the prime denominator 1009 keeps the points away from special values such as 1/2
        points.append(
            {s: mp.mpf(rng.randint(2, 9)) if use_integers else sign * mp.mpf(rng.randint(200, 3000)) / 1009 for s in symbols}
        )
    return points


def value(tree: Tree, point: Mapping[str, Any]) -> Any:
    head = tree[0]
    if head == "num":
        return mp.mpf(tree[1]) / tree[2]
    if head == "sym":
        return point[tree[1]]
    if head == "const":
        # times 1, since mp.pi is evaluated only in arithmetic, and at the precision set then
        return {"pi": mp.pi, "e": mp.e, "i": mp.j, "inf": mp.inf}[tree[1]] * 1
    if head == "add":
        return mp.fsum(value(part, point) for part in tree[1:])
    if head == "mul":
        return mp.fprod(value(part, point) for part in tree[1:])
    if head == "root":
        return real_power(value(tree[2], point), 1, value(tree[1], point))
    if head == "pow":
        return _power(tree, point)
    if tree[1] in ("sum", "prod"):
        return _series(tree, point)
    return _function(tree[1], [value(part, point) for part in tree[2:]])


def _power(tree: Tree, point: Mapping[str, Any]) -> Any:
    base = value(tree[1], point)
    if (known := rational(tree[2])) is not None:
        return real_power(base, known.numerator, known.denominator)
    exponent = value(tree[2], point)
    if abs(exponent) > LARGEST:
        raise NoValue
    return base**exponent


def real_power(base: Any, above: int, below: Any) -> Any:
    """base^(above/below), with real odd roots: the cube root of -8 is -2."""
    if abs(above) > LARGEST:
        raise NoValue
    if below == 1:
        return base**above
    if mp.im(base) == 0 and base < 0 and below % 2 == 1:
        return (-((-base) ** (mp.one / below))) ** above
    return base ** (mp.mpf(above) / below)


def _series(tree: Tree, point: Mapping[str, Any]) -> Any:
    _, name, variable, low, high, body = tree
    start, end = value(low, point), value(high, point)
    if not (mp.isfinite(end) and mp.isint(start) and mp.isint(end)) or end - start > 500:
        raise NoValue
    terms = [value(body, {**point, variable[1]: mp.mpf(k)}) for k in range(int(start), int(end) + 1)]
    return mp.fsum(terms) if name == "sum" else mp.fprod(terms)


def _function(name: str, arguments: list[Any]) -> Any:
    if name == "log":
        # of an unknown base, the same everywhere
        return mp.ln(arguments[0]) / mp.ln(mp.mpf(7))
    if name not in _FUNCTIONS or (name.startswith("factorial") and abs(arguments[0]) > LARGEST):
        raise NoValue
    return _FUNCTIONS[name](*arguments)
