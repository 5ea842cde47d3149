"""Expressions of + - * / over whole numbers, evaluated exactly, without ever running them as code."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from fractions import Fraction

LONGEST = 100
_EXPRESSION = re.compile(rf"[0-9+\-*/() ]{{1,{LONGEST}}}")
_APPLY: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def evaluate(text: str) -> tuple[Fraction, list[int]]:
    """Value of an expression of + - * / over whole numbers, and the numbers in it. "3*4=12" is read up to its "=".

    Raises ValueError, with the reason, for anything else, for more than 100 characters and for a division by zero.
    """
    text = text.partition("=")[0].replace("×", "*").replace("÷", "/").strip(" $.")
    # before parsing: Python's parser can run out of stack on long nested text
    if not _EXPRESSION.fullmatch(text):
        raise ValueError(f"not an expression of + - * / over whole numbers, at most {LONGEST} characters: {text[:60]!r}")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as e:
        raise ValueError(f"cannot read {text[:60]!r}") from e
    numbers = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, int)]
    return _value(tree.body), numbers


def _value(node: ast.expr) -> Fraction:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Fraction(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _APPLY:
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Div) and right == 0:
            raise ValueError("divides by zero")
        return _APPLY[type(node.op)](left, right)
    raise ValueError(f"only + - * / over whole numbers, not {type(node).__name__}")
