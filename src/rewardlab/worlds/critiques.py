"""One-shot critique data: one arithmetic problem, many error-prone solutions of it and their critiques; the test is all other
problems.

The writers follow a wrong rule more or less often, and slip more or less often, so that few of the solutions are alike.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from rewardlab.core import Problem, Task, seed_of
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import NonNegativeInt, PositiveInt, Share
from rewardlab.tasks.arithmetic import arithmetic
from rewardlab.tasks.sources import Shuffled
from rewardlab.worlds.verdicts import worked

# ----------------------------------------------------------------------------------------------------------------------
#
# How a solution is criticised: it is read step by step, a wrong step is put right, and at the end stands the conclusion.
#
#     7+5=13                 7+5=13 no 7+5=12
#     13*3=39        ->      13*3=39
#     Answer: 39             Answer: 39
#                            Conclusion: wrong
#
# A step is right if it follows from the steps before it. The right solution is not added: it is the same text below every
# candidate, which a small policy would learn by heart, and give as the answer to everything.

ASK = "Critique.\n{question}\n{candidate}"
"""What the policy reads. A small one has no need of more words, and its prompts stay short."""


def criticised(steps: Sequence[str], should: Sequence[str], answer: str) -> str:
    """The critique of a solution. steps: the solution's, without the answer; should: what each should have been; answer: its last
    line, which follows from the last step."""
    read = [step if step == want else f"{step} no {want}" for step, want in zip(steps, should, strict=True)]
    conclusion = "right" if list(steps) == list(should) else "wrong"
    return "\n".join([*read, answer, f"Conclusion: {conclusion}"])


# ---- the task ---------------------------------------------------------------------------------------------------------

WRITERS = ((0.05, 0.1), (0.2, 0.1), (0.2, 0.5), (0.4, 0.9), (0.6, 0.5))
"""Of each writer, how often a step is a slip, and how often it follows a wrong rule."""
TRIES = 50


def critiques(
    *, problem: NonNegativeInt = 0, solutions: PositiveInt = 100, difficulty: PositiveInt = 3, error: Share = 0.1,
    biased: Share = 0.75, test_size: PositiveInt = 1000,
) -> Task:  # fmt: skip
    """Rows of the same problem, each with another `candidate` solution and its `critique`.

    problem: its place among the training problems of arithmetic.  solutions: different ones; those of an easy problem may be
    fewer.  error, biased: of the teacher of the small policy, as in arithmetic.
    """
    formula = f"arithmetic:biased={biased},error={error}" + (f",difficulty={difficulty}" if difficulty != 3 else "")
    task = arithmetic(difficulty=difficulty, error=error, biased=biased, test_size=test_size)
    assert task.demonstrate is not None
    rows = _rows(task.train[problem], task.demonstrate, solutions)
    return replace(
        task, name="critiques", train=Shuffled(rows), about=f"{len(rows)} solutions of one problem, with critiques",
        columns=(*task.columns, "candidate", "critique"), warmed_as=formula, max_new=24 * (difficulty + 2),
    )  # fmt: skip


def _rows(problem: Problem, write: Callable[..., str], count: int) -> list[Problem]:
    rng = random.Random(seed_of("critiques", problem.key))
    writers = [partial(write, error=error, biased=biased) for error, biased in WRITERS]
    texts: dict[str, None] = {}
    for i in range(TRIES * count):
        texts.setdefault(writers[i % len(writers)](problem, rng))
        if len(texts) == count:
            break
    if len(texts) < 2:
        raise RewardlabError(f"critiques: the writers all solve {problem.question!r} alike; choose another problem")
    return [_row(problem, text) for text in texts]


def _row(problem: Problem, text: str) -> Problem:
    *steps, answer = text.splitlines()
    critique = criticised(steps, worked(problem.meta["steps"], steps), answer)
    return replace(problem, meta={**problem.meta, "candidate": text, "critique": critique})
