"""The overthinking world: checks that can be dropped, corrections that cannot, chains of very different length."""

from __future__ import annotations

import random
from collections import Counter

from rewardlab.core import Task
from rewardlab.worlds.overthinking import overthinking


def replies(task: Task) -> list[tuple[int, bool, int]]:
    """Of the teacher's replies: steps of the problem, whether the reply is right, its lines without the answer."""
    said = [(p, task.demonstrate(p, random.Random(i)).splitlines()) for i, p in enumerate(task.test)]
    return [(len(p.meta["steps"]), lines[-1] == f"Answer: {p.answer}", len(lines) - 1) for p, lines in said]


def right(task: Task) -> float:
    said = replies(task)
    return sum(is_right for _, is_right, _ in said) / len(said)


def test_difficulty_differs_and_right_replies_are_longer_than_they_need_be():
    said = replies(overthinking(test_size=500))
    steps = Counter(n for n, _, _ in said)
    assert sorted(steps) == [1, 2, 3, 4, 5]
    needed, written = zip(*[(n, lines) for n, is_right, lines in said if is_right], strict=True)
    assert sum(written) > 1.5 * sum(needed)
    assert min(written) == 1


def test_checks_can_be_dropped_and_corrections_cannot():
    whole = right(overthinking(test_size=500))
    assert 0.6 < whole < 0.8
    assert abs(right(overthinking(redundant=0.0, test_size=500)) - whole) < 0.07
    assert right(overthinking(corrected=0.0, test_size=500)) < whole - 0.1


def test_settings_are_those_of_arithmetic():
    assert {n for n, _, _ in replies(overthinking(difficulty=2, test_size=50))} == {2}
    assert overthinking(difficulty=2).about.startswith("chains of 2 arithmetic steps")
    assert len(overthinking(size=40).train) == 40
