"""The items of an answer: in which order, and under which names, they are to be compared."""

from __future__ import annotations

from collections.abc import Sequence

from .kinds import Answer, Finite, Matrix, Named, Ordered, Parts, Ratio, Relation, Several, Span, Value
from .trees import Tree, negative, over

Pairs = list[tuple[Answer, Answer]]


def one_to_one(reply: Answer, gold: Answer) -> Pairs | None:
    """The items that correspond to each other by their names or by their order; None if neither tells which do.

    AB = 4, CD = 5 corresponds to CD = 5, AB = 4 by name, and a gold answer so named to 4, 5 as it is written. A reply with names
    corresponds to a gold answer without any if the names are in alphabetical order, and so do names to a point (1, 2).
    """
    said_names, gold_names = _by_name(reply), _by_name(gold)
    if said_names and gold_names:
        return [(said_names[name], gold_names[name]) for name in gold_names] if said_names.keys() == gold_names.keys() else None
    if not (said_names or gold_names or isinstance(reply, Parts) or isinstance(gold, Parts)):
        return None
    said, expected = _written(reply, gold_names), _written(gold, said_names)
    if said_names and list(said_names) != sorted(said_names):
        return None
    if said is None or expected is None or len(said) != len(expected):
        return None
    return list(zip(said, expected, strict=True))


def _by_name(answer: Answer) -> dict[str, Answer] | None:
    if isinstance(answer, Several):
        named = {item.name: item.answer for item in answer.items if isinstance(item, Named)}
        return named if len(named) == len(answer.items) > 1 else None
    # (x, y) = (1, 2)
    if isinstance(answer, Named) and isinstance(answer.answer, Ordered) and answer.name[:1] == "(":
        names = answer.name.strip("()").split(",")
        return dict(zip(names, answer.answer.items, strict=True)) if len(set(names)) == len(answer.answer.items) else None
    return None


def _written(answer: Answer, beside: dict[str, Answer] | None) -> Sequence[Answer] | None:
    """The items in the order in which they are written, if there is a reason to compare them so.  beside: the other's by name."""
    if isinstance(answer, Parts):
        return answer.items
    if named := _by_name(answer):
        return list(named.values())
    if isinstance(answer, Several):
        return None if any(isinstance(item, Named | Several) for item in answer.items) else answer.items
    ordered = isinstance(answer, Ordered) and answer.brackets == "()" and beside is not None and list(beside) == sorted(beside)
    return answer.items if isinstance(answer, Ordered) and ordered else None


def variables(items: Sequence[Answer]) -> int:
    return len({item.name for item in items if isinstance(item, Named)})


def all_named(items: Sequence[Answer]) -> bool:
    return all(isinstance(item, Named | Several) for item in items)


def equation(answer: Answer) -> Relation | None:
    if isinstance(answer, Named) and isinstance(answer.answer, Value):
        return Relation("=", ("sym", answer.name), answer.answer.tree)
    if isinstance(answer, Named) and answer.kind == "ratio" and isinstance(answer.answer, Ratio) and len(answer.answer.parts) == 2:
        # AE:EC = 3:4 is AE/EC = 3/4
        above, below = answer.name.split(":")
        return Relation("=", over(("sym", above), ("sym", below)), over(*answer.answer.parts))
    return answer if isinstance(answer, Relation) else None


def in_terms_of(named: Named, ratio: str) -> Answer | None:
    """What a ratio with a name, a:b = 2:3, is in terms of b:a; None if the names are others."""
    names = named.name.split(":")
    if names == ratio.split(":"):
        return named.answer
    if not isinstance(named.answer, Ratio) or names[::-1] != ratio.split(":"):
        return None
    return named.answer._replace(parts=named.answer.parts[::-1])


def difference(relation: Relation) -> Tree:
    return ("add", relation.left, negative(relation.right))


def items(answer: Answer, beside: Answer) -> Sequence[Answer] | None:
    """The items of an answer for comparison without order; None for a set of reals."""
    if isinstance(answer, Several | Finite):
        return answer.items
    if isinstance(answer, Named) and isinstance(answer.answer, Several | Finite):
        return [Named(answer.name, answer.kind, item) for item in answer.answer.items]
    return None if isinstance(answer, Span) else [answer]


def in_order(answer: Answer) -> Sequence[Answer] | None:
    if isinstance(answer, Ordered):
        return answer.items
    if isinstance(answer, Matrix) and all(len(row) == 1 for row in answer.rows):
        return [Value(row[0]) for row in answer.rows]
    if isinstance(answer, Several):
        if not all(isinstance(item, Named) for item in answer.items):
            return answer.items
        named = sorted((item for item in answer.items if isinstance(item, Named)), key=lambda item: item.name)
        return [item.answer for item in named] if len({item.name for item in named}) == len(named) else None
    return None
