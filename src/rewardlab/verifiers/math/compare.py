"""Compare two answers: equal, different, or unknown until some expressions have been compared by computer algebra.

The rules, all on the strict side:

    0.5, 1/2, 2/4 and 50% are equal. 50 equals 50% only if the gold answer is written in percent or the question asks for percent.
    Nothing is rounded: 3.14 is not 3.14159, 0.33 is not 1/3, unless a tolerance is given.
    A unit is ignored if the other side has none; two different units of measurement are never equal, nor is one equal to apples.
    "a + b = 5" is 5 only where the question asks to find a + b. "pi = 3.14" approximately is pi; "5 = 6" approximately is nothing.
    x = 5 and 5 are equal; y = 5 and x = 5 are not. The name in f(x) = ... and Area = ... is ignored.
    Equations are equal up to a nonzero constant factor: y = 2x + 1 and 2x - y + 1 = 0; inequalities up to a positive one.
    AB = 4, CD = 5 equals CD = 5, AB = 4 and, as a gold answer, 4, 5 in this order; x = 1, y = 2 equals (1, 2);
    a:b = 2:3 equals 2:3.
    The answers to the parts (a), (b), ... of a question are compared in their order.
    The order counts in tuples, but not in sets and lists of answers. "1 and 2" does not equal 1; "plus or minus 1" is both.
    (1, 2) may be a pair or an open interval; otherwise open and closed ends, round and square brackets differ.
    A log without a base has an unknown base, the same on both sides. Numbers in another base equal only themselves.

With strict=False: brackets of tuples may differ or be missing, column vectors equal tuples, 3/4 equals 3:4, and a
missing base is taken to be the right one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from . import units
from .answers import pieces_of
from .exact import proportional, rational
from .items import all_named, difference, equation, in_order, in_terms_of, items, one_to_one, variables
from .kinds import Answer, Based, Finite, Matrix, Named, Ordered, Parts, Ratio, Relation, Several, Span, Value
from .letters import alike, of_either, rearranged
from .matrices import determinant
from .polynomials import count
from .text import Unreadable
from .trees import DEGREE, Tree, number, over, times

Known = bool | None
"""Three-valued logic: None means that it is not known yet."""


def all_of(results: Iterable[Known]) -> Known:
    total: Known = True
    for result in results:
        # one False decides, even where other results are still unknown
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

    def same(self, reply: Answer, gold: Answer) -> Known:
        # lists of lists are compared item by item
        count(3)
        # answers are plain tuples: identical ones need no algebra
        if reply == gold:
            return True
        if (pairs := one_to_one(reply, gold)) is not None:
            return all_of(self.same(a, b) for a, b in pairs)
        if isinstance(reply, Parts) or isinstance(gold, Parts):
            return False
        # names first: what a name stands for may be of any of the kinds below
        if isinstance(reply, Named) or isinstance(gold, Named):
            return self.named(reply, gold)
        for kind, compare in (
            (Relation, self.relations), (Several, self.several), (Finite, self.several), (Span, self.spans),
            (Matrix, self.matrices), (Ordered, self.ordered), (Ratio, self.ratios), (Based, self.based),
        ):  # fmt: skip
            if isinstance(reply, kind) or isinstance(gold, kind):
                return compare(reply, gold)
        if isinstance(reply, Value) and isinstance(gold, Value):
            return self.values(reply, gold)
        return alike(reply, gold)

    # ---- values ------------------------------------------------------------------------------------------------------

    def values(self, reply: Value, gold: Value) -> Known:
        if units.conflict(reply.unit, gold.unit) or rearranged(reply, gold):
            return False
        # every admissible reading of percent and degrees; one match is enough
        ways = [(reply.tree, gold.tree)]
        if gold.percent and not reply.percent and not reply.unit:
            ways.append((reply.tree, times(number(100), gold.tree)))
        if reply.percent and not gold.percent and self.in_percent:
            ways.append((times(number(100), reply.tree), gold.tree))
        if reply.unit == "deg" and not gold.unit:
            ways.append((times(reply.tree, DEGREE), gold.tree))
        if gold.unit == "deg" and not reply.unit:
            ways.append((reply.tree, times(gold.tree, DEGREE)))
        return any_of(self.trees(a, b) for a, b in ways)

    def trees(self, a: Tree, b: Tree) -> Known:
        same = self.equal(a, b)
        if not same and self.tolerance:
            x, y = rational(a), rational(b)
            if x is not None and y is not None:
                # relative to the gold value: relative to the reply's, large wrong answers would be allowed more
                return abs(x - y) <= Fraction(self.tolerance) * abs(y)
        return same

    # ---- equations and names -----------------------------------------------------------------------------------------

    def named(self, reply: Answer, gold: Answer) -> Known:
        if isinstance(reply, Named) and isinstance(gold, Named):
            if reply.kind == gold.kind == "ratio":
                turned = in_terms_of(reply, gold.name)
                return turned is not None and self.same(turned, gold.answer)
            if reply.name == gold.name or "shape" in (reply.kind, gold.kind):
                return self.same(reply.answer, gold.answer)
            # "Area = 5" and "x = 5": a word describes the answer and does not name a variable
            if "word" in (reply.kind, gold.kind):
                both = reply.kind == gold.kind
                return False if both and units.conflict(reply.name, gold.name) else self.same(reply.answer, gold.answer)
            if reply.kind != gold.kind:
                # y = x + 1 for f(x) = x + 1
                return self.same(reply.answer, gold.answer) if "function" in (reply.kind, gold.kind) else False
            return self.as_equations(reply, gold) if reply.kind == "symbol" else False
        for labelled, other in ((reply, gold), (gold, reply)):
            if isinstance(labelled, Named) and not isinstance(other, Named):
                if isinstance(other, Relation):
                    return self.as_equations(reply, gold)
                if isinstance(other, Several):
                    # one answer with several values
                    return self.several(reply, gold)
                if isinstance(other, Span) and other.variable not in ("", labelled.name):
                    return False
                return self.same(labelled.answer, other) if labelled is reply else self.same(other, labelled.answer)
        return False

    def as_equations(self, reply: Answer, gold: Answer) -> Known:
        a, b = (equation(answer) for answer in (reply, gold))
        return self.relations(a, b) if a and b else False

    def relations(self, reply: Answer, gold: Answer) -> Known:
        if not (isinstance(reply, Relation) and isinstance(gold, Relation)) or reply.sign != gold.sign:
            return False
        if reply.sign in ("=", "!="):
            direct = all_of([self.equal(reply.left, gold.left), self.equal(reply.right, gold.right)])
            turned = all_of([self.equal(reply.left, gold.right), self.equal(reply.right, gold.left)])
            # `proportional` cannot see through functions such as sin, so the sides are also compared one by one
            return any_of([proportional(difference(reply), difference(gold), positive=False), direct, turned])
        # the sides of an inequality have an order, so they are not exchanged
        both = all_of([self.equal(reply.left, gold.left), self.equal(reply.right, gold.right)])
        return any_of([proportional(difference(reply), difference(gold), positive=True), both])

    # ---- several -----------------------------------------------------------------------------------------------------

    def several(self, reply: Answer, gold: Answer) -> Known:
        if of_either(reply, gold):
            return False
        if isinstance(reply, Several) and isinstance(gold, Value):
            # 1/2 or 0.5 is one answer in two notations, 5,5 none
            return not reply.run_on and all_of(
                self.values(item, gold) if isinstance(item, Value) else False for item in reply.items
            )
        said_items, gold_items = items(reply, gold), items(gold, reply)
        if said_items is None or gold_items is None:
            return self.spans(reply, gold) if Span in (type(reply), type(gold)) else self.loosely_ordered(reply, gold)
        if (variables(said_items) > 1 and not all_named(gold_items)) or (variables(gold_items) > 1 and not all_named(said_items)):
            # gold "x = 1, y = 2": a reply "2, 1" does not say which is which
            return self.loosely_ordered(reply, gold)
        if (ordered := self.loosely_ordered(reply, gold)) or not (isinstance(reply, Finite) and isinstance(gold, Finite)):
            return ordered or self.matched(said_items, gold_items)
        # {1, 1} is {1}, while repetitions in a list count
        turns = [self.one_of(item, gold_items) for item in said_items]
        return all_of([*turns, *(self.one_of(item, said_items, of_gold=True) for item in gold_items)])

    def one_of(self, item: Answer, others: Sequence[Answer], of_gold: bool = False) -> Known:
        if item in others:
            return True
        return any_of(self.same(other, item) if of_gold else self.same(item, other) for other in others)

    def matched(self, reply: Sequence[Answer], gold: Sequence[Answer]) -> Known:
        """Whether the items match one to one. Equality is an equivalence relation, so each item may take the first match."""
        if len(reply) != len(gold):
            return False
        unmatched, open_items = list(gold), []
        for item in reply:
            # the same text again needs no algebra
            if item in unmatched:
                unmatched.remove(item)
            else:
                open_items.append(item)
        unsure = False
        for item in open_items:
            found = self.first_match(item, unmatched)
            if found is None:
                unsure = True
            elif found < 0:
                return False
            else:
                unmatched.pop(found)
        return None if unsure else True

    def first_match(self, item: Answer, others: Sequence[Answer]) -> int | None:
        """The position of the first other that is the same; -1 if none is, None if that is not known."""
        unsure = False
        for place, other in enumerate(others):
            same = self.same(item, other)
            if same:
                return place
            unsure = unsure or same is None
        return None if unsure else -1

    def loosely_ordered(self, reply: Answer, gold: Answer) -> Known:
        """If not strict, a list or named values may stand for a tuple."""
        if self.strict:
            return False
        said_items, gold_items = (in_order(answer) for answer in (reply, gold))
        if (
            said_items is None
            or gold_items is None
            or Ordered not in (type(reply), type(gold))
            or len(said_items) != len(gold_items)
        ):
            return False
        return all_of(self.same(a, b) for a, b in zip(said_items, gold_items, strict=True))

    def ordered(self, reply: Answer, gold: Answer) -> Known:
        if isinstance(reply, Ordered) and isinstance(gold, Ordered):
            if len(reply.items) != len(gold.items) or (self.strict and reply.brackets != gold.brackets):
                return False
            return all_of(self.same(a, b) for a, b in zip(reply.items, gold.items, strict=True))
        return self.loosely_ordered(reply, gold)

    # ---- sets of numbers, and the rest -------------------------------------------------------------------------------

    def spans(self, reply: Answer, gold: Answer) -> Known:
        names = {answer.variable for answer in (reply, gold) if isinstance(answer, Span)} - {""}
        try:
            said_pieces, gold_pieces = pieces_of(reply), pieces_of(gold)
        except Unreadable:
            return False
        if len(names) > 1 or len(said_pieces) != len(gold_pieces):
            return False
        return all_of(
            self.equal(a.low, b.low) if (a.low_in, a.high_in) == (b.low_in, b.high_in) else False
            for a, b in zip(said_pieces, gold_pieces, strict=True)
        ) and all_of(self.equal(a.high, b.high) for a, b in zip(said_pieces, gold_pieces, strict=True))

    def matrices(self, reply: Answer, gold: Answer) -> Known:
        if isinstance(reply, Matrix) and isinstance(gold, Matrix):
            if reply.style != gold.style or [len(row) for row in reply.rows] != [len(row) for row in gold.rows]:
                return False
            pairs = [
                (a, b)
                for said_row, gold_row in zip(reply.rows, gold.rows, strict=True)
                for a, b in zip(said_row, gold_row, strict=True)
            ]
            return all_of(self.equal(a, b) for a, b in pairs)
        table, other = (reply, gold) if isinstance(reply, Matrix) else (gold, reply)
        if isinstance(table, Matrix) and table.style and isinstance(other, Value):
            try:
                return self.equal(determinant(table.rows), other.tree)
            except Unreadable:
                return False
        return self.loosely_ordered(reply, gold)

    def ratios(self, reply: Answer, gold: Answer) -> Known:
        if isinstance(reply, Ratio) and isinstance(gold, Ratio):
            if len(reply.parts) != len(gold.parts) or (reply.unit and gold.unit and reply.unit != gold.unit):
                return False
            pairs = list(zip(reply.parts, gold.parts, strict=True))
            if alike := all_of(self.equal(a, b) for a, b in pairs):
                return alike
            # a part that is zero or irrational is not cross-multiplied: 0:0 would equal every ratio
            if reply.clock or gold.clock or any(not rational(tree) for pair in pairs for tree in pair):
                return alike
            first = pairs[0]
            return all_of(self.equal(times(a, first[1]), times(b, first[0])) for a, b in pairs)
        ratio, other = (reply, gold) if isinstance(reply, Ratio) else (gold, reply)
        if self.strict or not isinstance(ratio, Ratio) or not isinstance(other, Value) or len(ratio.parts) != 2 or ratio.clock:
            return False
        return self.equal(over(*ratio.parts), other.tree)

    def based(self, reply: Answer, gold: Answer) -> Known:
        based, other = (reply, gold) if isinstance(reply, Based) else (gold, reply)
        if self.strict or not isinstance(based, Based) or not isinstance(other, Value):
            return False
        return other.tree == number(int(based.digits or "0"))
