"""The memory tables of docs/SCALE.md are what the code says."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
def test_the_tables_are_those_of_the_sums(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    scale = importlib.import_module("_scale")
    _, _, shown = scale.PAGE.read_text("utf-8").partition(scale.MARK)
    assert shown == scale.tables()
