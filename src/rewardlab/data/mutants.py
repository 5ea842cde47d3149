"""Mutants: programs with one line changed, by rules on tokens in any language, or on Python's syntax tree."""

from __future__ import annotations

import ast
import itertools
import random
import re

SWAPS = (
    ("<", ">"), ("<=", ">="), ("==", "!="), ("+", "-"), ("*", "/"), ("+=", "-="), ("and", "or"), ("True", "False"), ("min", "max"),
    ("sum", "len"), ("head", "last"), ("even", "odd"), ("sort", "reverse"), ("sorted", "reversed"), ("take", "drop"),
    ("startswith", "endswith"), ("any", "all"), ("break", "continue"), ("upper", "lower"), ("append", "remove"),
)  # fmt: skip
"""Words and signs, each in one pair, and what takes the place of the other."""
_COUNTERPART = {x: y for a, b in SWAPS for x, y in ((a, b), (b, a))}
_PART = re.compile(r"\d+|[A-Za-z_]\w*|[-+*/<>=!]=|[-+*/<>]")


def mutated(line: str, rng: random.Random) -> str | None:
    """The line with one number one more or one less, or one word or sign replaced; None where there is nothing to change."""
    places = [m for m in _PART.finditer(line) if m[0].isdigit() or m[0] in _COUNTERPART]
    if not places:
        return None
    found = rng.choice(places)
    if found[0].isdigit():
        new = str(max(0, int(found[0]) + rng.choice((-1, 1))))
        # nothing is less than 0: one more, then
        new = str(int(found[0]) + 1) if new == found[0] else new
    else:
        new = _COUNTERPART[found[0]]
    return line[: found.start()] + new + line[found.end() :]


def mutant_of(program: str, rng: random.Random, separator: str = "\n") -> tuple[str, int] | None:
    """A program in which one of its lines is mutated, and which line of those that are not blank, from 0; None if none can be."""
    lines = program.split(separator)
    written = [i for i, line in enumerate(lines) if line.strip()]
    rng.shuffle(order := list(range(len(written))))
    for k in order:
        if (new := mutated(lines[written[k]], rng)) is not None:
            return separator.join([*lines[: written[k]], new, *lines[written[k] + 1 :]]), k
    return None


_MIRRORED: dict[type[ast.AST], str] = {
    ast.Lt: ">=", ast.GtE: "<", ast.Gt: "<=", ast.LtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Add: "-", ast.Sub: "+",
    ast.Mult: "//", ast.FloorDiv: "*", ast.Div: "*", ast.Mod: "//", ast.And: "or", ast.Or: "and", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_OPERATOR = re.compile(r"\bnot\s+in\b|\b(?:and|or|in)\b|//|[<>=!]=|[-+*/%<>]")


def syntax_mutants(program: str) -> list[tuple[str, int]]:
    """Every Python program in which one operator or one constant of the syntax tree is another, in the order of the text, and
    which line of those that are not blank, from 0, was changed. Nothing of a text that is no Python.

    Comparisons, sums, products, "and" and "or", "in"; numbers one more and one less, True and False. What stands in strings and
    comments is no part of the tree, and stays.
    """
    try:
        tree = ast.parse(program)
    except (SyntaxError, ValueError, RecursionError):
        return []
    lines = program.split("\n")
    # columns of the tree count bytes
    if not program.isascii():
        return []
    starts = [0, *itertools.accumulate(len(line) + 1 for line in lines)]
    edits = sorted({edit for node in ast.walk(tree) for edit in _edits(node, program, starts)})
    rank = {i: k for k, i in enumerate(i for i, line in enumerate(lines) if line.strip())}
    return [(program[:a] + new + program[b:], rank[program.count("\n", 0, a)]) for a, b, new in edits]


def _edits(node: ast.AST, program: str, starts: list[int]) -> list[tuple[int, int, str]]:
    """(start, end, new text) of each change of one node."""

    def place(line: int | None, column: int | None) -> int:
        return starts[(line or 1) - 1] + (column or 0)

    # a bool is an int too
    if isinstance(node, ast.Constant) and isinstance(value := node.value, int):
        a, b = place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)
        new = [str(not value)] if isinstance(value, bool) else [str(value - 1), str(value + 1)]
        return [(a, b, x) for x in new if not x.startswith("-")]
    between: list[tuple[ast.expr, ast.AST, ast.expr]] = []
    if isinstance(node, ast.Compare):
        between = list(zip([node.left, *node.comparators], node.ops, node.comparators, strict=False))
    elif isinstance(node, ast.BinOp):
        between = [(node.left, node.op, node.right)]
    elif isinstance(node, ast.BoolOp):
        between = [(a, node.op, b) for a, b in itertools.pairwise(node.values)]
    found = []
    for left, operator, right in between:
        a, b = place(left.end_lineno, left.end_col_offset), place(right.lineno, right.col_offset)
        # a comment may stand between the two, with signs of its own
        if type(operator) in _MIRRORED and "#" not in program[a:b] and (match := _OPERATOR.search(program, a, b)):
            found.append((match.start(), match.end(), _MIRRORED[type(operator)]))
    return found
