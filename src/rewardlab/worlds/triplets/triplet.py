"""A program, inputs and outputs, as text: what both languages' tasks are made of."""

from __future__ import annotations

from typing import NamedTuple

KINDS = ("deduction", "abduction", "induction")
INPUTS = 4
"""Inputs of an induction task; the outputs of the first half are shown, the rest decide."""


class Triplet(NamedTuple):
    """A program, inputs, and its outputs on them, as text."""

    program: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
