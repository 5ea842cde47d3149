"""Which of many similar cases `make test` runs, and which `make test-all` alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def only(chosen: Collection[str], cases: Iterable[str]) -> list[Any]:
    """The cases as parameters, of which all but the chosen ones are slow."""
    return [case if case in chosen else pytest.param(case, marks=pytest.mark.slow) for case in cases]


def one_in(every: int, cases: Iterable[Any]) -> list[Any]:
    """The cases as parameters, of which all but one in `every` are slow: what breaks a shared part breaks several of them."""
    marked = [case if hasattr(case, "marks") else pytest.param(*(case if isinstance(case, tuple) else (case,))) for case in cases]
    return [
        case if i % every == 0 else pytest.param(*case.values, marks=[*case.marks, pytest.mark.slow], id=case.id)
        for i, case in enumerate(marked)
    ]
