"""Dropped rows with their reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Drop:
    """Why a row is left out.  reason: in a word or two, by which rows are counted.  why: in full.  like: the place of its equal."""

    reason: str
    why: str
    like: str | None = None


Fates = list[Drop | None]
"""For each of several rows, in their order: why it is left out, or None where it stays."""


def first(*judgements: Sequence[Drop | None]) -> Fates:
    """For each row the first of several judgements that leaves it out."""
    return [next((drop for drop in row if drop), None) for row in zip(*judgements, strict=True)]


def staying(rows: Sequence[T], fates: Sequence[Drop | None]) -> list[T]:
    """The rows that are not left out."""
    return [row for row, drop in zip(rows, fates, strict=True) if drop is None]


def leaving(places: Sequence[str], rows: Sequence[T], fates: Sequence[Drop | None]) -> list[tuple[str, T, Drop]]:
    """The rows that are left out, each with its place and why."""
    return [(place, row, drop) for place, row, drop in zip(places, rows, fates, strict=True) if drop]
