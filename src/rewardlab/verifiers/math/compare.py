"""Compare two answers: equal, different, or unknown until some expressions have been compared by computer algebra.

The rules, all on the strict side:

    0.5, 1/2, 2/4 and 50% are equal. 50 equals 50% only if the gold answer is written in percent or the question asks for percent.
    Nothing is rounded: 3.14 is not 3.14159, 0.33 is not 1/3, unless a tolerance is given.
    A unit is ignored if the other side has none; two different units of measurement are never equal.
    x = 5 and 5 are equal; y = 5 and x = 5 are not. The name in f(x) = ... and Area = ... is ignored.
    Equations are equal up to a nonzero constant factor: y = 2x + 1 and 2x - y + 1 = 0; inequalities up to a positive one.
    The order counts in tuples, but not in sets and lists of answers. "1 and 2" does not equal 1; "plus or minus 1" is both.
    (1, 2) may be a pair or an open interval; otherwise open and closed ends, round and square brackets differ.
    A log without a base has an unknown base, the same on both sides. Numbers in another base equal only themselves.

With strict=False: brackets of tuples may differ or be missing, column vectors equal tuples, x = 1, y = 2 equals (1, 2), 3/4 equals
3:4, and a missing base is taken to be the right one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from . import units
from .answers import pieces_of
from .exact import proportional, rational
from .kinds import Answer, Based, Finite, Matrix, Named, Ordered, Ratio, Relation, Several, Span, Value, Words
from .text import Unreadable
from .trees import DEGREE, Tree, negative, number, over, times

Known = bool | None
"""Three-valued logic: None means that it is not known yet."""


def all_of(results: Iterable[Known]) -> Known:
    total: Known = True
    for result in results:
        if result is False:
            return False
        total = None if result is None else total
    return total


def any_of(results: Iterable[Known]) -> Known:
    total: Known = False
    for result in results:
        if result:
            return True
        total = None if result is None else total
    return total


@dataclass(frozen=True)
class Comparison:
    """equal: decides two expressions.  tolerance: relative, for rational numbers.  in_percent: the question asks for percent."""

    equal: Callable[[Tree, Tree], Known]
    strict: bool = True
    tolerance: float = 0.0
    in_percent: bool = False

    def same(self, said: Answer, gold: Answer) -> Known:
        if said == gold:
            return True
        if isinstance(said, Named) or isinstance(gold, Named):
            return self.named(said, gold)
        for kind, compare in (
            (Relation, self.relations), (Several, self.several), (Finite, self.several), (Span, self.spans),
            (Matrix, self.matrices), (Ordered, self.ordered), (Ratio, self.ratios), (Based, self.based),
        ):  # fmt: skip
            if isinstance(said, kind) or isinstance(gold, kind):
                return compare(said, gold)
        if isinstance(said, Value) and isinstance(gold, Value):
            return self.values(said, gold)
        return isinstance(said, Words) and isinstance(gold, Words) and said.text == gold.text

    # ---- values ------------------------------------------------------------------------------------------------------

    def values(self, said: Value, gold: Value) -> Known:
        if units.conflict(said.unit, gold.unit):
            return False
        # every admissible reading of percent and degrees; one match is enough
        ways = [(said.tree, gold.tree)]
        if gold.percent and not said.percent and not said.unit:
            ways.append((said.tree, times(number(100), gold.tree)))
        if said.percent and not gold.percent and self.in_percent:
            ways.append((times(number(100), said.tree), gold.tree))
        if said.unit == "deg" and not gold.unit:
            ways.append((times(said.tree, DEGREE), gold.tree))
        if gold.unit == "deg" and not said.unit:
            ways.append((said.tree, times(gold.tree, DEGREE)))
        return any_of(self.trees(a, b) for a, b in ways)

    def trees(self, a: Tree, b: Tree) -> Known:
        same = self.equal(a, b)
        if not same and self.tolerance:
            x, y = rational(a), rational(b)
            if x is not None and y is not None:
                return abs(x - y) <= Fraction(self.tolerance) * abs(y)
        return same

    # ---- equations and names -----------------------------------------------------------------------------------------

    def named(self, said: Answer, gold: Answer) -> Known:
        if isinstance(said, Named) and isinstance(gold, Named):
            if said.name == gold.name or "shape" in (said.kind, gold.kind):
                return self.same(said.answer, gold.answer)
            if "word" in (said.kind, gold.kind):
                both = said.kind == gold.kind
                return False if both and units.conflict(said.name, gold.name) else self.same(said.answer, gold.answer)
            if said.kind != gold.kind:
                # y = x + 1 for f(x) = x + 1
                return self.same(said.answer, gold.answer) if "function" in (said.kind, gold.kind) else False
            return self.as_equations(said, gold) if said.kind == "symbol" else False
        for one, other in ((said, gold), (gold, said)):
            if isinstance(one, Named) and not isinstance(other, Named):
                if isinstance(other, Relation):
                    return self.as_equations(said, gold)
                if isinstance(other, Several):
                    # one answer with several values
                    return self.several(said, gold)
                if isinstance(other, Span) and other.variable not in ("", one.name):
                    return False
                return self.same(one.answer, other) if one is said else self.same(other, one.answer)
        return False

    def as_equations(self, said: Answer, gold: Answer) -> Known:
        a, b = (_equation(found) for found in (said, gold))
        return self.relations(a, b) if a and b else False

    def relations(self, said: Answer, gold: Answer) -> Known:
        if not (isinstance(said, Relation) and isinstance(gold, Relation)) or said.sign != gold.sign:
            return False
        if said.sign in ("=", "!="):
            direct = all_of([self.equal(said.left, gold.left), self.equal(said.right, gold.right)])
            turned = all_of([self.equal(said.left, gold.right), self.equal(said.right, gold.left)])
            return any_of([proportional(_rest(said), _rest(gold), positive=False), direct, turned])
        both = all_of([self.equal(said.left, gold.left), self.equal(said.right, gold.right)])
        return any_of([proportional(_rest(said), _rest(gold), positive=True), both])

    # ---- several -----------------------------------------------------------------------------------------------------

    def several(self, said: Answer, gold: Answer) -> Known:
        one, other = _items(said, gold), _items(gold, said)
        if one is None or other is None:
            return self.spans(said, gold) if Span in (type(said), type(gold)) else self.loosely_ordered(said, gold)
        if isinstance(said, Finite) and isinstance(gold, Finite):
            one, other = self.once(one), self.once(other)
        if (_variables(one) > 1 and not _all_named(other)) or (_variables(other) > 1 and not _all_named(one)):
            # gold "x = 1, y = 2": a reply "2, 1" does not say which is which
            return self.loosely_ordered(said, gold)
        return self.loosely_ordered(said, gold) or self.matched(one, other)

    def once(self, items: Sequence[Answer]) -> list[Answer]:
        """The items of a set without duplicates."""
        kept: list[Answer] = []
        for item in items:
            if not any(self.same(item, other) for other in kept):
                kept.append(item)
        return kept

    def matched(self, said: Sequence[Answer], gold: Sequence[Answer]) -> Known:
        """Whether the items match one to one. Equality is an equivalence relation, so each item may take the first match."""
        if len(said) != len(gold):
            return False
        left = list(gold)
        unsure = False
        for item in said:
            found = [self.same(item, other) for other in left]
            if True in found:
                left.pop(found.index(True))
            elif None in found:
                unsure = True
            else:
                return False
        return None if unsure else True

    def loosely_ordered(self, said: Answer, gold: Answer) -> Known:
        """If not strict, a list or named values may stand for a tuple."""
        if self.strict:
            return False
        one, other = (_in_order(found) for found in (said, gold))
        if one is None or other is None or Ordered not in (type(said), type(gold)) or len(one) != len(other):
            return False
        return all_of(self.same(a, b) for a, b in zip(one, other, strict=True))

    def ordered(self, said: Answer, gold: Answer) -> Known:
        if isinstance(said, Ordered) and isinstance(gold, Ordered):
            if len(said.items) != len(gold.items) or (self.strict and said.brackets != gold.brackets):
                return False
            return all_of(self.same(a, b) for a, b in zip(said.items, gold.items, strict=True))
        return self.loosely_ordered(said, gold)

    # ---- sets of numbers, and the rest -------------------------------------------------------------------------------

    def spans(self, said: Answer, gold: Answer) -> Known:
        names = {found.variable for found in (said, gold) if isinstance(found, Span)} - {""}
        try:
            one, other = pieces_of(said), pieces_of(gold)
        except Unreadable:
            return False
        if len(names) > 1 or len(one) != len(other):
            return False
        return all_of(
            self.equal(a.low, b.low) if (a.low_in, a.high_in) == (b.low_in, b.high_in) else False
            for a, b in zip(one, other, strict=True)
        ) and all_of(self.equal(a.high, b.high) for a, b in zip(one, other, strict=True))

    def matrices(self, said: Answer, gold: Answer) -> Known:
        if isinstance(said, Matrix) and isinstance(gold, Matrix):
            if said.style != gold.style or [len(row) for row in said.rows] != [len(row) for row in gold.rows]:
                return False
            pairs = [(a, b) for one, other in zip(said.rows, gold.rows, strict=True) for a, b in zip(one, other, strict=True)]
            return all_of(self.equal(a, b) for a, b in pairs)
        return self.loosely_ordered(said, gold)

    def ratios(self, said: Answer, gold: Answer) -> Known:
        if isinstance(said, Ratio) and isinstance(gold, Ratio):
            if len(said.parts) != len(gold.parts) or (said.unit and gold.unit and said.unit != gold.unit):
                return False
            pairs = list(zip(said.parts, gold.parts, strict=True))
            if alike := all_of(self.equal(a, b) for a, b in pairs):
                return alike
            if said.clock or gold.clock or any(not rational(tree) for pair in pairs for tree in pair):
                return alike
            first = pairs[0]
            return all_of(self.equal(times(a, first[1]), times(b, first[0])) for a, b in pairs)
        ratio, other = (said, gold) if isinstance(said, Ratio) else (gold, said)
        if self.strict or not isinstance(ratio, Ratio) or not isinstance(other, Value) or len(ratio.parts) != 2 or ratio.clock:
            return False
        return self.equal(over(*ratio.parts), other.tree)

    def based(self, said: Answer, gold: Answer) -> Known:
        based, other = (said, gold) if isinstance(said, Based) else (gold, said)
        if self.strict or not isinstance(based, Based) or not isinstance(other, Value):
            return False
        return other.tree == number(int(based.digits or "0"))


def _variables(items: Sequence[Answer]) -> int:
    return len({item.name for item in items if isinstance(item, Named)})


def _all_named(items: Sequence[Answer]) -> bool:
    return all(isinstance(item, Named | Several) for item in items)


def _equation(found: Answer) -> Relation | None:
    if isinstance(found, Named) and isinstance(found.answer, Value):
        return Relation("=", ("sym", found.name), found.answer.tree)
    return found if isinstance(found, Relation) else None


def _rest(found: Relation) -> Tree:
    return ("add", found.left, negative(found.right))


def _items(found: Answer, beside: Answer) -> Sequence[Answer] | None:
    """The items of an answer for comparison without order; None for a set of reals."""
    if isinstance(found, Several | Finite):
        return found.items
    if isinstance(found, Named) and isinstance(found.answer, Several | Finite):
        return [Named(found.name, found.kind, item) for item in found.answer.items]
    return None if isinstance(found, Span) else [found]


def _in_order(found: Answer) -> Sequence[Answer] | None:
    if isinstance(found, Ordered):
        return found.items
    if isinstance(found, Matrix) and all(len(row) == 1 for row in found.rows):
        return [Value(row[0]) for row in found.rows]
    if isinstance(found, Several):
        if not all(isinstance(item, Named) for item in found.items):
            return found.items
        named = sorted((item for item in found.items if isinstance(item, Named)), key=lambda item: item.name)
        return [item.answer for item in named] if len({item.name for item in named}) == len(named) else None
    return None
