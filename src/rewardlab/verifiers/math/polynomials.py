"""Fractions of polynomials with rational coefficients, in exact arithmetic.

A monomial maps atoms to exponents. An atom is the name of a symbol, of pi, e or i, or of a prime (whose fractional powers
are roots); a name that begins with # stands for any other expression.

All work is counted, and too much of it raises TooHard: replies are hostile, and this runs in the caller's own process.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import NamedTuple

from .text import Unreadable

Number = int | Fraction
Monomial = tuple[tuple[str, Number], ...]
Polynomial = dict[Monomial, Number]

TERMS = 400
"""Limits: TERMS of a polynomial, BITS of a power, and PRODUCTS of terms in one comparison. Beyond them TooHard is raised."""
BITS = 60_000
LONGEST = 4 * BITS
"""Bits of the longest coefficient."""
HIGHEST = 10_000
"""Bits of the longest exponent."""
PRODUCTS = 50_000
ALTOGETHER = 150_000
"""Products of terms, and other steps that take as long, in all the comparisons of one verdict together."""
SPELLED = 60
"""Characters of the longest name of an atom; a longer one is replaced by its digest."""


class TooHard(Unreadable):
    """The expression has no normal form, or one beyond the limits."""


class Form(NamedTuple):
    above: Polynomial
    below: Polynomial


ONE: Polynomial = {(): 1}


class _Counter(threading.local):
    """A verifier may work in several threads, each with limits of its own."""

    products = 0
    altogether = 0
    most: float = math.inf


_counter = _Counter()


def start() -> None:
    """Reset the count of products for a new comparison."""
    _counter.products = 0


@contextmanager
def allowance() -> Iterator[None]:
    """Within it, all comparisons together may take only so many steps."""
    before = _counter.altogether, _counter.most
    _counter.altogether, _counter.most = 0, ALTOGETHER
    try:
        yield
    finally:
        _counter.altogether, _counter.most = before


def count(steps: int) -> None:
    """Count steps against the limit of the allowance alone. Raises TooHard."""
    _counter.altogether += steps
    if _counter.altogether > _counter.most:
        raise TooHard


def spend(steps: int) -> None:
    """Count steps against both limits. Raises TooHard."""
    _counter.products += steps
    if _counter.products > PRODUCTS:
        raise TooHard
    count(steps)


def bits_of(numbers: Iterable[Number]) -> int:
    """The bits of the longest of the numbers."""
    return max((n.numerator.bit_length() + n.denominator.bit_length() for n in numbers), default=0)


def cost(bits: int) -> int:
    """The steps that arithmetic with fractions of so many bits takes. Raises TooHard for numbers that are too long."""
    if bits > LONGEST:
        raise TooHard
    # the greatest common divisor takes quadratic time
    return 1 + bits // 500 + (bits // 1000) ** 2


def add(a: Polynomial, b: Polynomial, sign: int = 1) -> Polynomial:
    if a and b:
        spend(len(a) // 100 + len(b) * cost(bits_of(b.values())))
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
    atoms = max(map(len, a), default=0) + max(map(len, b), default=0)
    spend(len(a) * len(b) * (atoms // 8 + cost(max(bits_of(a.values()), bits_of(b.values())))))
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
            if integer_part not in (0, 1):
                spend(cost(bits_of((factor,))))
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


def opaque(name: str) -> str:
    """The name of an atom for any other expression. However deeply functions are nested, no name is long."""
    return f"#{name}" if len(name) < SPELLED else f"#{hashlib.blake2b(name.encode(), digest_size=24).hexdigest()}"


def written(form: Form) -> str:
    """A canonical spelling of a form: equal texts mean equal forms. It names the atoms of functions and roots."""
    # a fraction is the same after both sides are multiplied, so one coefficient is scaled to 1
    scale = 1 / Fraction(form.below[min(form.below)])
    for part in form:
        spend(len(part) * cost(bits_of(part.values())))
    return "/".join("+".join(f"{_hexadecimal(scale * part[m])}{spelled(m)}" for m in sorted(part)) for part in form)


def spelled(monomial: Monomial) -> str:
    """A canonical spelling of a monomial. The lengths of the names make it unambiguous, whatever signs a symbol's name has."""
    spend(len(monomial) // 4)
    return "*".join(f"{len(name)}.{name}^{_hexadecimal(exponent)}" for name, exponent in monomial)


def _hexadecimal(value: Number) -> str:
    # Python refuses to print very long integers in decimal
    return f"{value.numerator:x}:{value.denominator:x}"
