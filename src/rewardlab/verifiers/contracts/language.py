"""A subset of Dafny: methods of integers and truth values without loops, and the clauses of their contracts.

    method m(x: int, y: int) returns (r: int)
      requires x >= 4
      ensures x < y ==> r == x - 4
    { assert x >= 4; if x < y { r := x - 4; } else { r := y; } }

Expressions: + - * / % , comparisons (also chained, a < b <= c), ! && || ==> <==>, `if a then b else c`. As in Dafny, && and ||
do not mix without brackets. Statements: `var t := e;`, `t := e;`, `assert e;`, `return e;`, `if`. Nothing is executed: a text is
read into trees, and its length and depth are limited.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from rewardlab.text.tokens import TokenReader

LONGEST, DEEPEST = 5_000, 40
"""Most characters of a text, and most brackets within one another."""
_TOKEN = re.compile(r"\s*(\d+|\w+|<==>|==>|:=|[<>=!]=|&&|\|\||[-+*/%<>!(){},:;])")
_COMPARE = ("==", "!=", "<", "<=", ">", ">=")
_WORDS = frozenset(
    (
        "method", "returns", "requires", "ensures", "var", "assert", "return", "if", "then", "else", "true", "false", "int", "bool",
    )
)  # fmt: skip

Tree = tuple[Any, ...]
"""("int", n), ("bool", b), ("name", s), (operator, trees...); "if" for conditional expressions, "neg" for a minus sign."""


@dataclass
class Contract:
    """The clauses, each a tree."""

    requires: list[Tree] = field(default_factory=list)
    ensures: list[Tree] = field(default_factory=list)

    @property
    def trivial(self) -> bool:
        """Whether it ensures `true` or `false`, or nothing but that a variable is itself."""
        literal = any(tree[0] == "bool" for tree in self.ensures)
        itself = len(self.ensures) == 1 and self.ensures[0][0] == "==" and self.ensures[0][1] == self.ensures[0][2]
        return literal or (itself and self.ensures[0][1][0] == "name")


@dataclass
class Method:
    """inputs, results: names and their types, "int" or "bool".  body: statements."""

    name: str
    inputs: dict[str, str]
    results: dict[str, str]
    contract: Contract
    body: list[Tree]

    @property
    def code(self) -> tuple[Any, ...]:
        """All but the contract."""
        return self.name, tuple(self.inputs.items()), tuple(self.results.items()), self.body


def read_method(text: str) -> Method:
    """The one method of a text. Raises ValueError, with the reason."""
    reader = _Reader(text)
    method = reader.method()
    reader.end()
    return method


def read_contract(text: str) -> Contract:
    """Clauses alone. Raises ValueError, with the reason."""
    reader = _Reader(text)
    contract = reader.contract()
    reader.end()
    return contract


class _Reader(TokenReader):
    def __init__(self, text: str):
        super().__init__(text, _TOKEN, _WORDS, LONGEST)
        self.depth = 0

    def method(self) -> Method:
        self.take("method")
        name, inputs = self.name(), self.variables()
        self.take("returns")
        results, contract = self.variables(), self.contract()
        if not results or inputs.keys() & results.keys():
            raise ValueError("a method returns variables of its own names")
        return Method(name, inputs, results, contract, self.block())

    def variables(self) -> dict[str, str]:
        self.take("(")
        found: dict[str, str] = {}
        while not self.skip(")"):
            if found:
                self.take(",")
            name = self.name()
            if name in found:
                raise ValueError(f"{name} is declared twice")
            self.take(":")
            found[name] = self.take("int", "bool")
        return found

    def contract(self) -> Contract:
        found = Contract()
        while self.next in ("requires", "ensures"):
            clauses = found.requires if self.take() == "requires" else found.ensures
            clauses.append(self.expression())
        return found

    def block(self) -> list[Tree]:
        self.deeper()
        self.take("{")
        statements = []
        while not self.skip("}"):
            statements.append(self.statement())
        self.depth -= 1
        return statements

    def statement(self) -> Tree:
        kind = self.next
        if kind == "if":
            self.take()
            condition, then, other = self.expression(), self.block(), []
            if self.skip("else"):
                other = [self.statement()] if self.next == "if" else self.block()
            return ("if", condition, then, other)
        if kind in ("assert", "return"):
            statement: Tree = (self.take(), self.expression())
        else:
            declared = self.skip("var")
            name = self.name()
            self.take(":=")
            statement = ("var" if declared else "set", name, self.expression())
        self.take(";")
        return statement

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ValueError(f"over {DEEPEST} brackets within one another")

    def expression(self) -> Tree:
        """By precedence, the loosest first: <==>, ==>, && or ||, comparisons, + -, * / %."""
        self.deeper()
        tree = self.implication()
        while self.skip("<==>"):
            tree = ("<==>", tree, self.implication())
        self.depth -= 1
        return tree

    def implication(self) -> Tree:
        trees = [self.joined()]
        while self.skip("==>"):
            trees.append(self.joined())
        tree = trees.pop()
        while trees:
            # to the right: a ==> b ==> c is a ==> (b ==> c)
            tree = ("==>", trees.pop(), tree)
        return tree

    def joined(self) -> Tree:
        tree, operator = self.compared(), self.next
        while self.next in ("&&", "||"):
            if self.next != operator:
                raise ValueError("&& and || need brackets between them")
            tree = (self.take(), tree, self.compared())
        return tree

    def compared(self) -> Tree:
        left = self.sum()
        found: list[Tree] = []
        while self.next in _COMPARE:
            operator, right = self.take(), self.sum()
            found.append((operator, left, right))
            left = right
        tree = found[0] if found else left
        for other in found[1:]:
            tree = ("&&", tree, other)
        return tree

    def sum(self) -> Tree:
        return self.chain(("+", "-"), lambda: self.chain(("*", "/", "%"), self.unary))

    def chain(self, operators: tuple[str, ...], part: Any) -> Tree:
        tree = part()
        while self.next in operators:
            tree = (self.take(), tree, part())
        return tree

    def unary(self) -> Tree:
        self.deeper()
        tree = self.bare()
        self.depth -= 1
        return tree

    def bare(self) -> Tree:
        token = self.next
        if token in ("!", "-"):
            self.take()
            return ("!" if token == "!" else "neg", self.unary())
        if self.skip("("):
            tree = self.expression()
            self.take(")")
            return tree
        if self.skip("if"):
            condition = self.expression()
            self.take("then")
            then = self.expression()
            self.take("else")
            return ("if", condition, then, self.expression())
        if token.isdecimal():
            return ("int", int(self.take()[:1000]))
        if token in ("true", "false"):
            return ("bool", self.take() == "true")
        return ("name", self.name())
