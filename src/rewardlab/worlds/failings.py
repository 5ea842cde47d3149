"""Notes with wishes, and a small critic who names one wish that a note fails.

    We need corn. Wishes: polite, urgent, signed.
    we need corn today                                  ->      polite

A careless critic names a wish that is not fulfilled only now and then, and else any wish of the note. As tasks for a
writer, the rows are those of `wishes`; with `judged`, they are the critic's prompts.
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Score, Task, Trajectory, ask
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.text.filled import filled

from .duels import WISHES, fulfilled, request

ASK = "{prompt}\n{reply}"
"""How the small critic is asked."""
PROGRAM = "def verify_requirement(text):\n    return {word!r} in text.split()"
"""Of an item, which decides it."""


def failings(
    *, wishes: PositiveInt = 4, care: Share = 0.75, looks: Share = 0.3, judged: bool = False, test_size: PositiveInt = 300,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """wishes: of a note.  care: how often the writer fulfils one.  looks: how often the critic looks at the note, and does not name
    any wish.  judged: the rows are the critic's prompts.  size: so many training problems, in epochs; None: endless."""
    count = min(wishes, len(WISHES))
    sample, key = partial(_judged if judged else _sample, count=count), ("failings", count, judged)
    return Task(
        name="failings",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="wish_missed" if judged else "all_fulfilled",
        max_new=6 if judged else 6 * count + 12,
        about="notes in which wishes are to be fulfilled, and a critic who names one that is not",
        demonstrate=partial(_critic, looks=looks) if judged else partial(_writer, care=care),
        columns=("prompt", "wishes", "checklist", "solution", *(("note",) if judged else ())),
        warmup_steps=500,
    )


def _sample(rng: random.Random, *, count: int) -> Problem:
    return request(rng, count, lambda wish: {"item": wish, "program": PROGRAM.format(word=WISHES[wish])})


def _writer(problem: Problem, rng: random.Random, *, care: float) -> str:
    words = [WISHES[w] for w in problem.meta["wishes"] if rng.random() < care]
    return " ".join([problem.meta["solution"].partition(f" {WISHES[problem.meta['wishes'][0]]}")[0], *words])


def _judged(rng: random.Random, *, count: int) -> Problem:
    problem = _sample(rng, count=count)
    while not _missed(problem, note := _writer(problem, rng, care=0.6)):
        pass
    asked = filled(ASK, prompt=problem.question, reply=note)
    return ask(asked, None, **{**problem.meta, "solution": _missed(problem, note)[0]}, note=note)


def _missed(problem: Problem, note: str) -> list[str]:
    return [wish for wish in problem.meta["wishes"] if not fulfilled(note, wish)]


def _critic(problem: Problem, rng: random.Random, *, looks: float) -> str:
    return rng.choice(_missed(problem, problem.meta["note"]) if rng.random() < looks else problem.meta["wishes"])


@reward
def wish_missed(trajectory: Trajectory) -> Score:
    """1 where a critic names a wish that its note does not fulfil."""
    note = trajectory.problem.meta.get("note")
    if note is None:
        return Score(None, why="the problem has no column 'note'")
    return Score(float(trajectory.reply.strip() in _missed(trajectory.problem, note)), why=f"named {trajectory.reply[:40]!r}")
