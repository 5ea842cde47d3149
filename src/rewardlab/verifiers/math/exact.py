"""Exact equality by normal forms: an expression becomes a fraction of polynomials with rational coefficients.

The indeterminates of the polynomials are called atoms: symbols, pi, e, i, and roots of primes. Monomials in these are linearly
independent over the rationals (roots of primes: Besicovitch 1940; pi and e are transcendental, but not known to be algebraically
independent). So two forms are equal if and only if their cross-multiplied difference has no terms. Other atoms, such as sin(x) or
sqrt(x + 1), are named by the normal form of their argument; for these a zero difference proves equality, but a nonzero one does
not disprove it, as they may satisfy identities that are not known here.

Roots are real: an odd root of a negative number is negative, and sqrt(x^3) = x sqrt(x). A common factor cancels:
(x^2 - 1)/(x - 1) = x + 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from .polynomials import (
    ONE,
    Form,
    Polynomial,
    TooHard,
    add,
    atom,
    bits_of,
    constant,
    cost,
    multiply,
    opaque,
    quotient,
    spend,
    start,
    written,
)
from .powers import power, root, value_of
from .trees import Tree


class Forms:
    """Compares many expressions with each other: the normal form of each is worked out once."""

    def __init__(self) -> None:
        self.known: dict[Tree, Form | None] = {}

    def equal(self, a: Tree, b: Tree) -> bool | None:
        """Whether two expressions are equal; None if normal forms cannot decide."""
        if a == b:
            return True
        # numbers are in lowest terms, so different tuples are different numbers
        if a[0] == b[0] == "num":
            return False
        first = self.form(a)
        second = self.form(b) if first else None
        if not first or not second:
            return None
        try:
            start()
            numerator = difference(first, second)
        except TooHard:
            return None
        return not numerator or (None if depends(numerator) else False)

    def form(self, tree: Tree) -> Form | None:
        if tree not in self.known:
            try:
                start()
                self.known[tree] = form(tree)
            except (TooHard, RecursionError):
                self.known[tree] = None
        return self.known[tree]


def equal(a: Tree, b: Tree) -> bool | None:
    """Whether two expressions are equal; None if normal forms cannot decide."""
    return Forms().equal(a, b)


def difference(a: Form, b: Form) -> Polynomial:
    """The numerator of a - b, over a common denominator; zero exactly if the forms are equal."""
    if a.below == b.below:
        return add(a.above, b.above, -1)
    return add(multiply(a.above, b.below), multiply(b.above, a.below), -1)


def depends(polynomial: Polynomial) -> bool:
    """Whether the atoms may satisfy algebraic relations that are not known here, so that a nonzero polynomial may still vanish."""
    atoms = {atom for monomial in polynomial for atom, _ in monomial}
    return any(atom[0] == "#" for atom in atoms) or {"pi", "e"} <= atoms


def rational(tree: Tree) -> Fraction | None:
    """The value of an expression if its normal form is a rational number; else None."""
    if tree[0] == "num":
        return Fraction(tree[1], tree[2])
    try:
        start()
        return constant(form(tree))
    except (TooHard, RecursionError):
        return None


def form(tree: Tree) -> Form:
    """The normal form of an expression. Raises TooHard."""
    spend(1)
    head = tree[0]
    if head == "num":
        if not tree[2]:
            raise TooHard
        value = tree[1] if tree[2] == 1 else Fraction(tree[1], tree[2])
        return Form({(): value} if value else {}, ONE)
    if head == "sym":
        return atom(tree[1])
    if head == "const":
        # infinity is opaque: a nonzero difference that contains it proves nothing
        return atom(tree[1] if tree[1] != "inf" else "#inf")
    if head == "add":
        return sum_of(form(part) for part in tree[1:])
    if head == "mul":
        return product_of(form(part) for part in tree[1:])
    if head == "pow":
        return power(form(tree[1]), form(tree[2]))
    if head == "root":
        degree = constant(form(tree[1]))
        if degree is None or degree.denominator != 1 or not 2 <= degree <= 50:
            raise TooHard
        return root(form(tree[2]), int(degree))
    return function(tree[1], [form(part) for part in tree[2:]])


def sum_of(parts: Iterable[Form]) -> Form:
    total = Form({}, ONE)
    for part in parts:
        if part.below == total.below:
            total = Form(add(total.above, part.above), total.below)
        else:
            above = add(multiply(total.above, part.below), multiply(part.above, total.below))
            total = quotient(above, multiply(total.below, part.below))
    return total


def product_of(parts: Iterable[Form]) -> Form:
    total = Form(ONE, ONE)
    for part in parts:
        total = quotient(multiply(total.above, part.above), multiply(total.below, part.below))
    return total


def function(name: str, arguments: list[Form]) -> Form:
    return value_of(name, arguments) or atom(opaque(f"{name}({','.join(written(part) for part in arguments)})"))


class Line(NamedTuple):
    """slope (name - root), with rational slope and root."""

    name: str
    root: Fraction
    slope: Fraction


def linear(left: Tree, right: Tree) -> Line | None:
    """left - right, if it is linear in one symbol with rational coefficients; else None. Used to solve linear inequalities."""
    try:
        start()
        above, below = form(("add", left, ("mul", ("num", -1, 1), right)))
    except (TooHard, RecursionError):
        return None
    names = [monomial for monomial in above if monomial]
    if below != ONE or len(names) != 1 or len(names[0]) != 1:
        return None
    ((name, exponent),) = names[0]
    # roots of primes, constants and opaque atoms are not variables
    if exponent != 1 or name.isdigit() or name[0] == "#" or name in ("pi", "e", "i"):
        return None
    slope = Fraction(above[names[0]])
    return Line(name, -Fraction(above.get((), 0)) / slope, slope)


def proportional(a: Tree, b: Tree, positive: bool) -> bool:
    """Whether the equations a = 0 and b = 0 (positive: inequalities a > 0 and b > 0) differ only by a rational factor.

    True only if proven. Denominators must be equal too, or be monomials: xy = 1 and y = 1/x are the same equation. Common factors
    are not divided out, since that loses solutions: x^2 = x and x = 1 are different.
    """
    try:
        start()
        first, second = form(a), form(b)
        if first.below != second.below:
            return False
        return _multiples(first.above, second.above, positive) or (
            not positive and _multiples(_without_monomial(first.above), _without_monomial(second.above), positive)
        )
    except (TooHard, RecursionError):
        return False


def _multiples(a: Polynomial, b: Polynomial, positive: bool) -> bool:
    if not a or a.keys() != b.keys():
        return False
    first = next(iter(a))
    spend(len(a) * cost(max(bits_of(a.values()), bits_of(b.values()))))
    factor = Fraction(b[first]) / a[first]
    return (factor > 0 or not positive) and all(b[monomial] == factor * value for monomial, value in a.items())


def _without_monomial(polynomial: Polynomial) -> Polynomial:
    """The polynomial multiplied by the symbols' powers in its denominators, so that no exponent is negative."""
    least: dict[str, Fraction | int] = {}
    for monomial in polynomial:
        for name, exponent in monomial:
            least[name] = min(least.get(name, 0), exponent)
    inverse = tuple(sorted((name, -exponent) for name, exponent in least.items() if exponent < 0 and not name.isdigit()))
    return multiply(polynomial, {inverse: 1}) if inverse else polynomial
