"""Roots, powers with symbolic exponents, and functions at arguments where they have a simple value."""

from __future__ import annotations

import math
from fractions import Fraction

from .polynomials import (
    HIGHEST,
    ONE,
    Form,
    Monomial,
    Number,
    Polynomial,
    TooHard,
    add,
    atom,
    bits_of,
    constant,
    cost,
    integer,
    multiply,
    opaque,
    quotient,
    raised,
    reduced,
    spelled,
    spend,
    written,
)

FACTORS_TO = 2000
FACTORED_BITS = 2000
"""Largest trial divisor, and longest number, for factoring into primes."""
LARGEST_FACTORIAL = 3000


def power(base: Form, exponent: Form) -> Form:
    value = constant(exponent)
    if value is None:
        return symbolic(base, exponent)
    if value.denominator != 1:
        # the cost of a root grows with its degree, and that of a power with its exponent
        if value.denominator > 50 or abs(value.numerator) > 1000:
            raise TooHard
        return power(root(base, value.denominator), integer(value.numerator))
    n = int(value)
    if n < 0:
        if not base.above:
            raise TooHard
        return power(quotient(base.below, base.above), integer(-n))
    return quotient(times_itself(base.above, n), times_itself(base.below, n))


def times_itself(polynomial: Polynomial, n: int) -> Polynomial:
    if not polynomial:
        if not n:
            raise TooHard
        return {}
    if len(polynomial) == 1:
        ((monomial, coefficient),) = polynomial.items()
        powers = {atom: exponent * n for atom, exponent in monomial}
        if bits_of(powers.values()) > HIGHEST:
            raise TooHard
        factor, powered = reduced(powers)
        try:
            return {powered: raised(coefficient, n) * factor}
        except TooHard:
            if powered:
                raise
            # 2^(10^9) cannot be computed, but it can be compared with itself
            return {huge(coefficient, n): factor}
    if n > 60:
        raise TooHard
    total = ONE
    for _ in range(n):
        total = multiply(total, polynomial)
    return total


def huge(value: Number, n: int) -> Monomial:
    """A power that is too long to compute, as a monomial of opaque atoms, one for each prime: 2^(10^9) stays comparable."""
    if value <= 0:
        raise TooHard
    exponents, left = primes_of(Fraction(value))
    if left != 1 or n.bit_length() > HIGHEST:
        raise TooHard
    return tuple(sorted((f"#huge {prime}", times * n) for prime, times in exponents.items()))


def root(form: Form, degree: int) -> Form:
    """The real root of a fraction."""
    if form.below == ONE:
        return root_of_polynomial(form.above, degree)
    above, below = root_of_polynomial(form.above, degree), root_of_polynomial(form.below, degree)
    return quotient(multiply(above.above, below.below), multiply(above.below, below.above))


def primes_of(value: Fraction) -> tuple[dict[str, Number], Fraction]:
    """A positive number as powers of primes, and the factor without small primes that is left (usually 1)."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > FACTORED_BITS:
        raise TooHard
    # a trial division by each number up to FACTORS_TO
    spend(FACTORS_TO // 20)
    exponents: dict[str, Number] = {}
    left = [value.numerator, value.denominator]
    for side, sign in ((0, 1), (1, -1)):
        n, p = left[side], 2
        while p * p <= n and p < FACTORS_TO:
            while not n % p:
                exponents[str(p)] = exponents.get(str(p), 0) + sign
                n //= p
            p += 1 if p == 2 else 2
        # no divisor below FACTORS_TO is left, so a number below its square is prime
        if 1 < n < FACTORS_TO * FACTORS_TO:
            exponents[str(n)] = exponents.get(str(n), 0) + sign
            n = 1
        left[side] = n
    return exponents, Fraction(*left)


def root_of_number(value: Fraction, degree: int) -> tuple[Number, dict[str, Number]]:
    """The root of a positive number, as a rational times powers of atoms."""
    exponents, left = primes_of(value)
    powers: dict[str, Number] = {prime: Fraction(n) / degree for prime, n in exponents.items()}
    factor, root_powers = reduced(powers)
    for part, sign in ((left.numerator, 1), (left.denominator, -1)):
        if part > 1:
            integer_root = round_root(part, degree)
            if integer_root**degree != part:
                # not factored, so it may share unknown factors with other numbers: an opaque atom
                return factor, dict(root_powers) | {opaque(f"root{degree}({left.numerator:x}:{left.denominator:x})"): 1}
            factor *= Fraction(integer_root) ** sign
    return factor, dict(root_powers)


def round_root(n: int, degree: int) -> int:
    """The integer part of a root, by Newton's method from above."""
    # a power of two that is not below the root, so that Newton's method descends to it
    x = 1 << -(-n.bit_length() // degree)
    while (y := ((degree - 1) * x + n // x ** (degree - 1)) // degree) < x:
        x = y
    return x


def root_of_polynomial(polynomial: Polynomial, degree: int) -> Form:
    if not polynomial:
        return Form({}, ONE)
    return root_of_term(*next(iter(polynomial.items())), degree) if len(polynomial) == 1 else root_of_sum(polynomial, degree)


def root_of_sum(polynomial: Polynomial, degree: int) -> Form:
    """The root of a sum is an atom, after the rational content of all terms is taken out of the root."""
    common = Fraction(content(polynomial))
    sign = -1 if common < 0 and degree % 2 and all(map(real, polynomial)) else 1
    factor, powers = root_of_number(abs(common), degree)
    inner: Polynomial = {monomial: sign * coefficient / abs(common) for monomial, coefficient in polynomial.items()}
    return _with(factor * sign, powers | {opaque(f"root{degree}[{written(Form(inner, ONE))}]"): 1})


def real(monomial: Monomial) -> bool:
    """Whether a monomial is certainly real: only then can a sign be taken out of an odd root."""
    return all(name != "i" and name[0] != "#" for name, _ in monomial)


def root_of_term(monomial: Monomial, coefficient: Number, degree: int) -> Form:
    factor, powers = root_of_number(abs(Fraction(coefficient)), degree)
    minus_inside = coefficient < 0 and not (degree % 2 and real(monomial))
    simple, left = split(dict(monomial), degree, negative=minus_inside)
    for name, exponent in simple.items():
        powers[name] = powers.get(name, 0) + exponent
    outside = -factor if coefficient < 0 and not minus_inside else factor
    if left:
        inside: Polynomial = {tuple(sorted(left.items())): -1 if minus_inside else 1}
        return _with(outside, powers | {opaque(f"root{degree}[{written(Form(inside, ONE))}]"): 1})
    if not minus_inside:
        return _with(outside, powers)
    if degree != 2:
        raise TooHard
    return _with(outside, powers | {"i": 1})


def split(powers: dict[str, Number], degree: int, negative: bool) -> tuple[dict[str, Number], dict[str, Number]]:
    """Separate the powers whose root is a power again (exponents divided by the degree) from the rest.

    negative: the root is of minus their product. Roots of primes, pi and e are positive, so they always separate. A symbol x may be
    negative: x^(a/b) with even b is real only for positive x, and so is its root if a is odd.
    """
    simple: dict[str, Number] = {}
    left: dict[str, Number] = {}
    signs = [name for name in powers if not (name.isdigit() or name in ("pi", "e"))]
    for name, exponent in powers.items():
        odd = degree % 2 == 1 or Fraction(exponent).numerator % 2 == 1
        alone = len(signs) == 1 and not negative and odd and name[0] != "#" and name != "i"
        sure = name not in signs or alone
        (simple if sure else left)[name] = Fraction(exponent) / degree if sure else exponent
    return simple, left


def _with(factor: Number, powers: dict[str, Number]) -> Form:
    more, monomial = reduced(powers)
    return Form({monomial: factor * more}, ONE)


def content(polynomial: Polynomial) -> Number:
    """The content: dividing by it leaves integer coefficients without a common factor, the first one positive."""
    values = [Fraction(c) for c in polynomial.values()]
    spend(len(values) * cost(sum(v.denominator.bit_length() for v in values) + bits_of(values)))
    below = math.lcm(*(v.denominator for v in values))
    value = Fraction(math.gcd(*(int(v * below) for v in values)), below)
    return value if polynomial[min(polynomial)] > 0 else -value


def symbolic(base: Form, exponent: Form) -> Form:
    """A power with symbols in the exponent. Each term of the exponent becomes its own power, so that 2^(n+1) = 2 * 2^n."""
    if exponent.below != ONE or base.below != ONE or len(base.above) != 1:
        return atom(opaque(f"pow({written(base)},{written(exponent)})"))
    ((monomial, coefficient),) = base.above.items()
    if (monomial and (coefficient != 1 or len(monomial) != 1 or monomial[0][1] != 1)) or (
        coefficient < 0 and coefficient.denominator != 1
    ):
        return atom(opaque(f"pow({written(base)},{written(exponent)})"))
    if not monomial and coefficient > 0:
        bases, left = primes_of(Fraction(coefficient))
        if left != 1:
            raise TooHard
    elif not monomial:
        bases = {str(coefficient): 1}
    else:
        bases = dict(monomial)
    total = Form(ONE, ONE)
    for term, times in exponent.above.items():
        for name, n in bases.items():
            if not term:
                single = Form({(): int(name)} if name.lstrip("-").isdigit() else {((name, 1),): 1}, ONE)
                part = power(single, Form({(): times * n}, ONE))
            else:
                part = atom(opaque(f"{name}^{spelled(term)}"), times * n)
            total = quotient(multiply(total.above, part.above), multiply(total.below, part.below))
    return total


def value_of(name: str, arguments: list[Form]) -> Form | None:
    """The exact value of a function at simple arguments (numbers; for ln also powers of e); else None."""
    values = [constant(part) for part in arguments]
    if name == "ln" and arguments[0].below == ONE and len(arguments[0].above) == 1:
        return logarithm(arguments[0].above)
    if any(value is None for value in values):
        return None
    return _plain(name, [value for value in values if value is not None])


def _plain(name: str, values: list[Fraction]) -> Form | None:
    first = values[0]
    all_integers = all(value.denominator == 1 for value in values)
    result: Number | None = None
    if name == "abs":
        result = abs(first)
    elif name in ("floor", "ceil"):
        result = math.floor(first) if name == "floor" else math.ceil(first)
    elif name in ("max", "min"):
        result = max(values) if name == "max" else min(values)
    elif name in ("gcd", "lcm") and all_integers:
        # a least common multiple may be as long as all of them together
        spend(len(values) * cost(sum(value.numerator.bit_length() for value in values)))
        result = (math.gcd if name == "gcd" else math.lcm)(*(int(value) for value in values))
    elif name == "factorial" and all_integers and 0 <= first <= LARGEST_FACTORIAL:
        result = math.factorial(int(first))
    elif name == "factorial2" and all_integers and 0 <= first <= LARGEST_FACTORIAL:
        result = math.prod(range(int(first), 0, -2))
    elif name == "binomial" and all_integers and 0 <= values[1] <= first <= LARGEST_FACTORIAL:
        result = math.comb(int(first), int(values[1]))
    elif name in ("sin", "tan", "arcsin", "arctan", "sinh") and not first:
        result = 0
    elif name in ("cos", "cosh") and not first:
        result = 1
    return None if result is None else Form({(): result} if result else {}, ONE)


def logarithm(polynomial: Polynomial) -> Form | None:
    ((monomial, coefficient),) = polynomial.items()
    if coefficient <= 0 or any(not (name.isdigit() or name == "e") for name, _ in monomial):
        return None
    exponents, left = primes_of(Fraction(coefficient))
    if left != 1:
        return None
    total: Polynomial = {}
    for name, times in [*exponents.items(), *monomial]:
        total = add(total, {(): times} if name == "e" else {((f"#ln({name})", 1),): times})
    return Form(total, ONE)
