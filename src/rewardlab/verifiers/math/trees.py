"""Expression trees as plain tuples, and functions to build them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .text import Unreadable

Tree = tuple[Any, ...]
MINUS_ONE = ("num", -1, 1)
DEGREE = ("mul", ("const", "pi"), ("num", 1, 180))
INFINITE = ("const", "inf")


def number(value: Fraction | int) -> Tree:
    return ("num", value.numerator, value.denominator)


def negative(tree: Tree) -> Tree:
    return ("num", -tree[1], tree[2]) if tree[0] == "num" else ("mul", MINUS_ONE, tree)


def over(above: Tree, below: Tree) -> Tree:
    if above[0] == below[0] == "num" and below[1] and above[2] == below[2] == 1:
        return number(Fraction(above[1], below[1]))
    return times(above, ("pow", below, MINUS_ONE))


def times(a: Tree, b: Tree) -> Tree:
    # flat, so that a long product does not become a deep tree
    return ("mul", *(a[1:] if a[0] == "mul" else (a,)), b)


def power(base: Tree, exponent: Tree) -> Tree:
    """A power. A whole power of a root cancels with it: sqrt(x)^4 = x^2."""
    if base[0] == "root" and exponent[0] == base[1][0] == "num" and exponent[2] == base[1][2] == 1 and base[1][1] > 0:
        times, remainder = divmod(exponent[1], base[1][1])
        if not remainder and exponent[1] > 0:
            return base[2] if times == 1 else ("pow", base[2], ("num", times, 1))
    return ("pow", base, exponent)


def applied(name: str, of: Tree, base: Tree | None) -> Tree:
    """A function of an argument, reduced to fewer functions: logarithms to ln, exp to a power, sqrt and cbrt to roots."""
    if name == "log" and base is not None:
        return ("fn", "ln", of) if base == ("const", "e") else over(("fn", "ln", of), ("fn", "ln", base))
    if name == "lg":
        return over(("fn", "ln", of), ("fn", "ln", ("num", 10, 1)))
    if name == "exp":
        return ("pow", ("const", "e"), of)
    if name in ("sqrt", "cbrt"):
        return ("root", ("num", 2 if name == "sqrt" else 3, 1), of)
    return ("fn", name, of)


def repeating(text: str, again: str) -> Fraction:
    """The value of a repeating decimal: "0.1" and "6" give 0.1666..."""
    if not again.isdigit():
        raise Unreadable("a repeating decimal without digits")
    digits = len(text.partition(".")[2])
    return Fraction(text) + Fraction(int(again), (10 ** len(again) - 1) * 10**digits)


def names(tree: Any) -> set[str]:
    """The symbols of a tree."""
    if not isinstance(tree, tuple):
        return set()
    return {tree[1]} if tree[0] == "sym" else {name for part in tree[1:] for name in names(part)}


def holds(tree: Any, part: Tree) -> bool:
    return tree == part or (isinstance(tree, tuple) and any(holds(t, part) for t in tree[1:]))
