"""Arithmetic chains of very different difficulty with an overthinking teacher: length can be saved without losing accuracy.

    Start with 7. Multiply by 4.        7*4=21, the habit;  7*4=28, put right;  28/4=7, a check that adds nothing;  Answer: 28

Redundant checks can be dropped for nothing. Corrections cannot: who writes the step that a habit gets wrong must put it right, or
write it rightly at once. A chain of one step needs a line, a chain of five needs five.
"""

from __future__ import annotations

from dataclasses import replace

from rewardlab.core import Task
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.arithmetic import arithmetic


def overthinking(
    *, difficulty: int | tuple[int, int] = (1, 5), redundant: Share = 0.4, corrected: Share = 0.5, biased: Share = 0.9,
    error: Share = 0.05, test_size: PositiveInt = 1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """The problems of arithmetic, one to five steps long. All settings are arithmetic's; those of the teacher differ by default."""
    task = arithmetic(
        difficulty=difficulty, redundant=redundant, corrected=corrected, biased=biased, error=error, test_size=test_size, size=size
    )
    low, high = (difficulty, difficulty) if isinstance(difficulty, int) else difficulty
    steps = f"{low}" if low == high else f"{low} to {high}"
    about = f"chains of {steps} arithmetic steps, with checks that add nothing and corrections that are needed"
    return replace(task, name="overthinking", about=about)
