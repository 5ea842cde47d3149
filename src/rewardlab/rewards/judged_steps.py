"""Step correctness by a judge model that reads the problem and the whole solution."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from rewardlab.core import Group, Problem, Run, Sampling, Score, Scores, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.critiques import answers
from rewardlab.rewards.monte_carlo import count_cost
from rewardlab.rewards.reward import reward
from rewardlab.rewards.steps import step_texts, unequal
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.filled import filled

ASK = {
    "first": (
        "Here are a problem and a solution to it, cut into paragraphs that are numbered from 0.\n\nProblem:\n{question}\n\n"
        "Solution:\n{steps}\n\nCheck the paragraphs one after another. Give the number of the first one that is wrong, or -1 if "
        "none is, at the end, as \\boxed{number}."
    ),
    "each": (
        "Here are a problem and a solution to it, cut into paragraphs that are numbered from 0.\n\nProblem:\n{question}\n\n"
        "Solution:\n{steps}\n\nCheck every paragraph by itself. End with one line for each of them: its number, a colon, and "
        "right or wrong, such as\n0: right"
    ),
}
"""What a judge is asked; the first as in ProcessBench: paragraphs in tags, from 0, and the index in a box, -1 for no error."""
_BOXED = re.compile(r"\\boxed\{([^}]{0,20})\}")
_INDEX = re.compile(r"\s{0,4}(-1|[0-9]{1,4})\s{0,4}")
_VERDICT = re.compile(r"^[\s*_>-]{0,8}([0-9]{1,4})[\s*_]{0,4}:[\s*_]{0,4}(right|wrong)\b", re.IGNORECASE | re.MULTILINE)


def first_wrong(text: str, steps: int) -> int | None:
    """The index in the last box of a judge's reply, -1 for no error; None if there is no box, or no such step."""
    boxes = _BOXED.findall(text)
    index = _INDEX.fullmatch(boxes[-1]) if boxes else None
    return int(index[1]) if index and int(index[1]) < steps else None


def verdicts(text: str, steps: int) -> tuple[bool, ...] | None:
    """Whether each step is right, by the lines of a judge's reply; None unless it speaks of every step exactly once."""
    found = _VERDICT.findall(text)
    if sorted(int(number) for number, _ in found) != list(range(steps)):
        return None
    said = {int(number): word.lower() == "right" for number, word in found}
    return tuple(said[k] for k in range(steps))


@reward(over="groups")
def judged_steps(
    groups: list[Group], run: Run, *, model: str = "judge", form: Literal["first", "each"] = "first", ask: str | None = None,
    votes: PositiveInt = 1, splitter: Literal["newline", "paragraph", "tag", "sentence"] = "newline", max_new: PositiveInt = 1024,
    temperature: NonNegativeFloat = 0.0,
) -> Scores:  # fmt: skip
    """1 at the end of each step that a judge finds right, 0 at those it finds wrong.

    model: the judge, a model of the run.  form: "first": it names the first wrong step; those before get 1, that one 0, and those
    after it no label, since nothing is said of them (ProcessBench: Zheng et al. 2024, arXiv:2412.06559). "each": it says of every
    step whether it is right.  ask: what it reads, with {question}, {steps}, and {answer}, the problem's; None: a text of ours.
    votes: replies, of which the most frequent verdict counts, the first of equals.  splitter: that of the rollout.  max_new,
    temperature: of a judge's reply.
    A reply that cannot be read strictly is no verdict, and neither is a question that does not fit the judge's context.
    """
    rows = [t for group in groups for t in group]
    if not all(t.steps for t in rows):
        raise RewardlabError(f"judged_steps needs the positions where steps end: set splitter={splitter!r} in the rollout")
    lines = [step_texts(t, splitter) for t in rows]
    asked = [_question(t.problem, of, ask or ASK[form]) for t, of in zip(rows, lines, strict=True)]
    said, tokens = answers(run, model, asked, votes, Sampling(max_new, temperature))
    count_cost(run, sum(map(len, said)), tokens)
    scores = iter([_score(t, steps, texts, form) for t, steps, texts in zip(rows, lines, said, strict=True)])
    return [[next(scores) for _ in group] for group in groups]


def _question(problem: Problem, steps: Sequence[str], ask: str) -> Problem:
    tagged = "\n\n".join(f"<paragraph_{i}>\n{step}\n</paragraph_{i}>" for i, step in enumerate(steps))
    return problem.reworded(filled(ask, question=problem.question, steps=tagged, answer=str(problem.answer or "")))


def _score(t: Trajectory, lines: list[str], texts: Sequence[str], form: str) -> Score:
    if len(lines) != len(t.steps):
        return unequal(lines, t)
    read = first_wrong if form == "first" else verdicts
    votes = Counter(found for text in texts if (found := read(text, len(lines))) is not None)
    if not votes:
        return Score(None, why="the judge gave no verdict that can be read" if texts else "it does not fit the judge's context")
    (said, _), *_ = votes.most_common(1)
    if isinstance(said, tuple):
        return Score(steps=((at, float(right)) for at, right in zip(t.steps, said, strict=True)))
    known = t.steps if said < 0 else t.steps[: said + 1]
    return Score(steps=((at, float(k != said)) for k, at in enumerate(known)))
