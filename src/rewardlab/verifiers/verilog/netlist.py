"""A subset of Verilog: one module of single wires and `assign`, its truth table, its gates and its depth.

    module top(input a, input b, input c, output y);
      wire w = b | c;
      assign y = a & w;
    endmodule

Operators: ~ ! & && | || ^ ~^ ?: and brackets; constants 1'b0 and 1'b1. Nothing is executed: a text is read into trees, and its
length, depth and number of inputs are limited.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rewardlab.text.tokens import TokenReader

LONGEST, DEEPEST, LEVELS, INPUTS = 5_000, 25, 80, 12
"""Most characters of a text, brackets within one another, operators of an expression in a row, and inputs of a module."""
_TOKEN = re.compile(r"\s*(1'b[01]|~\^|&&|\|\||[A-Za-z_]\w*|[-~!&|^?:()=,;])")
_WORDS = frozenset(["module", "input", "output", "wire", "assign", "endmodule"])
_LEVELS = (("||",), ("&&",), ("|",), ("^", "~^"), ("&",))
"""Operators, the loosest first."""
GATES = {"not": 1, "and": 1, "or": 1, "xor": 1, "xnor": 1, "mux": 3}
_KINDS = {"||": "or", "|": "or", "&&": "and", "&": "and", "^": "xor", "~^": "xnor"}

Tree = tuple[Any, ...]
"""("const", 0, 0 or 1), ("name", 0, s), (gate, operators in a row, trees...)."""


@dataclass
class Netlist:
    """A module. driven: the tree of each output and wire."""

    inputs: list[str]
    outputs: list[str]
    driven: dict[str, Tree]


@dataclass(frozen=True)
class Measured:
    """tables: of each output, its value for every row of inputs (in the order of their names) as the bits of a number.

    area: gates.  delay: gates on the longest way to an output.
    """

    inputs: tuple[str, ...]
    tables: dict[str, int]
    area: int
    delay: int

    def same(self, other: Measured) -> bool:
        return (self.inputs, self.tables) == (other.inputs, other.tables)


def read(text: str) -> Netlist:
    """The one module of a text. Raises ValueError, with the reason."""
    return _Reader(text).module()


def measured(netlist: Netlist) -> Measured:
    """What the module computes, and of how many gates it is. Raises ValueError for a wire that drives itself or is not driven."""
    inputs = sorted(netlist.inputs)
    rows = 1 << len(inputs)
    every = (1 << rows) - 1
    # of input i the bits of its column: 2^i rows of 0, 2^i rows of 1, and so on
    known = {name: (every // ((1 << (1 << i)) + 1) << (1 << i), 0) for i, name in enumerate(inputs)}
    waiting = {name: (tree, set(_names(tree))) for name, tree in netlist.driven.items()}
    while waiting:
        ready = [name for name, (_, names) in waiting.items() if names <= known.keys()]
        if not ready:
            raise ValueError(f"{min(waiting)} drives itself, or needs a wire that is not driven")
        for name in ready:
            known[name] = _column(waiting.pop(name)[0], known, every)
    if loose := [name for name in netlist.outputs if name not in known]:
        raise ValueError(f"{loose[0]} is not driven")
    found = {name: known[name] for name in netlist.outputs}
    area = sum(_gates(tree) for tree in netlist.driven.values())
    tables = {name: column for name, (column, _) in found.items()}
    return Measured(tuple(inputs), tables, area, max(delay for _, delay in found.values()))


def _names(tree: Tree) -> Iterator[str]:
    if tree[0] == "name":
        yield tree[2]
    for part in tree[2:]:
        if isinstance(part, tuple):
            yield from _names(part)


def _column(tree: Tree, known: Mapping[str, tuple[int, int]], every: int) -> tuple[int, int]:
    """The values of a tree for all rows of inputs, and the gates on the longest way to it."""
    kind, _, *parts = tree
    if kind == "const":
        return every * parts[0], 0
    if kind == "name":
        return known[parts[0]]
    found = [_column(part, known, every) for part in parts]
    return _COMPUTE[kind](every, *(column for column, _ in found)), max(delay for _, delay in found) + 1


_COMPUTE: dict[str, Callable[..., int]] = {
    "not": lambda every, a: every & ~a,
    "and": lambda every, a, b: a & b,
    "or": lambda every, a, b: a | b,
    "xor": lambda every, a, b: a ^ b,
    "xnor": lambda every, a, b: every & ~(a ^ b),
    "mux": lambda every, s, a, b: (s & a) | (every & ~s & b),
}


def _gates(tree: Tree) -> int:
    return GATES.get(tree[0], 0) + sum(_gates(part) for part in tree[2:] if isinstance(part, tuple))


def _gate(kind: str, *parts: Tree) -> Tree:
    deep = 1 + max(part[1] for part in parts)
    if deep > LEVELS:
        raise ValueError(f"over {LEVELS} gates in a row")
    return (kind, deep, *parts)


class _Reader(TokenReader):
    def __init__(self, text: str):
        super().__init__(text, _TOKEN, _WORDS, LONGEST)
        self.depth, self.netlist = 0, Netlist([], [], {})
        self.wires: set[str] = set()

    def module(self) -> Netlist:
        self.take("module")
        self.name()
        self.ports()
        while not self.skip("endmodule"):
            if self.take("assign", "wire") == "wire":
                self.declared()
            else:
                self.assigned(self.name())
            self.take(";")
        self.end("the module")
        return self.netlist

    def ports(self) -> None:
        self.take("(")
        side = self.netlist.inputs
        while not self.skip(")"):
            if self.wires:
                self.take(",")
            if self.next in ("input", "output"):
                side = self.netlist.inputs if self.take() == "input" else self.netlist.outputs
                self.skip("wire")
            elif not self.wires:
                raise ValueError("ports need `input` or `output`")
            side.append(self.new())
        self.take(";")
        if not self.netlist.outputs or len(self.netlist.inputs) > INPUTS:
            raise ValueError(f"a module needs an output, and at most {INPUTS} inputs")

    def new(self) -> str:
        name = self.name()
        if name in self.wires:
            raise ValueError(f"{name} is declared twice")
        self.wires.add(name)
        return name

    def declared(self) -> None:
        while True:
            name = self.new()
            if self.next == "=":
                self.assigned(name)
            if not self.skip(","):
                return

    def assigned(self, name: str) -> None:
        if name not in self.wires or name in self.netlist.inputs or name in self.netlist.driven:
            raise ValueError(f"{name} cannot be assigned: it is an input, not declared, or assigned before")
        self.take("=")
        self.netlist.driven[name] = self.expression()

    def expression(self) -> Tree:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ValueError(f"over {DEEPEST} brackets within one another")
        tree = self.level(0)
        if self.skip("?"):
            then = self.expression()
            self.take(":")
            tree = _gate("mux", tree, then, self.expression())
        self.depth -= 1
        return tree

    def level(self, i: int) -> Tree:
        if i == len(_LEVELS):
            return self.unary()
        tree = self.level(i + 1)
        while self.next in _LEVELS[i]:
            tree = _gate(_KINDS[self.take()], tree, self.level(i + 1))
        return tree

    def unary(self) -> Tree:
        inversions = 0
        while self.next in ("~", "!"):
            self.take()
            inversions += 1
        if self.skip("("):
            tree = self.expression()
            self.take(")")
        elif self.next.startswith("1'b"):
            tree = ("const", 0, int(self.take()[-1]))
        else:
            name = self.name()
            if name not in self.wires:
                raise ValueError(f"{name} is not declared")
            tree = ("name", 0, name)
        for _ in range(inversions):
            tree = _gate("not", tree)
        return tree
