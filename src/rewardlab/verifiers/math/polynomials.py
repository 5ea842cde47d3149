"""Fractions of polynomials with rational coefficients, in exact arithmetic.

A monomial maps atoms to exponents. An atom is the name of a symbol, of pi, e or i, or of a prime (whose fractional powers
are roots); a name that begins with # stands for any other expression.
"""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from typing import NamedTuple

Number = int | Fraction
Monomial = tuple[tuple[str, Number], ...]
Polynomial = dict[Monomial, Number]

TERMS = 400
"""Limits: TERMS of a polynomial, BITS of a power, and PRODUCTS of terms in one comparison. Beyond them TooHard is raised."""
BITS = 60_000
PRODUCTS = 50_000


class TooHard(Exception):
    """The expression has no normal form, or one beyond the limits."""


class Form(NamedTuple):
    above: Polynomial
    below: Polynomial


ONE: Polynomial = {(): 1}
# a verifier may work in several threads, each with a limit of its own
_counter = threading.local()


def start() -> None:
    """Reset the count of products for a new comparison."""
    _counter.products = 0


def add(a: Polynomial, b: Polynomial, sign: int = 1) -> Polynomial:
    total = dict(a)
    for monomial, coefficient in b.items():
        value = total.get(monomial, 0) + sign * coefficient
        if value:
            total[monomial] = value
        else:
            total.pop(monomial, None)
    if len(total) > TERMS:
        raise TooHard
    return total


def multiply(a: Polynomial, b: Polynomial) -> Polynomial:
    if a == ONE:
        return b
    if b == ONE:
        return a
    spend(a, b)
    total: Polynomial = {}
    for first, p in a.items():
        for second, q in b.items():
            factor, monomial = join(first, second)
            total[monomial] = total.get(monomial, 0) + p * q * factor
    if len(total) > TERMS:
        raise TooHard
    return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}


def join(first: Monomial, second: Monomial) -> tuple[Number, Monomial]:
    """The product of two monomials, as a number times a monomial."""
    if not first or not second:
        return 1, first or second
    exponents = dict(first)
    for atom, exponent in second:
        exponents[atom] = exponents.get(atom, 0) + exponent
    return reduced(exponents)


def reduced(exponents: dict[str, Number]) -> tuple[Number, Monomial]:
    """Powers as a number times a normalised monomial: exponents of primes are in [0, 1), and that of i is 0 or 1."""
    factor: Number = 1
    powers = []
    for atom, exponent in exponents.items():
        if atom.isdigit():
            # 2^(3/2) = 2 * 2^(1/2): the integer part of the exponent becomes a number
            integer_part = math.floor(exponent)
            factor *= raised(int(atom), integer_part)
            exponent -= integer_part
        elif atom == "i":
            # i^2 = i^6 = -1
            factor *= -1 if exponent % 4 >= 2 else 1
            exponent %= 2
        if exponent:
            powers.append((atom, exponent))
    return factor, tuple(sorted(powers))


def raised(base: Number, exponent: int) -> Number:
    if not base and exponent < 0:
        raise TooHard
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(base) != 1 and bits * abs(exponent) > BITS:
        raise TooHard
    return Fraction(base) ** exponent if exponent < 0 else base**exponent


def spend(a: Polynomial, b: Polynomial) -> None:
    """Count a multiplication against the limit; long numbers count several times. Raises TooHard."""
    bits = max((c.numerator.bit_length() + c.denominator.bit_length() for part in (a, b) for c in part.values()), default=0)
    _counter.products = getattr(_counter, "products", 0) + len(a) * len(b) * (1 + bits // 500)
    if bits > 4 * BITS or _counter.products > PRODUCTS:
        raise TooHard


def quotient(above: Polynomial, below: Polynomial) -> Form:
    """A fraction. A denominator of one term is absorbed as negative exponents."""
    if not below:
        raise TooHard
    if len(below) == 1:
        ((monomial, coefficient),) = below.items()
        factor, inverse = reduced({atom: -exponent for atom, exponent in monomial})
        return Form(multiply(above, {inverse: Fraction(1) / coefficient * factor}), ONE)
    return Form(above, below)


def atom(name: str, exponent: Number = 1) -> Form:
    return Form({((name, exponent),): 1}, ONE)


def integer(n: int) -> Form:
    return Form({(): n} if n else {}, ONE)


def constant(form: Form) -> Fraction | None:
    """The value of a form without atoms; else None."""
    if form.below != ONE or any(form.above):
        return None
    return Fraction(form.above.get((), 0))


def written(form: Form) -> str:
    """A canonical spelling of a form: equal texts mean equal forms. It names the atoms of functions and roots."""
    # a fraction is the same after both sides are multiplied, so one coefficient is scaled to 1
    scale = 1 / Fraction(form.below[min(form.below)])
    return "/".join("+".join(f"{_hexadecimal(scale * part[m])}{m}" for m in sorted(part, key=repr)) for part in form)


def _hexadecimal(value: Fraction) -> str:
    # Python refuses to print very long integers in decimal
    return f"{value.numerator:x}:{value.denominator:x}"
