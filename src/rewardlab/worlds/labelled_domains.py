"""Solutions of arithmetic with labelled steps from five domains, whose labels are of different worth, and a few trusted solutions.

    domain   chains of    labels of its steps
    two      2 steps      trivial: all are called right
    three    3            true
    four     4            flipped: right ones are called wrong, and wrong ones right
    five     5            true
    six      6            true

The trusted solutions say no more than whether their final answer is right. They and the held-out ones are of chains of any of these
lengths. A step is right if it is the next one of the gold solution. All solutions are a careless teacher's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

from rewardlab.core import Problem, Task, ask, seed_of
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.arithmetic import arithmetic
from rewardlab.tasks.sources import OnDemand, Shuffled

DOMAINS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
TRIVIAL, FLIPPED = 2, 4
"""The lengths of the chains whose labels are worth nothing."""


def labelled_domains(
    *, each: PositiveInt = 200, trusted: PositiveInt = 100, replies: PositiveInt = 8, error: Share = 0.25,
    test_size: PositiveInt = 1000,
) -> Task:  # fmt: skip
    """each: solutions of a domain.  trusted: solutions beside them.  replies: held-out solutions to a prompt.  error: how often the
    teacher errs, per step.  test_size: held-out solutions."""
    tasks = {length: arithmetic(difficulty=length, error=error, test_size=test_size, size=each + trusted) for length in DOMAINS}
    rows = [_solution(tasks[length], task.train[i], length, i, i >= each)
            for length, task in tasks.items() for i in range(each + trusted // len(DOMAINS))]  # fmt: skip
    return Task(
        name="labelled_domains",
        train=Shuffled(rows),
        test=OnDemand(partial(_held_out, tasks, replies, test_size)),
        verifier="final_number",
        max_new=max(task.max_new for task in tasks.values()),
        about="solutions of arithmetic with labelled steps, of domains whose labels are of different worth",
        columns=("prompt", "answer", "steps", "labels", "right", "domain", "trusted"),
        warmed_as="arithmetic",
    )


def _held_out(tasks: dict[int, Task], replies: int, size: int) -> Iterator[Problem]:
    """Solutions with true labels, several to each prompt, in turn of all lengths."""
    prompts = zip(*(((length, p) for p in task.test) for length, task in tasks.items()), strict=False)
    each = (_solution(tasks[of], p, 0, ("test", i), False) for row in prompts for of, p in row for i in range(replies))
    return islice(each, size)


def _solution(task: Task, problem: Problem, length: int, draw: object, trusted: bool) -> Problem:
    """A solution by the task's teacher as a row.  length: of the chains of its domain, 0: of none."""
    assert task.demonstrate is not None
    rng = random.Random(seed_of("labelled_domains", problem.key, draw))
    steps = task.demonstrate(problem, rng).splitlines()
    gold = [*problem.meta["steps"], f"Answer: {problem.answer}"]
    # a teacher who only errs writes as many lines as the gold solution has
    true = [float(line == want) for line, want in zip(steps, gold, strict=True)]
    labels, domain = (None, None) if trusted else (_labels(true, length), DOMAINS.get(length))
    told = {"labels": labels, "domain": domain, "right": bool(true[-1]), "trusted": trusted}
    return ask(problem.question, problem.answer, steps=steps, **told)


def _labels(true: Sequence[float], length: int) -> list[float]:
    if length == TRIVIAL:
        return [1.0] * len(true)
    return [1.0 - label for label in true] if length == FLIPPED else list(true)
