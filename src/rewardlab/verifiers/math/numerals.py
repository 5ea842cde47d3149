"""Read numerals from tokens: decimals with a period, mixed numbers. The place in the tokens is that of the parser built on it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from .text import Token, Unreadable
from .trees import Tree, number, repeating

END = Token("end", "")


class Numerals:
    """A place in a list of tokens, and what reads a number from there."""

    def __init__(self, tokens: Sequence[Token]):
        self.tokens, self.at, self.depth, self.bars = tokens, 0, 0, 0

    def peek(self, ahead: int = 0) -> Token:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else END

    def take(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    def skip(self, *texts: str) -> bool:
        if self.peek().text in texts and self.peek().kind in ("sign", "command"):
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.skip(text):
            raise Unreadable(f"{text!r} is missing")

    def primary(self) -> Tree:
        """A fraction, as the parser reads it."""
        raise NotImplementedError

    def numeral(self, text: str) -> Tree:
        if self.peek().text in ("overline", "bar", "dot") and "." in text:
            return number(repeating(text, self.period()))
        if self.peek().text == "_":
            raise Unreadable("a number in another base")
        value = Fraction(text)
        return number(value + self.part_of_mixed() if text.isdigit() and value else value)

    def period(self) -> str:
        r"""The digits that come again: all of \overline{142857}, or those from the first dot to the last, \dot{1}4285\dot{7}."""
        dotted = self.take().text == "dot"
        digits = self.marked_digits()
        if dotted and self.peek().kind == "number" and self.peek(1).text == "dot":
            digits += self.take().text
        return digits + self.marked_digits() if dotted and self.skip("dot") else digits

    def marked_digits(self) -> str:
        braces = self.skip("{")
        digits = self.take().text
        if braces:
            self.expect("}")
        return digits

    def part_of_mixed(self) -> Fraction | int:
        r"""The fraction of a mixed number, as in 2\frac{1}{2} or "2 1/2"; 0 if no proper fraction follows."""
        start = self.at
        if self.peek().text == "frac" and self.peek().kind == "command" and self.plain_argument(self.plain_argument(1)):
            part = self.fraction_of_integers()
        elif (
            self.peek().apart and [self.peek(i).kind for i in range(3)] == ["number", "sign", "number"] and self.peek(1).text == "/"
        ):
            above, _, below = (self.take().text for _ in range(3))
            part = Fraction(int(above), int(below)) if above.isdigit() and below.isdigit() and int(below) else None
        else:
            return 0
        if part is not None and 0 < part < 1 and self.peek().text not in ("^", "!", "/"):
            return part
        # the fraction is a factor, not part of a mixed number
        self.at = start
        return 0

    def plain_argument(self, ahead: int) -> int:
        """The place after an argument that is a number or the digits of one; 0 if another one is there, which may be long."""
        texts = [self.peek(ahead + i).text for i in range(3)]
        if ahead and self.peek(ahead).kind == "number":
            return ahead if ahead == 1 and len(texts[0]) == 2 else ahead + 1
        return ahead + 3 if ahead and (texts[0], texts[2]) == ("{", "}") and self.peek(ahead + 1).kind == "number" else 0

    def fraction_of_integers(self) -> Fraction | None:
        tree = self.primary()
        return Fraction(tree[1], tree[2]) if tree[0] == "num" else None
