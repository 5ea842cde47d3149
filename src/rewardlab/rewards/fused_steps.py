"""Labels of steps by what a tool says of each of them and what became of them, added up over the replies that share them."""

from __future__ import annotations

from collections.abc import Sequence

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.core.domain import NonNegativeFloat, Share
from rewardlab.rewards.monte_carlo import rows_in_steps
from rewardlab.rewards.reward import Reward, reward

Node = bytes
"""A step of a tree: the tokens of a reply up to its end. Replies that begin alike share their first steps."""


@reward(over="groups")
def fused_steps(
    groups: list[Group], run: Run, *, check: Reward, decay: Share = 0.9, tool: NonNegativeFloat = 1.0, cut: bool = True
) -> Scores:
    """1 at the end of each step whose value is above 0, 0 where it is below; no label where it is 0.

    The value of a step: tool v + the sum of decay^k V over the replies of the group that branch off k steps later, at a step that
    no earlier reply has. v is 1 or -1 where the step reward `check` pays the step at least 1/2 or less, and 0 where it says nothing
    of it. V is what became of such a branch: with N steps between the first and the last, which the outcome F (1 or -1, by the
    task's verifier) stands for,

        V = (F + sum over i < N of (N - i) / N tool v_i) / N,  i = 0 the step after the first;    V = F if N = 0

    tool=0: by the outcomes alone.  cut: a wrong reply has no labels from the first right step after a wrong one on.
    A group is a search tree, or replies sampled independently. No verdict on a reply without one.
    Zhang et al. 2025, arXiv:2510.14942 (GroundedPRM)
    """
    rows_in_steps(groups, "fused_steps")
    said, ended = check(groups, run), run.verdicts(groups)
    return [_labelled(*both, decay, tool, cut) for both in zip(groups, said, ended, strict=True)]


def _labelled(
    group: Group, said: Sequence[Score], ended: Sequence[Score], decay: float, tool: float, cut: bool
) -> list[Score]:  # fmt: skip
    nodes = [[t.ids[: at + 1].tobytes() for at in t.steps] for t in group]
    checked = [[tool * v for v in _checked(t, s)] for t, s in zip(group, said, strict=True)]
    outcomes = [None if s.value is None else (1.0 if s.value >= 1.0 else -1.0) for s in ended]
    values: dict[Node, float] = {}
    for row, own in zip(nodes, checked, strict=True):
        values |= dict(zip(row, own, strict=True))
    seen: set[Node] = set()
    for row, own, outcome in zip(nodes, checked, outcomes, strict=True):
        new = next((k for k, node in enumerate(row) if node not in seen), None)
        if outcome is not None and new is not None:
            worth = branch_worth(own[new:], outcome)
            for k in range(new + 1):
                values[row[k]] += decay ** (new - k) * worth
            seen |= set(row)
    known = [[values[node] for node in row] for row in nodes]
    return [_score(t, row, x, cut) for t, row, x in zip(group, known, outcomes, strict=True)]


def branch_worth(checked: Sequence[float], outcome: float) -> float:
    """V of a branch, by what the tool says of its steps and by its outcome."""
    between = checked[1:-1]
    n = len(between)
    return (outcome + sum((n - i) / n * v for i, v in enumerate(between))) / n if n else outcome


def _checked(t: Trajectory, said: Score) -> list[float]:
    known = {} if said.missing else dict(said.steps)
    return [0.0 if at not in known else 1.0 if known[at] >= 0.5 else -1.0 for at in t.steps]


def _score(t: Trajectory, values: list[float], outcome: float | None, cut: bool) -> Score:
    if outcome is None:
        return Score(None, why="the reply has no verdict")
    upto = len(values)
    if cut and outcome < 0:
        wrong = next((k for k, x in enumerate(values) if x <= 0), upto)
        upto = next((k for k in range(wrong + 1, len(values)) if values[k] >= 0), upto)
    labels = [(at, float(x > 0)) for at, x in zip(t.steps[:upto], values, strict=False) if x]
    return Score(steps=labels) if labels else Score(None, why="neither tool nor outcome tells of any step")
