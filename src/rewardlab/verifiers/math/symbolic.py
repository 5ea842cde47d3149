"""Equality that needs a computer algebra system: trigonometry, nested roots, logarithms, series. Runs in a worker process.

Numerical values rule out expressions that differ; expressions that agree count as equal only if SymPy reduces their difference to
zero by exact steps. Trees are converted to SymPy expressions node by node: SymPy never parses text, since its parsers evaluate it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import sympy as sp

from .compare import Comparison
from .exact import Forms
from .kinds import unpacked
from .numeric import differ
from .trees import Tree

BITS = 200_000
"""Longest power of a rational number that is computed."""
NOT_PROVEN = "their values agree to 30 digits, but they are not proven equal"
DIFFERENT = "they have different values"

_X = sp.Symbol("x")
# one symbol for every log without a base, so that their quotients cancel
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


def same(reply: Any, gold: Any, *settings: Any) -> list[Any]:
    """[whether two answers are proven to be the same, the reason if not]. They are `packed`; settings: those of Comparison."""
    algebra = Algebra()
    # one expression whose value is that of no other settles a list before anything is proven
    for equal in (algebra.by_value, algebra.proven):
        found = Comparison(equal, *settings).same(unpacked(reply), unpacked(gold))
        if found is not None:
            return [found, "" if found else algebra.why]
    return [False, algebra.why]


class Algebra:
    """Decides about the expressions of two answers.  why: the first reason for which two of them were not taken to be equal."""

    def __init__(self) -> None:
        self.forms = Forms()
        self.known: dict[tuple[Tree, Tree], bool | None] = {}
        self.why = ""

    def by_value(self, a: Tree, b: Tree) -> bool | None:
        """Whether they are equal, as far as normal forms and numerical values tell."""
        if (sure := self.forms.equal(a, b)) is not None:
            return sure
        if (a, b) not in self.known:
            # far cheaper than algebra, and it settles most wrong answers
            self.known[a, b] = False if differ(a, b) else None
        if self.known[a, b] is False:
            self.why = self.why or DIFFERENT
        return self.known[a, b]

    def proven(self, a: Tree, b: Tree) -> bool:
        if (sure := self.by_value(a, b)) is None:
            try:
                sure, why = proven(a, b), NOT_PROVEN
            except Exception as problem:
                # what SymPy cannot do is not proven
                sure, why = False, f"{type(problem).__name__}: {problem}"[:200]
            self.known[a, b], self.why = sure, self.why if sure else why
        return sure


def proven(a: Tree, b: Tree) -> bool:
    difference = expression(a) - expression(b)
    return any(step == 0 for step in _steps(difference))


def _steps(difference: Any) -> Iterator[Any]:
    """Equivalent forms of an expression, by ever more expensive simplifications, until one is zero."""
    yield difference
    yield sp.expand(difference)
    constant = not difference.free_symbols
    if constant and difference.is_algebraic:
        # zero is the only number with the minimal polynomial x; this decides all algebraic numbers
        yield sp.minimal_polynomial(difference.rewrite(sp.cos).rewrite(sp.sqrt), _X) - _X
        return
    yield sp.together(sp.expand_log(sp.expand(difference, trig=True)))
    yield sp.trigsimp(difference)
    yield sp.combsimp(sp.gammasimp(difference))
    yield sp.simplify(sp.logcombine(difference))
    yield sp.simplify(difference.rewrite(sp.exp))
    yield sp.simplify(sp.sqrtdenest(difference))


def expression(tree: Tree) -> Any:
    head = tree[0]
    if head == "num":
        return sp.Rational(tree[1], tree[2])
    if head == "sym":
        # the variables of school mathematics are real, so that sqrt(x^2) = |x|
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
        # SymPy takes the principal, complex root
        return sp.Integer(-1) ** exponent.p * (-base) ** exponent
    return base**exponent


def _function(name: str, arguments: list[Any]) -> Any:
    if name == "log":
        return sp.log(arguments[0]) / sp.log(_LOG_BASE)
    if name.startswith("factorial") or name == "binomial":
        if arguments[0].is_number and abs(arguments[0]) > 5000:
            raise TooLarge(f"{name} of {arguments[0]}")
        return sp.factorial(arguments[0]) if name == "factorial" else _FUNCTIONS[name](*arguments)
    if name in _FUNCTIONS:
        return _FUNCTIONS[name](*arguments)
    return sp.Function(name)(*arguments)
