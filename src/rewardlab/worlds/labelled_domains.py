"""Solutions of arithmetic with labelled steps from five domains, whose labels are of different worth, and a few trusted solutions.

    domain   chains of    labels of its steps
    two      2 steps      trivial: all are called right
    three    3            the share of right ones among continuations of the steps so far by the teacher
    four     4            flipped: one minus that share
    five     5            that share
    six      6            that share

The trusted solutions say no more than whether their final answer is right. They and the held-out ones are of chains of any of these
lengths; labels of the latter say whether a step is the next one of the gold solution. All solutions are a careless teacher's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

from rewardlab.core import Problem, Task, ask, seed_of
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.arithmetic import arithmetic
from rewardlab.tasks.sources import OnDemand, Shuffled

DOMAINS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
Label = Callable[[Sequence[bool], random.Random], list[float]]
"""The labels of a solution's steps, from whether each is right."""


def labelled_domains(
    *, each: PositiveInt = 200, noisy: PositiveInt = 2, trusted: PositiveInt = 100, replies: PositiveInt = 8, error: Share = 0.2,
    continuations: PositiveInt = 8, test_size: PositiveInt = 1000,
) -> Task:  # fmt: skip
    """each: solutions of a domain with true labels; noisy: the other two have so many times as many.  trusted: solutions beside
    them.  replies: held-out solutions to a prompt.  error: how often the teacher errs, per step.  continuations: of which a label
    is the share of right ones.  test_size: held-out solutions."""
    tried = partial(_shares, error=error, n=continuations)
    labels: dict[int, Label] = {2: _all_right, 4: partial(_flipped, tried=tried)}
    counts = {length: each * noisy if length in labels else each for length in DOMAINS}
    beside = trusted // len(DOMAINS)
    tasks = {of: arithmetic(difficulty=of, error=error, test_size=test_size, size=n + beside) for of, n in counts.items()}
    rows = [_solution(task, task.train[i], i, DOMAINS[of], labels.get(of, tried) if i < counts[of] else None)
            for of, task in tasks.items() for i in range(counts[of] + beside)]  # fmt: skip
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
    prompts = zip(*(((task, p) for p in task.test) for task in tasks.values()), strict=False)
    each = (_solution(task, p, i, None, _true) for row in prompts for task, p in row for i in range(replies))
    return islice(each, size)


def _solution(task: Task, problem: Problem, draw: int, domain: str | None, labels: Label | None) -> Problem:
    """A solution by the task's teacher as a row.  labels: of its steps; None: it is a trusted one."""
    assert task.demonstrate is not None
    rng = random.Random(seed_of("labelled_domains", problem.key, draw))
    steps = task.demonstrate(problem, rng).splitlines()
    gold = [*problem.meta["steps"], f"Answer: {problem.answer}"]
    # a teacher who only errs writes as many lines as the gold solution has
    true = [line == want for line, want in zip(steps, gold, strict=True)]
    if labels is None:
        return ask(problem.question, problem.answer, steps=steps, labels=None, domain=None, right=true[-1], trusted=True)
    said = labels(true, rng)
    return ask(problem.question, problem.answer, steps=steps, labels=said, domain=domain, right=true[-1], trusted=False)


def _true(true: Sequence[bool], rng: random.Random) -> list[float]:
    return [float(x) for x in true]


def _all_right(true: Sequence[bool], rng: random.Random) -> list[float]:
    return [1.0] * len(true)


def _shares(true: Sequence[bool], rng: random.Random, *, error: float, n: int) -> list[float]:
    """Of n continuations from each step by a teacher who errs so often, the share that ends right; none does from a wrong one."""
    # before the line that states the answer, which follows
    left = range(len(true) - 2, -1, -1)
    shares = [sum(rng.random() < (1 - error) ** k for _ in range(n)) / n for k in left]
    return [*(share * right for share, right in zip(shares, true, strict=False)), float(true[-1])]


def _flipped(true: Sequence[bool], rng: random.Random, *, tried: Label) -> list[float]:
    return [1.0 - share for share in tried(true, rng)]
