"""Split tokens at signs outside all brackets, and into the rows of a matrix."""

from __future__ import annotations

from collections.abc import Sequence

from .text import Token, Unreadable

_OPEN = frozenset(("(", "[", "{", "\\{", "langle", "lfloor", "lceil"))
_CLOSE = frozenset((")", "]", "}", "\\}", "rangle", "rfloor", "rceil"))


def step(token: Token) -> int:
    """The change of bracket depth at a token: 1, 0 or -1."""
    text = token.text
    return (text in _OPEN or text.startswith("begin{")) - (text in _CLOSE or text.startswith("end{"))


def cut(tokens: Sequence[Token], at: Sequence[str]) -> tuple[list[Sequence[Token]], list[str]]:
    """The parts between the signs `at` outside brackets, and these signs. ", and" counts as one sign. Raises Unreadable."""
    parts: list[Sequence[Token]] = []
    between: list[str] = []
    depth, start = 0, 0
    for i, token in enumerate(tokens):
        depth += step(token)
        if depth < 0:
            raise Unreadable("a bracket is closed that was not opened")
        if depth == 0 and token.text in at and token.kind in ("sign", "command"):
            if i == start and between and token.text in ("and", "or"):
                between[-1] = token.text
            else:
                parts.append(tokens[start:i])
                between.append(token.text)
            start = i + 1
    if depth:
        raise Unreadable("a bracket is not closed")
    return [*parts, tokens[start:]], between


def closing(tokens: Sequence[Token], start: int) -> int:
    """The position of the bracket that closes the one at `start`; -1 if none does."""
    depth = 0
    for i in range(start, len(tokens)):
        depth += step(tokens[i])
        if depth == 0:
            return i
    return -1


def inside(begin: str) -> str:
    return begin.partition("{")[2].rstrip("}")


def rows_of(tokens: Sequence[Token], names: Sequence[str]) -> list[Sequence[Token]] | None:
    """The rows of the LaTeX environment that contains all tokens; None if there is none."""
    if len(tokens) < 3 or tokens[0].text not in [f"begin{{{name}}}" for name in names] or closing(tokens, 0) != len(tokens) - 1:
        return None
    content = tokens[1:-1]
    if inside(tokens[0].text) == "array" and content[0].text == "{":
        # \\begin{array}{cc}: the columns' alignment is not content
        content = content[closing(content, 0) + 1 :]
    return [row for row in cut(content, ("\\\\",))[0] if row]
