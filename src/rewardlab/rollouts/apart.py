"""The two texts of a problem, each alone."""

from __future__ import annotations

from rewardlab.core import Group, Problem, Run, Trajectory, rollout
from rewardlab.errors import RewardlabError


@rollout(rows=lambda **_: 2)
def contrastive_texts(problems: list[Problem], run: Run, *, field: str = "solution") -> list[Group]:
    """Two rows for each problem: its question, and the recorded reply in meta[`field`], neither of which has read the other.

    For models that learn which reply belongs to which question.
    """
    lacking = next((p for p in problems if not isinstance(p.meta.get(field), str)), None)
    if lacking is not None:
        raise RewardlabError(f"problem {lacking.question[:60]!r} has no text in the column {field!r} that answers it")
    sides = [run.policy.write([Trajectory(p) for p in problems], texts) for texts in _texts(problems, field)]
    return [list(pair) for pair in zip(*sides, strict=True)]


def _texts(problems: list[Problem], field: str) -> tuple[list[str], list[str]]:
    return [p.question for p in problems], [p.meta[field] for p in problems]
