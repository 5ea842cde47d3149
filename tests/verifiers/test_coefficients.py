"""Multiples of a symbol: how they are written, and that each that is wanted must be stated."""

from __future__ import annotations

import time

import pytest

from rewardlab.verifiers.coefficients import coefficients

GOLD = ["-0.5P", "1.5P"]


@pytest.mark.parametrize(
    "boxed",
    [
        "-0.5P, 1.5P", "1.5P; -0.5P", "-P/2, 3P/2", "-1/2P, 3/2 P", r"-\frac{1}{2}P, \frac{3P}{2}", r"-\dfrac{P}{2} and 1.5\cdot P",
        "R_A = -0.5P, R_B = 1.50005P", "$-0.5*P$, $1.5P$", r"−0.5\,\text{P}, 1.5\mathrm{ P }",
    ],
)  # fmt: skip
def test_the_ways_in_which_multiples_are_written(boxed):
    assert coefficients().check(f"So \\boxed{{{boxed}}}.", GOLD).correct is True


@pytest.mark.parametrize(
    "boxed", ["0.5P, 1.5P", "-0.5P", "-0.5P, 1.5P, 1.5P", "-0.5P, 1.5002P", "-0.5Q, 1.5Q", "-0.5, 1.5", "-0.5P 1.5P", "1/0P, P", ""]
)
def test_what_is_wrong(boxed):
    assert coefficients().check(f"\\boxed{{{boxed}}}", GOLD).correct is False


def test_each_box_counts_zero_needs_no_symbol_and_thinking_does_not_count():
    assert coefficients().check("\\boxed{0} at A, \\boxed{2P} at B", ["0P", "2P"]).correct is True
    assert coefficients().check("<think>\\boxed{9P}</think>\\boxed{2P, 0}", ["0P", "2P"]).correct is True
    # wanted twice, stated once
    assert coefficients().check("\\boxed{2P}", ["2P", "2P"]).correct is False
    assert coefficients(extra=True).check("\\boxed{1P, 2P, 3P}", ["1P", "2P"]).correct is True
    assert coefficients(symbol="F").check("\\boxed{F/3}", "F/3").correct is True
    for gold in (None, [], "two", ["2"]):
        assert coefficients().check("\\boxed{2P}", gold).correct is None


def test_hostile_boxes_end_soon():
    begun = time.process_time()
    for text in ("1" * 100_000, "=" * 100_000, "1P," * 30_000, r"\frac{" * 20_000, "{" * 9_000):
        assert coefficients().check(f"\\boxed{{{text}}}", GOLD).correct is False
    assert time.process_time() - begun < 2
