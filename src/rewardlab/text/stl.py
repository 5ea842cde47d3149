"""Signal temporal logic: formulas are read, written, evaluated on sampled signals, and compared.

    formula   G[a,b] f   F[a,b] f   f U[a,b] g   not f   f and g   f or g   f -> g   (f)   x > 3   x <= 2.5
    also      always, globally, eventually, until, ! & | =>

    rho(x > c, t) = x(t) - c;   rho(G[a,b] f, t) = min over t' in [t+a, t+b] of rho(f, t');   F: max instead of min
    rho(f U[a,b] g, t) = max over t' in [t+a, t+b] of min(rho(g, t'), min over t'' in [t, t') of rho(f, t''))

Signals have one sample per unit of time. -> binds least, then or, and, U; not, G and F bind most. A formula holds where its
robustness rho is positive. Maler and Nickovic 2004; Donze and Maler 2010.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

WORDS = {
    "always": "G", "globally": "G", "eventually": "F", "until": "U", "!": "not", "~": "not", "&": "and", "&&": "and", "|": "or",
    "||": "or", "=>": "->", "implies": "->",
}  # fmt: skip
_TOKEN = re.compile(r"\s*(->|=>|&&|\|\||[<>]=?|[!~&|()\[\],]|-?\d+(?:\.\d+)?|[A-Za-z_]\w*)")
LONGEST, DEEPEST, FURTHEST = 2000, 40, 1000
"""Characters of a formula, its depth, and how far into the signal it may look."""


@dataclass(frozen=True)
class Atom:
    """An atomic proposition: a signal compared with a number."""

    signal: str
    relation: str
    bound: float

    def __str__(self) -> str:
        return f"{self.signal} {self.relation} {self.bound:g}"


@dataclass(frozen=True)
class Node:
    """An operator, its operands, and for G, F and U the interval of time."""

    operator: str
    operands: tuple[Formula, ...]
    interval: tuple[float, float] | None = None

    def __str__(self) -> str:
        texts = [_inside(self, of) for of in self.operands]
        name = self.operator + (f"[{self.interval[0]:g},{self.interval[1]:g}]" if self.interval else "")
        return f"{name} {texts[0]}" if len(texts) == 1 else f"{texts[0]} {name} {texts[1]}"


Formula = Atom | Node


def _inside(outer: Node, of: Formula) -> str:
    # brackets around every operand with two operands, so that nobody has to know what binds most; and and or associate
    plain = isinstance(of, Atom) or len(of.operands) == 1 or (of.operator == outer.operator in ("and", "or"))
    return str(of) if plain else f"({of})"


# ---- reading -----------------------------------------------------------------------------------------------------------


def tokens(text: str) -> list[str]:
    """The symbols of a formula, each operator by one name. Raises ValueError for a character of none."""
    found, at, text = [], 0, text.strip()
    if len(text) > LONGEST:
        raise ValueError(f"a formula has at most {LONGEST} characters")
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"{text[at : at + 10].strip()!r} is no symbol of a formula")
        found.append(WORDS.get(match[1].lower(), match[1]) if not match[1].isalpha() or match[1].lower() in WORDS else match[1])
        at = match.end()
    return found


def parse(text: str) -> Formula:
    """The formula in a text. Raises ValueError with what is wrong for a text that is none, or that looks too far ahead."""
    reader = _Reader(tokens(text))
    found = reader.implication(0)
    if reader.symbols:
        raise ValueError(f"{reader.symbols[0]!r} is left over")
    if horizon(found) > FURTHEST:
        raise ValueError(f"the formula looks more than {FURTHEST} samples ahead")
    return found


class _Reader:
    """Recursive descent, one method a level of binding."""

    def __init__(self, symbols: list[str]):
        self.symbols = symbols

    def implication(self, depth: int) -> Formula:
        left = self._chain("or", lambda: self._chain("and", lambda: self._until(depth)))
        if not self._take("->"):
            return left
        return Node("->", (left, self.implication(self._deeper(depth))))

    def _chain(self, operator: str, operand: Callable[[], Formula]) -> Formula:
        found = operand()
        while self._take(operator):
            found = Node(operator, (found, operand()))
        return found

    def _until(self, depth: int) -> Formula:
        left = self._unary(depth)
        if not self._take("U"):
            return left
        interval = self._interval()
        return Node("U", (left, self._unary(depth)), interval)

    def _unary(self, depth: int) -> Formula:
        depth = self._deeper(depth)
        if self._take("not"):
            return Node("not", (self._unary(depth),))
        for operator in ("G", "F"):
            # a signal may be called G too
            if self.symbols[:2] == [operator, "["]:
                self._take(operator)
                interval = self._interval()
                return Node(operator, (self._unary(depth),), interval)
        if self._take("("):
            found = self.implication(depth)
            self._need(")")
            return found
        return self._atom()

    def _atom(self) -> Atom:
        signal, relation = self._next(), self._next()
        if not re.fullmatch(r"[A-Za-z_]\w*", signal) or relation not in (">", ">=", "<", "<="):
            raise ValueError(f"{signal} {relation} does not begin a comparison such as x > 3")
        return Atom(signal, relation, self._number())

    def _interval(self) -> tuple[float, float]:
        self._need("[")
        first = self._number()
        self._need(",")
        last = self._number()
        self._need("]")
        if not 0 <= math.ceil(first) <= math.floor(last):
            raise ValueError(f"[{first:g},{last:g}] is no interval of time with a sample in it")
        return first, last

    def _number(self) -> float:
        symbol = self._next()
        try:
            return float(symbol)
        except ValueError:
            raise ValueError(f"there is {symbol!r} where a number should be") from None

    def _deeper(self, depth: int) -> int:
        if depth >= DEEPEST:
            raise ValueError(f"the formula is more than {DEEPEST} operators deep")
        return depth + 1

    def _take(self, symbol: str) -> bool:
        if self.symbols[:1] != [symbol]:
            return False
        del self.symbols[0]
        return True

    def _need(self, symbol: str) -> None:
        if (found := self._next()) != symbol:
            raise ValueError(f"there is {found!r} where {symbol!r} should be")

    def _next(self) -> str:
        if not self.symbols:
            raise ValueError("the formula ends too early")
        return self.symbols.pop(0)


# ---- what a formula says -------------------------------------------------------------------------------------------------


def parts(formula: Formula) -> Iterator[Formula]:
    """The formula and all formulas in it, from the outside."""
    yield formula
    for of in () if isinstance(formula, Atom) else formula.operands:
        yield from parts(of)


def atoms(formula: Formula) -> set[Atom]:
    """The atomic propositions of a formula; >= is taken for >, which differ at single points only."""
    return {Atom(of.signal, of.relation[0], of.bound) for of in parts(formula) if isinstance(of, Atom)}


def size(formula: Formula) -> int:
    """Operators and atomic propositions."""
    return sum(1 for _ in parts(formula))


def horizon(formula: Formula) -> int:
    """How many samples after the first decide whether it holds there."""
    if isinstance(formula, Atom):
        return 0
    return max(horizon(of) for of in formula.operands) + (math.floor(formula.interval[1]) if formula.interval else 0)


def robustness(formula: Formula, signals: Mapping[str, np.ndarray]) -> np.ndarray:
    """(K, T - horizon) how far the formula holds, or fails, at each time, of K signals (K, T) by name."""
    if isinstance(formula, Atom):
        ahead = signals[formula.signal] - formula.bound
        return ahead if formula.relation[0] == ">" else -ahead
    of = [robustness(operand, signals) for operand in formula.operands]
    shortest = min(x.shape[1] for x in of)
    of = [x[:, :shortest] for x in of]
    if formula.interval is None:
        return _pointwise(formula.operator, of)
    first, last = math.ceil(formula.interval[0]), math.floor(formula.interval[1])
    length = shortest - last
    ahead_by: Callable[[np.ndarray, int], np.ndarray] = lambda x, k: x[:, k : k + length]  # noqa: E731
    if formula.operator in "GF":
        best: Any = np.minimum if formula.operator == "G" else np.maximum
        return reduce(best, [ahead_by(of[0], k) for k in range(first, last + 1)])
    holding, found = np.full((of[0].shape[0], length), np.inf), []
    for k in range(last + 1):
        if k >= first:
            found.append(np.minimum(ahead_by(of[1], k), holding))
        holding = np.minimum(holding, ahead_by(of[0], k))
    return reduce(np.maximum, found)


def _pointwise(operator: str, of: list[np.ndarray]) -> np.ndarray:
    if operator == "not":
        return -of[0]
    return np.minimum(*of) if operator == "and" else np.maximum(*of) if operator == "or" else np.maximum(-of[0], of[1])


def agreement(formula: Formula, other: Formula, count: int, rng: np.random.Generator) -> float:
    """The share of `count` random signals of which both formulas say the same at the first sample; 1 if they are equivalent.

    A signal moves between values on both sides of the bounds that it is compared with: a quarter of them piecewise constant, the
    others constant but for a single sample, half of these at the ends of intervals, where formulas differ that differ by one.
    """
    both = atoms(formula) | atoms(other)
    length = max(horizon(formula), horizon(other)) + 1
    ends = np.array(sorted({t + k for t in _ends(formula) | _ends(other) for k in (-1, 0, 1) if 0 <= t + k < length}))
    values = {name: _levels([a.bound for a in both if a.signal == name]) for name in sorted({a.signal for a in both})}
    signals = {name: _signals(levels, count, length, ends, rng) for name, levels in values.items()}
    said = [robustness(of, signals)[:, 0] > 0 for of in (formula, other)]
    return float(np.mean(said[0] == said[1]))


def _ends(formula: Formula) -> set[int]:
    """The first and last samples that intervals reach, also within one another; of many some."""
    if isinstance(formula, Atom):
        return {0}
    inside = sorted({t for of in formula.operands for t in _ends(of)})[:50]
    first, last = formula.interval or (0, 0)
    return {t + end for t in inside for end in (math.ceil(first), math.floor(last))}


def _levels(bounds: list[float]) -> np.ndarray:
    """A value in each interval between bounds, and beyond them."""
    at = np.unique(bounds)
    return np.concatenate(([at[0] - 1], (at[1:] + at[:-1]) / 2, [at[-1] + 1]))


def _signals(levels: np.ndarray, count: int, length: int, ends: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    found = rng.choice(levels, (count, 1)).repeat(length, 1)
    wild = count // 4
    # how likely it is to change at each sample differs between signals
    changes = rng.random((wild, length)) < rng.choice([0.5, 0.2, 0.05], (wild, 1))
    fresh = rng.choice(levels, (wild, length))
    for t in range(1, length):
        found[:wild, t] = np.where(changes[:, t], fresh[:, t], found[:wild, t - 1])
    single = count - wild
    at = np.where(rng.random(single) < 0.5, rng.integers(0, length, single), rng.choice(ends, single))
    found[np.arange(wild, count), at] = rng.choice(levels, single)
    return found
