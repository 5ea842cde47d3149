"""Judges a rewritten program: whether it is right, how many operations it takes, and which share of them the library does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rewardlab.tasks.programs import ProgramError, parse, run


class Judged(NamedTuple):
    """right: it has the reference's output on every input.  operations, cost: of the program and of the reference, on all inputs.

    own: share of the operations that run outside the library.  read: whether the text is a program.
    """

    right: bool
    operations: int
    cost: int
    own: float
    read: bool = True
    why: str = ""

    @property
    def speedup(self) -> float:
        """How many times fewer operations than the reference; 0 if it is not right."""
        return self.cost / self.operations if self.right else 0.0

    def __str__(self) -> str:
        if not self.right:
            return f"Wrong: {self.why}."
        return f"Right: {self.operations} of {self.cost} operations, {round(100 * self.own)}% own."


def judge(text: str, meta: Mapping[str, Any]) -> Judged:
    """A rewritten program against the reference of a problem's meta: library, inputs, outputs, cost."""
    try:
        library = {name: parse(body) for name, body in meta["library"].items()}
        program = parse(text.strip(), library)
    except ProgramError as e:
        return Judged(False, 0, meta["cost"], 0.0, False, str(e))
    operations = in_library = 0
    for value, expected in zip(meta["inputs"], meta["outputs"], strict=True):
        try:
            result = run(program, value, library=library)
        except ProgramError as e:
            return Judged(False, 0, meta["cost"], 0.0, why=str(e))
        if result.value != expected:
            return Judged(False, 0, meta["cost"], 0.0, why=f"gives {result.value}, not {expected}"[:60])
        operations, in_library = operations + result.operations, in_library + result.in_library
    # max: a program of no operations at all must not divide by 0
    return Judged(True, operations, meta["cost"], 1 - in_library / max(1, operations))
