"""Thinking paid by the answers that are given to it at several budgets."""

from __future__ import annotations

from rewardlab.core import Group, Run, Score, Scores
from rewardlab.rewards.reward import Reward, reward


@reward(over="groups", steps=True)
def by_its_answers(groups: list[Group], run: Run, *, of: Reward) -> Scores:
    """What rows tagged "answer" earn by `of`; and for rows tagged "thinking", at the end of each budget, the mean of its answers.

    A group of thinking is followed by the groups of its answers, row by row and budget by budget, as `under_budgets` has them. No
    verdict on thinking where the answers of one of its budgets have none. All other rows are paid by `of`.
    """
    paid = [g for g, group in enumerate(groups) if group[0].tag != "thinking"]
    scores: dict[int, list[Score]] = dict(zip(paid, of([groups[g] for g in paid], run), strict=True)) if paid else {}
    means: dict[int, float | None] = {g: _mean(row) for g, row in scores.items()}
    for g in sorted(set(range(len(groups))) - set(paid)):
        following = iter(range(g + 1, g + 1 + sum(len(t.steps) for t in groups[g])))
        scores[g] = [_thinking([(at, means[next(following)]) for at in t.steps]) for t in groups[g]]
    return [scores[g] for g in range(len(groups))]


def _mean(row: list[Score]) -> float | None:
    known = [s.total for s in row if s.total is not None]
    return sum(known) / len(known) if known else None


def _thinking(steps: list[tuple[int, float | None]]) -> Score:
    known = [(at, paid) for at, paid in steps if paid is not None]
    return Score(None, why="answers without a verdict") if len(known) < len(steps) or not steps else Score(steps=known)
