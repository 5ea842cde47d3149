"""Dense rewards for reasoning with checkable steps."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate
from typing import Literal

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.text.derivations import check
from rewardlab.text.splitters import cut

_EQUATION = re.compile(r"(-?[0-9]{1,9})([-+*/])(-?[0-9]{1,9})=(-?[0-9]{1,9})")


@reward(steps=True)
def correct_steps(
    trajectory: Trajectory, *, splitter: Literal["newline", "paragraph", "tag", "sentence", "token"] = "newline", wrong: float = 0.0
) -> list[tuple[int, float]] | Score:
    """1 at the end of each right step, `wrong` at the end of the others, for problems whose meta["steps"] are equations "7+5=12".

    A step is right if it is the next gold step (after the last of them, the answer), or a true equation that only repeats
    known numbers. No verdict where the problem has no steps, or where reply and token positions disagree.
    Raises RewardlabError where the rollout marked no steps.
    """
    gold = trajectory.problem.meta.get("steps")
    if not gold:
        return Score(None, why="the problem has no gold steps")
    return _at_ends(trajectory, splitter, wrong, lambda lines: _judge(lines, [*gold, f"Answer: {trajectory.problem.answer}"]))


@reward(steps=True)
def sound_steps(
    trajectory: Trajectory, *, splitter: Literal["newline", "paragraph", "tag", "sentence", "token"] = "newline", wrong: float = 0.0
) -> list[tuple[int, float]] | Score:
    """As `correct_steps`, but a step that follows from a wrong earlier result is right: only the steps with errors of their own are
    wrong.

    The step in place k must do what gold step k does, to the result of the line before it; lines that only check are wrong.
    """
    gold = trajectory.problem.meta.get("steps")
    if not gold:
        return Score(None, why="the problem has no gold steps")
    return _at_ends(trajectory, splitter, wrong, lambda lines: going_on(lines, gold))


@reward(steps=True)
def derived_steps(
    trajectory: Trajectory, *, splitter: Literal["newline", "paragraph", "tag", "sentence", "token"] = "newline",
    wrong: float = 0.0, premises: str = "premises",
) -> list[tuple[int, float]] | Score:  # fmt: skip
    """1 at the end of each line of a derivation that follows from the lines that it cites, `wrong` at the end of the others.

    premises: the column with the formulas that are given, a list. Lines are those of `text/derivations.py`: checked by the table of
    all cases, and by what they cite alone, be it wrong itself. No verdict where there are no premises that can be read.
    """
    given = trajectory.problem.meta.get(premises)
    if not isinstance(given, list | tuple):
        return Score(None, why=f"the problem has no list of formulas in the column {premises!r}")
    try:
        return _at_ends(trajectory, splitter, wrong, lambda lines: [line.right for line in check(lines, given)])
    except ValueError as problem:
        return Score(None, why=f"the premises cannot be read: {problem}")


def _at_ends(
    trajectory: Trajectory, splitter: str, wrong: float, judge: Callable[[list[str]], list[bool]]
) -> list[tuple[int, float]] | Score:
    """1 or `wrong` at the end of each step, by judge(lines)."""
    if not trajectory.steps:
        raise RewardlabError(f"rewards of steps need the positions where steps end: set splitter={splitter!r} in the rollout")
    lines = step_texts(trajectory, splitter)
    if len(lines) != len(trajectory.steps):
        return unequal(lines, trajectory)
    return [(at, 1.0 if right else wrong) for at, right in zip(trajectory.steps, judge(lines), strict=True)]


def step_texts(trajectory: Trajectory, splitter: str) -> list[str]:
    """The text of each step.

    Where every step is a turn of its own (rows of a search tree, solutions from a file), that of the turns; elsewhere the replies
    are cut by `splitter`, and have as many steps as are marked only if the rollout used the same one.
    """
    ends = accumulate(len(turn.ids) for turn in trajectory.turns)
    own = [(turn, end - 1) for turn, end in zip(trajectory.turns, ends, strict=True) if turn.author is not None]
    if tuple(at for _, at in own) == trajectory.steps:
        return [turn.text.strip() for turn, _ in own]
    return [line for reply in trajectory.replies for line in cut(reply, splitter)]


def unequal(lines: list[str], trajectory: Trajectory) -> Score:
    """No verdict on a reply whose text and tokens have different numbers of steps."""
    return Score(
        None, why=f"{len(lines)} steps in the text, {len(trajectory.steps)} in the tokens: do reward and rollout use one splitter?"
    )


def going_on(lines: list[str], gold: list[str]) -> list[bool]:
    """Whether each line does what the gold step in its place does to the result of the line before it, rightly.

    After the last gold step, a line is right if it is the answer as far as it was worked out. Lines that only check are not known.
    """
    value, right = gold[0].replace(" ", ""), []
    value = match[1] if (match := _EQUATION.fullmatch(value)) else ""
    for i, line in enumerate(line.replace(" ", "") for line in lines):
        step = _EQUATION.fullmatch(gold[i].replace(" ", "")) if i < len(gold) else None
        said = _EQUATION.fullmatch(line)
        if step:
            # a true equation of the value so far with the operation and the number that the gold step has
            right.append(said is not None and said.group(1, 2, 3) == (value, step[2], step[3]) and _is_true(said))
        else:
            right.append(line == f"Answer:{value}")
        value = line.rpartition("=")[2]
    return right


@reward(over="groups")
def outcome_at_steps(groups: list[Group], run: Run) -> Scores:
    """Whether the reply is right, at the end of each of its steps: labels for a model that predicts the outcome of a prefix.

    No verdict for a reply without one, nor where the rollout marks no steps.  Cobbe et al. 2021, arXiv:2110.14168
    """
    pairs = [zip(*both, strict=True) for both in zip(groups, run.verdicts(groups), strict=True)]
    return [[_everywhere(t, s) for t, s in row] for row in pairs]


def _everywhere(t: Trajectory, verdict: Score) -> Score:
    if verdict.value is None:
        return Score(None, why=verdict.why)
    return Score(steps=[(at, float(verdict.value >= 1.0)) for at in t.steps])


@reward
def leading_steps(trajectory: Trajectory) -> Score:
    """The share of the gold steps meta["steps"] and the answer that the reply gets right before its first error, from 0 to 1.

    True lines that only repeat known numbers are neither: they are passed over. The whole reply is judged, so that the rollout need
    mark no steps.
    """
    steps = trajectory.problem.meta.get("steps")
    if not steps:
        return Score(None, why="the problem has no gold steps")
    gold = [*steps, f"Answer: {trajectory.problem.answer}"]
    lines = [line.replace(" ", "") for reply in trajectory.replies for line in cut(reply, "newline")]
    right = _judge(lines, gold)
    leading = lines[: right.index(False)] if False in right else lines
    reached = len({line.replace(" ", "") for line in gold} & set(leading))
    return Score(reached / len(set(gold)), why=f"{reached} of {len(gold)} steps before the first wrong one")


def _judge(lines: list[str], gold: list[str]) -> list[bool]:
    """Whether each line is the next gold line, or repeats what is known."""
    remaining = [line.replace(" ", "") for line in gold]
    known, right = _stated(remaining), []
    for line in (line.replace(" ", "") for line in lines):
        advances = bool(remaining) and line == remaining[0]
        right.append(advances or _redundant(line, known))
        if advances and (match := _EQUATION.fullmatch(remaining.pop(0))):
            # the result of a step may be used by later lines
            known.add(int(match[4]))
    return right


def _stated(gold: list[str]) -> set[int]:
    """The numbers that the question states: the left operand of the first step, and the right operand of every step."""
    equations = [match for line in gold if (match := _EQUATION.fullmatch(line))]
    return {int(match[1]) for match in equations[:1]} | {int(match[3]) for match in equations}


def _redundant(line: str, known: set[int]) -> bool:
    """Whether a line is a true equation whose three numbers are known already."""
    match = _EQUATION.fullmatch(line)
    if not match:
        return False
    return {int(match[1]), int(match[3]), int(match[4])} <= known and _is_true(match)


def _is_true(equation: re.Match[str]) -> bool:
    left, sign, right, result = int(equation[1]), equation[2], int(equation[3]), int(equation[4])
    if sign == "/" and right == 0:
        return False
    # Fraction, since 7/2 must not equal 3; `right or 1`, because all four entries are computed whatever the sign
    return result == {"+": left + right, "-": left - right, "*": left * right, "/": Fraction(left, right or 1)}[sign]
