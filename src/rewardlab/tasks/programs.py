"""A small language of programs over integers and lists of them: total, bounded, deterministic, interpreted here.

A program is a pipeline: the value goes through its stages from left to right.

    keep > 3; * 2; sum                      [1, 4, 5] -> 18
    repeat 3 (+ 1; * 2)                     1 -> 22
    f; sort                                 f is a program of the library that `run` is given

    + k   - k   * k   / k   % k   abs       numbers, or every number of a list; / and % round down, and by 0 give 0
    keep > k   keep < k   keep even   keep odd   sort   reverse   unique   take k   drop k   sums        list -> list
    sum   max   min   len   head   last     list -> number; of an empty list 0
    range                                   number -> list 0 .. n-1
    repeat k ( ... )                        the stages in brackets, k times

k is a number without sign; spaces do not matter. Every program ends: with a value, or with a ProgramError where a stage meets
a value of the other kind, a number or list grows too large, or the limit of operations is passed. Python executes nothing
of a program's text.

    parse(text) -> Program      show(program) -> text      run(program, value) -> Ran(value, operations, in_library)
    read_value("[1, 2]")        show_value([1, 2])         sample_program(rng, stages=3)
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from rewardlab.errors import RewardlabError

Value = int | list[int]

LARGEST = 10**6
LONGEST = 100
STAGES = 64
DEPTH = 3
LIMIT = 10_000

_WORDS = re.compile(r"\d+|[a-z]+|[-+*/%<>();]|\S")
_VALUE = re.compile(r"\s*(?:-?\d{1,7}|\[\s*(?:-?\d{1,7}\s*(?:,\s*-?\d{1,7}\s*)*)?\])\s*")


class ProgramError(RewardlabError):
    """The text is not a program, or the program has no value on this input."""


class Stage(NamedTuple):
    """One step of a pipeline: an operation of the language, "repeat" with a body, or the name of a library program."""

    name: str
    number: int | None = None
    body: tuple[Stage, ...] = ()


Program = tuple[Stage, ...]


class Ran(NamedTuple):
    """The value, the operations it took in all, and those of them that ran inside library programs."""

    value: Value
    operations: int
    in_library: int


class Operation(NamedTuple):
    """takes: "number", "list" or "both" (a list then number by number).  counted: whether a number k follows the name.

    touched: how many elements the operation must touch, by length and k; a stage costs one operation more than that.
    """

    takes: str
    counted: bool
    apply: Callable[[list[int], int], Value]
    touched: Callable[[int, int], int] = lambda n, k: n


def _each(f: Callable[[int, int], int]) -> Callable[[list[int], int], Value]:
    return lambda x, k: [f(v, k) for v in x]


def _only(f: Callable[[int, int], bool]) -> Callable[[list[int], int], Value]:
    return lambda x, k: [v for v in x if f(v, k)]


OPERATIONS: dict[str, Operation] = {
    "+": Operation("both", True, _each(lambda v, k: v + k)),
    "-": Operation("both", True, _each(lambda v, k: v - k)),
    "*": Operation("both", True, _each(lambda v, k: v * k)),
    # division by 0 gives 0, so that every program has a value
    "/": Operation("both", True, _each(lambda v, k: v // k if k else 0)),
    "%": Operation("both", True, _each(lambda v, k: v % k if k else 0)),
    "abs": Operation("both", False, _each(lambda v, k: abs(v))),
    "keep >": Operation("list", True, _only(lambda v, k: v > k)),
    "keep <": Operation("list", True, _only(lambda v, k: v < k)),
    "keep even": Operation("list", False, _only(lambda v, k: v % 2 == 0)),
    "keep odd": Operation("list", False, _only(lambda v, k: v % 2 == 1)),
    # n log2 n comparisons
    "sort": Operation("list", False, lambda x, k: sorted(x), lambda n, k: n * n.bit_length()),
    "reverse": Operation("list", False, lambda x, k: x[::-1]),
    "unique": Operation("list", False, lambda x, k: list(dict.fromkeys(x))),
    "take": Operation("list", True, lambda x, k: x[:k], lambda n, k: min(n, k)),
    "drop": Operation("list", True, lambda x, k: x[k:], lambda n, k: max(0, n - k)),
    "sums": Operation("list", False, lambda x, k: list(accumulate(x))),
    "sum": Operation("list", False, lambda x, k: sum(x)),
    "max": Operation("list", False, lambda x, k: max(x, default=0)),
    "min": Operation("list", False, lambda x, k: min(x, default=0)),
    "len": Operation("list", False, lambda x, k: len(x), lambda n, k: 0),
    "head": Operation("list", False, lambda x, k: x[0] if x else 0, lambda n, k: 1),
    "last": Operation("list", False, lambda x, k: x[-1] if x else 0, lambda n, k: 1),
    "range": Operation("number", False, lambda x, k: list(range(min(x[0], LONGEST + 1))), lambda n, k: n),
}
FOLDS = ("sum", "max", "min", "len", "head", "last")
"""The operations that make a number of a list."""


# ---- text ------------------------------------------------------------------------------------------------------------


def parse(text: str, library: Sequence[str] | Mapping[str, Program] = ()) -> Program:
    """The program that a text spells; `library`: names it may call. Raises ProgramError."""
    words = _WORDS.findall(text)
    program, unread = _pipeline(words, frozenset(library), 0)
    if unread:
        raise ProgramError(f"unexpected {' '.join(unread[:4])!r}: stages are separated by ';'")
    if sum(1 for _ in _walk(program)) > STAGES:
        raise ProgramError(f"a program has at most {STAGES} stages")
    return program


def _pipeline(words: list[str], names: frozenset[str], depth: int) -> tuple[Program, list[str]]:
    if depth > DEPTH:
        raise ProgramError(f"brackets may be nested {DEPTH} deep, not deeper")
    stages = []
    while True:
        stage, words = _stage(words, names, depth)
        stages.append(stage)
        if not words or words[0] != ";":
            return tuple(stages), words
        words = words[1:]


def _stage(words: list[str], names: frozenset[str], depth: int) -> tuple[Stage, list[str]]:
    if not words:
        raise ProgramError("a stage is missing at the end")
    first, following = words[0], words[1:]
    if first == "repeat":
        times, following = _number(first, following)
        if following[:1] != ["("]:
            raise ProgramError("repeat k is followed by ( ... )")
        body, following = _pipeline(following[1:], names, depth + 1)
        if following[:1] != [")"]:
            raise ProgramError("a bracket is not closed")
        return Stage("repeat", times, body), following[1:]
    if first == "keep" and following:
        first, following = f"keep {following[0]}", following[1:]
    if first in names and first not in OPERATIONS:
        return Stage(first), following
    if first not in OPERATIONS:
        raise ProgramError(f"{first!r} is not an operation")
    if OPERATIONS[first].counted:
        number, following = _number(first, following)
        return Stage(first, number), following
    return Stage(first), following


def _number(name: str, words: list[str]) -> tuple[int, list[str]]:
    if not words or not words[0].isascii() or not words[0].isdigit() or len(words[0]) > 6:
        raise ProgramError(f"{name!r} is followed by a number of at most 6 digits")
    return int(words[0]), words[1:]


def _walk(program: Program) -> Iterator[Stage]:
    for stage in program:
        yield stage
        yield from _walk(stage.body)


def show(program: Program) -> str:
    """The text of a program, in one spelling; `parse` reads it back."""

    def spell(stage: Stage) -> str:
        inner = f" ({show(stage.body)})" if stage.name == "repeat" else ""
        return stage.name + (f" {stage.number}" if stage.number is not None else "") + inner

    return "; ".join(map(spell, program))


def show_value(value: Value) -> str:
    """A number or a list as `read_value` reads it: 3 or [1, 2]."""
    return str(value)


def read_value(text: str) -> Value:
    """The number or list that a text spells. Raises ProgramError."""
    if not _VALUE.fullmatch(text) or not text.isascii():
        raise ProgramError(f"{text[:40]!r} is neither a number nor a list of numbers")
    numbers = [int(x) for x in re.findall(r"-?\d+", text)]
    return _bounded(numbers if "[" in text else numbers[0])


# ---- running ---------------------------------------------------------------------------------------------------------


def run(program: Program, value: Value, *, library: Mapping[str, Program] | None = None, limit: int = LIMIT) -> Ran:
    """The value that a program computes from `value`, and its cost in operations.

    library: programs that may be called by name; they may not call each other.  limit: operations allowed. Raises ProgramError.
    """
    machine = _Machine(library or {}, limit)
    return Ran(machine.through(program, _bounded(value)), machine.operations, machine.in_library)


class _Machine:
    def __init__(self, library: Mapping[str, Program], limit: int):
        self.library, self.limit = library, limit
        self.operations = self.in_library = 0
        self.calling = False

    def through(self, program: Program, value: Value) -> Value:
        for stage in program:
            value = self.step(stage, value)
        return value

    def step(self, stage: Stage, value: Value) -> Value:
        if stage.name == "repeat":
            for _ in range(stage.number or 0):
                self.pay(1)
                value = self.through(stage.body, value)
            return value
        operation = OPERATIONS.get(stage.name)
        return self.call(stage.name, value) if operation is None else self.apply(stage, operation, value)

    def call(self, name: str, value: Value) -> Value:
        if name not in self.library or self.calling:
            raise ProgramError(f"there is no program {name!r} to call here")
        # library programs may not call each other, so that no recursion is possible
        self.calling = True
        value = self.through(self.library[name], value)
        self.calling = False
        return value

    def apply(self, stage: Stage, operation: Operation, value: Value) -> Value:
        if operation.takes == ("list" if isinstance(value, int) else "number"):
            raise ProgramError(f"{stage.name!r} takes a {operation.takes}, not {show_value(value)[:40]}")
        x, k = [value] if isinstance(value, int) else value, stage.number or 0
        result = operation.apply(x, k)
        size = len(result) if stage.name == "range" and isinstance(result, list) else len(x)
        # paid after the operation, which is safe as every list has at most LONGEST numbers
        self.pay(1 + operation.touched(size, k))
        # number operations work on lists inside: a number goes in as a list of one and comes out as a number
        return _bounded(result[0] if isinstance(value, int) and isinstance(result, list) and operation.takes == "both" else result)

    def pay(self, operations: int) -> None:
        self.operations += operations
        self.in_library += operations if self.calling else 0
        if self.operations > self.limit:
            raise ProgramError(f"more than {self.limit} operations")


def _bounded(value: Value) -> Value:
    numbers = [value] if isinstance(value, int) else value
    # bounds keep every program fast, and values short enough to be written by a policy
    if len(numbers) > LONGEST:
        raise ProgramError(f"a list of more than {LONGEST} numbers")
    if any(abs(v) > LARGEST for v in numbers):
        raise ProgramError(f"a number beyond {LARGEST}")
    return value


# ---- sampling ---------------------------------------------------------------------------------------------------------


def sample_program(rng: random.Random, *, stages: int = 3, largest: int = 9, fold: float = 0.5) -> Program:
    """A random program on a list that meets no value of the wrong kind; numbers k are 1 .. `largest`.

    fold: the chance that its last stage makes a number of the list.
    """
    to_list = [name for name, o in OPERATIONS.items() if o.takes != "number" and name not in FOLDS]
    names = [rng.choice(to_list) for _ in range(stages)]
    if rng.random() < fold:
        names[-1] = rng.choice(FOLDS)
    return tuple(Stage(name, rng.randint(1, largest) if OPERATIONS[name].counted else None) for name in names)
