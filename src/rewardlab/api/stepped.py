"""Solutions in steps as rows of tokens, and labelled rows as solutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from rewardlab.core import Problem, Score, Task, Trajectory, Turn
from rewardlab.data.solutions import Solution
from rewardlab.rewards.steps import step_texts
from rewardlab.tasks.sources import Listed


def written(solutions: Sequence[Solution], problems: Sequence[Problem], policy: Any) -> list[Trajectory]:
    """Solutions as replies of a policy in which each step is a turn of its own, and its end is marked.

    Each step is tokenised by itself, with the line break that follows it (an empty line, where a step holds line breaks itself): so
    the boundaries of steps are exact with any tokenizer, and what is gone on from begins a new line. policy: None stands for no
    model: a step is one token, for rewards that read its text alone.
    """
    texts = [_texts(solution) for solution in solutions]
    if policy is None:
        prompts = [Trajectory(problem, (Turn(None, np.zeros(1, np.int64), text=problem.question),)) for problem in problems]
        turns = iter(Turn("policy", np.zeros(1, np.int64), text=text) for of in texts for text in of)
    else:
        prompts = policy.read([Trajectory(problem) for problem in problems], [problem.prompt for problem in problems])
        flat = [(Trajectory(problem), text) for problem, of in zip(problems, texts, strict=True) for text in of]
        turns = iter(t.turns[-1] for t in policy.write([t for t, _ in flat], [text for _, text in flat]))
    return [_joined(prompt, [next(turns) for _ in of], policy is not None) for prompt, of in zip(prompts, texts, strict=True)]


def _texts(solution: Solution) -> list[str]:
    *steps, last = (step.strip() for step in solution.steps)
    gap = "\n\n" if any("\n" in step for step in (*steps, last)) else "\n"
    return [*(f"{step}{gap}" for step in steps), last]


def _joined(prompt: Trajectory, steps: list[Turn], ended: bool) -> Trajectory:
    """The prompt and the steps, of which the last one alone keeps the token that ends a reply."""
    steps = [*(step.cut(len(step.ids) - ended, step.text) for step in steps[:-1]), steps[-1]]
    ends = list(accumulate((len(step.ids) for step in steps), initial=len(prompt)))[1:]
    return Trajectory(prompt.problem, (*prompt.turns, *steps), "end", steps=tuple(end - 1 for end in ends))


def labelled(t: Trajectory, score: Score, right: bool | None, splitter: str, meta: Mapping[str, Any]) -> Solution:
    """A row whose steps were scored; steps at whose end the score pays nothing have no label."""
    paid = {} if score.missing else dict(score.steps)
    texts = step_texts(t, splitter)
    labels = [paid.get(at) for at in t.steps]
    if len(texts) != len(labels):
        # they cannot be told apart by their text; nothing is known of the whole as one step
        texts, labels = [t.reply.strip()], [None]
    # that of an earlier annotator, in a file that is labelled anew
    known = {name: value for name, value in meta.items() if name != "why"}
    if all(label is None for label in labels):
        known["why"] = score.why or "no step was judged"
    answer = None if t.problem.answer is None else str(t.problem.answer)
    return Solution(t.problem.question, tuple(texts), tuple(labels), right, answer, known)


def problems_by_question(task: Task, n: int) -> dict[str, Problem]:
    """The problems of a task by their text: all of a file's, of an endless source the first n; and those held out."""
    train = task.train.problems if isinstance(task.train, Listed) else [task.train[i] for i in range(n)]
    return {problem.question.strip(): problem for problem in [*task.test, *train]}
