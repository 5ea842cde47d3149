"""The verifier of countdown: evaluates the expression of a reply exactly, without ever running it as code."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from fractions import Fraction

from rewardlab.core import Score, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.text.answers import after_answer, boxed

LONGEST = 100
_EXPRESSION = re.compile(rf"[0-9+\-*/() ]{{1,{LONGEST}}}")
_APPLY: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@reward
def countdown_equation(trajectory: Trajectory) -> Score:
    """1 where the expression after "answer" uses each number of meta["numbers"] once and comes to meta["target"]."""
    meta = trajectory.problem.meta
    if "numbers" not in meta or "target" not in meta:
        return Score(None, why="the problem does not say its numbers and target")
    stated = boxed(trajectory.reply) or after_answer(trajectory.reply)
    if stated is None:
        return Score(0.0, why="no answer found")
    try:
        value, used = evaluate(stated)
    except ValueError as e:
        return Score(0.0, why=str(e))
    # as multisets: a number that is given twice must be used twice
    if sorted(used) != sorted(meta["numbers"]):
        return Score(0.0, why=f"uses {sorted(used)}, not each of {sorted(meta['numbers'])} once")
    right = value == meta["target"]
    return Score(float(right), why="right" if right else f"comes to {value}, not {meta['target']}")


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
