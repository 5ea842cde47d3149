"""Parse tokens into expression trees, by recursive descent. The grammar knows only mathematical names: nothing can be executed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from .numerals import END, Numerals
from .text import FUNCTIONS, Token, Unreadable
from .trees import DEGREE, INFINITE, MINUS_ONE, Tree, applied, holds, names, negative, number, over, power, times

DEEPEST = 40
"""Most levels of nested brackets."""

_CLOSES = {"(": ")", "[": "]", "{": "}", "\\{": "\\}"}
_PAIRED = {"lfloor": ("rfloor", "floor"), "lceil": ("rceil", "ceil")}
_CONSTANTS = {"pi": ("const", "pi"), "infty": ("const", "inf")}
_INVERSE = {name: f"arc{name}" for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")}
_MANY = ("gcd", "lcm", "max", "min")


def scalar(tokens: Sequence[Token]) -> tuple[Tree, Sequence[Token]]:
    """The expression at the beginning of the tokens, and the tokens after it. Raises Unreadable."""
    reader = _Reader(tokens)
    tree = reader.divided(reader.sum())
    # infinity is allowed only by itself, as a bound: inf - inf has no value
    infinite = tree in (INFINITE, negative(INFINITE))
    if not infinite and holds(tree, INFINITE):
        raise Unreadable("arithmetic with infinity")
    return tree, tokens[reader.at :]


class _Reader(Numerals):
    # ---- sums, products, powers --------------------------------------------------------------------------------------

    def sum(self) -> Tree:
        self.depth += 1
        # Python's own recursion limit would end far deeper in the parse, and differs between versions
        if self.depth > DEEPEST:
            raise Unreadable("too many brackets within brackets")
        terms = [self.signed()]
        while self.peek().text in ("+", "-") and self.peek().kind == "sign":
            minus = self.take().text == "-"
            term = self.signed() if self.peek().text in ("+", "-") else self.product()
            terms.append(negative(term) if minus else term)
        self.depth -= 1
        return terms[0] if len(terms) == 1 else ("add", *terms)

    def signed(self) -> Tree:
        if self.skip("-"):
            return negative(self.product())
        self.skip("+")
        return self.product()

    def product(self) -> Tree:
        tree = self.power()
        while True:
            if self.skip("*"):
                tree = times(tree, self.factor())
            elif self.peek().text == "/" and self.peek(1).kind != "word":
                self.at += 1
                tree = over(tree, self.factor())
            elif self.begins():
                tree = times(tree, self.power())
            else:
                return tree

    def factor(self) -> Tree:
        return negative(self.power()) if self.skip("-") else self.power()

    def begins(self) -> bool:
        """Whether a factor follows without a multiplication sign.

        A number does after a factorial alone, 3!7!: "2 3", "x2" and "(x+1)2" are ambiguous.
        """
        kind, text, _ = self.peek()
        if kind == "number":
            return self.at > 0 and self.tokens[self.at - 1].kind == "sign" and self.tokens[self.at - 1].text in ("!", "!!")
        if kind == "name":
            return True
        if kind == "command":
            return text in FUNCTIONS or text in _CONSTANTS or text in _PAIRED or text in ("frac", "binom", "sum", "prod")
        return kind == "sign" and (text in ("(", "[", "{") or (text == "|" and not self.bars))

    def power(self) -> Tree:
        base = self.postfix(self.primary())
        if self.skip("^"):
            degrees = [self.peek(i).text for i in range(3)] == ["{", "circ", "}"]
            if degrees or self.peek().text == "circ":
                self.at += 3 if degrees else 1
                return times(base, DEGREE)
            # x^2! is (x^2)!
            return self.postfix(power(base, self.exponent()))
        return base

    def exponent(self) -> Tree:
        tree = self.factor_alone()
        return power(tree, self.exponent()) if self.skip("^") else tree

    def factor_alone(self) -> Tree:
        if self.skip("-"):
            return negative(self.primary())
        self.skip("+")
        return self.primary()

    def postfix(self, tree: Tree) -> Tree:
        while True:
            if self.skip("!!"):
                tree = ("fn", "factorial2", tree)
            elif self.skip("!"):
                tree = ("fn", "factorial", tree)
            elif self.skip("%"):
                tree = over(tree, ("num", 100, 1)) if tree[0] != "num" else number(Fraction(tree[1], tree[2] * 100))
            else:
                return tree

    # ---- primary expressions -----------------------------------------------------------------------------------------

    def primary(self) -> Tree:
        kind, text, _ = token = self.take()
        if kind == "number":
            return self.numeral(text)
        if kind == "name":
            return self.symbol(text)
        if kind == "command":
            return self.command(text)
        if kind == "sign" and text in ("(", "[", "{"):
            return self.group(_CLOSES[text])
        if kind == "sign" and text == "|":
            self.bars += 1
            inside = self.sum()
            self.expect("|")
            self.bars -= 1
            return ("fn", "abs", inside)
        raise Unreadable(f"{token.text!r} is not understood here" if token is not END else "it ends too early")

    def group(self, close: str) -> Tree:
        # within brackets a | opens an absolute value again, even between two other bars
        bars, self.bars = self.bars, 0
        inside = self.divided(self.sum()) if close == "}" else self.sum()
        self.expect(close)
        self.bars = bars
        return inside

    def divided(self, above: Tree) -> Tree:
        r"""TeX's own {1 \over 2} and {5 \choose 2}, after the part above."""
        if self.skip("over"):
            return over(above, self.sum())
        return ("fn", "binomial", above, self.sum()) if self.skip("choose") else above

    def symbol(self, name: str) -> Tree:
        if name in ("e", "i") and self.peek().text != "_":
            return ("const", name)
        while self.peek().text == "'" and self.peek().kind == "sign":
            name += self.take().text
        if self.skip("_"):
            name += "_" + self.subscript()
        return ("sym", name)

    def subscript(self) -> str:
        if not self.skip("{"):
            return self.take().text
        start, depth = self.at, 1
        while depth:
            text = self.take().text
            if not text:
                raise Unreadable("'}' is missing")
            depth += (text == "{") - (text == "}")
        return "".join(token.text for token in self.tokens[start : self.at - 1])

    def command(self, name: str) -> Tree:
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if name in ("frac", "binom"):
            above, below = self.argument(), self.argument()
            return over(above, below) if name == "frac" else ("fn", "binomial", above, below)
        if name == "sqrt":
            degree = self.group("]") if self.skip("[") else ("num", 2, 1)
            return ("root", degree, self.argument(whole=True))
        if name in _PAIRED:
            close, function = _PAIRED[name]
            return ("fn", function, self.group(close))
        if name in ("sum", "prod"):
            return self.series(name)
        if name in FUNCTIONS:
            return self.function(name)
        if name in ("ldots",):
            return ("sym", "\\ldots")
        raise Unreadable(f"\\{name} is not understood")

    def argument(self, whole: bool = False) -> Tree:
        r"""The argument of a command: a group or the next token. Of a number it is the first digit only, as in TeX (\frac12)."""
        token = self.peek()
        if token.text == "{" or (whole and token.text == "("):
            self.at += 1
            return self.group(_CLOSES[token.text])
        if token.kind == "number" and not whole and len(token.text) > 1:
            if not token.text.isdigit() or len(token.text) > 2:
                raise Unreadable("a fraction without braces")
            self.tokens = [*self.tokens[: self.at], *(Token("number", digit) for digit in token.text), *self.tokens[self.at + 1 :]]
            token = self.peek()
        if token.kind == "number":
            self.at += 1
            return number(Fraction(token.text))
        if token.kind == "name" or token.text in ("pi", "sqrt", "frac"):
            return self.primary()
        raise Unreadable("a command without its argument")

    # ---- functions ---------------------------------------------------------------------------------------------------

    def function(self, name: str) -> Tree:
        base = self.primary() if name == "log" and self.skip("_") else None
        raised = self.exponent() if self.skip("^") else None
        if raised == MINUS_ONE and name in _INVERSE:
            name, raised = _INVERSE[name], None
        if name in _MANY:
            tree: Tree = ("fn", name, *self.arguments())
        else:
            tree = applied(name, self.operand(), base)
        return tree if raised is None else power(tree, raised)

    def operand(self) -> Tree:
        if self.peek().text in ("(", "[", "|"):
            return self.primary()
        tree = self.factor() if self.peek().text == "-" else self.power()
        # sin 2x y is sin(2xy), but sin x cos y is a product of two functions
        while self.begins() and self.peek().text not in FUNCTIONS and self.peek().text not in ("(", "["):
            tree = times(tree, self.power())
        return tree

    def arguments(self) -> list[Tree]:
        if not self.skip("(", "{", "\\{"):
            raise Unreadable("a function without brackets")
        close = _CLOSES[self.tokens[self.at - 1].text]
        arguments = [self.sum()]
        while self.skip(","):
            arguments.append(self.sum())
        self.expect(close)
        return arguments

    def series(self, name: str) -> Tree:
        """A sum or product over an index; its body extends to the next + or -."""
        self.expect("_")
        self.expect("{")
        variable = self.primary()
        self.expect("=")
        low = self.group("}")
        self.expect("^")
        high, body = self.primary(), self.product()
        # a_k is another symbol for each k, which a single tree cannot express
        if variable[0] != "sym" or any(variable[1] in name.partition("_")[2] for name in names(body)):
            raise Unreadable("a series of terms with indices")
        return ("fn", name, variable, low, high, body)
