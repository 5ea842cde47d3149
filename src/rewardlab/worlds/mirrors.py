"""Solutions of short sums to be judged right or wrong, by a judge who may be shown the gold solution.

    Sum: Start with 7. Add 5. Multiply by 3.       7+5=12 + 12*3=36 - [[no]]
    7+5=12
    12*3=34
    Answer: 34

A judge writes down what each line should be, and a sign, up to the first line that is wrong; then its verdict. One who calculates
miscalculates; with `shown`, the rows are of a critic who reads the gold solution before the candidate, and copies from it, which is
easier. Held-out rows have several candidates, whose answers may be voted on.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import Any

from rewardlab.core import Problem, Task, seed_of
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.arithmetic import arithmetic
from rewardlab.tasks.pairs import Paired, all_paired
from rewardlab.tasks.sources import changed, test_set, training
from rewardlab.text.filled import filled

FORM = "{prompt}\n{reply}"
SHOWN = "{prompt}\nGold:\n{solution}\n{reply}"
"""How a small judge is asked, without and with the gold solution."""
NEAR = (-10, -2, -1, 1, 2, 10)


def mirrors(
    *, difficulty: PositiveInt = 2, candidates: PositiveInt = 6, doubt: Share = 0.15, shown: bool = False, judged: bool = False,
    test_size: PositiveInt = 300, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """difficulty: steps of a sum.  candidates: of a held-out row.  doubt: how often a judge who calculates gets a line wrong; who
    copies from the gold solution errs a fifth as often.  judged: the rows are a judge's prompts; shown: a critic's, with the gold
    solution.  size: so many training problems, in epochs; None: endless."""
    solver = arithmetic(difficulty=difficulty, error=0.15, biased=0.6, test_size=1)
    sample, key = partial(_sample, solver=solver), ("mirrors", difficulty)
    train = Paired(training(sample, key, size), partial(_pair, solver=solver))
    test = all_paired(test_set(sample, key, test_size), partial(_several, solver=solver, count=candidates))
    ask = partial(_asked, form=SHOWN if shown else FORM)
    asks = judged or shown
    return Task(
        name="mirrors",
        train=Paired(train, ask) if asks else train,
        test=changed(test, partial(_held_out, ask=ask)) if asks else test,
        verifier="judged_rightly",
        max_new=13 * (difficulty + 1) + 8,
        about="solutions to be judged right or wrong",
        demonstrate=partial(_demonstrate, doubt=doubt / 5 if shown else doubt) if asks else None,
        columns=("prompt", "answer", "steps", "solution", "chosen", "rejected", *(("shown", "worth") if asks else ())),
        warmup_steps=800,
        warmed_as=None if asks else f"mirrors:judged=true,difficulty={difficulty},doubt={doubt}",
    )


def _sample(rng: random.Random, *, solver: Task) -> Problem:
    # a random position of an endless source is a random problem; under another prompt, since by its own it is never held out
    problem = solver.train[rng.getrandbits(40)]
    return problem.reworded(f"Sum: {problem.question}")


def _solutions(problem: Problem, rng: random.Random, solver: Task, count: int) -> list[str]:
    assert solver.demonstrate is not None
    return [solver.demonstrate(problem, rng) for _ in range(count)]


def right(problem: Problem, solution: str) -> bool:
    return solution.splitlines()[-1] == f"Answer: {problem.answer}"


def _pair(problem: Problem, rng: random.Random, *, solver: Task) -> Problem:
    """A right and a wrong candidate, as often; the gold solution itself where the solver finds no right one."""
    found = _solutions(problem, rng, solver, 12)
    good = [x for x in found if right(problem, x)] or [problem.meta["solution"]]
    bad = [x for x in found if not right(problem, x)] or [_spoiled(problem, rng)]
    return replace(problem, meta={**problem.meta, "chosen": good[0], "rejected": bad[0]})


def _several(problem: Problem, rng: random.Random, *, solver: Task, count: int) -> Problem:
    found = _solutions(problem, rng, solver, count)
    both = _pair(problem, rng, solver=solver)
    return replace(both, meta={**both.meta, "replies": found, "scores": [float(right(problem, x)) for x in found]})


def _spoiled(problem: Problem, rng: random.Random) -> str:
    """The gold solution with another last result."""
    *lines, last, _ = problem.meta["solution"].splitlines()
    wrong = _slip(last, rng)
    return "\n".join([*lines, wrong, f"Answer: {wrong.rpartition('=')[2]}"])


def _slip(line: str, rng: random.Random) -> str:
    left, sign, result = line.rpartition(": " if line.startswith("Answer") else "=")
    return f"{left}{sign}{rng.choice([x for off in NEAR if (x := int(result) + off) >= 0])}"


def _asked(problem: Problem, rng: random.Random, *, form: str) -> Problem:
    good = rng.random() < 0.5
    text = problem.meta["chosen" if good else "rejected"]
    asked = filled(form, prompt=problem.question, solution=problem.meta["solution"], reply=text)
    return replace(problem.reworded(asked), meta={**problem.meta, "shown": [text], "worth": [float(good)]})


def _held_out(problem: Problem, *, ask: Any) -> Problem:
    return ask(problem, random.Random(seed_of("mirrors", problem.key)))


def _demonstrate(problem: Problem, rng: random.Random, *, doubt: float) -> str:
    """What each line should be and a sign, up to the first that is not; and the verdict."""
    (candidate,), said = problem.meta["shown"], []
    for want, line in zip(problem.meta["solution"].splitlines(), candidate.splitlines(), strict=False):
        thought = _slip(want, rng) if rng.random() < doubt else want
        said.append(f"{thought} {'+' if thought == line else '-'}")
        if thought != line:
            return " ".join([*said, "[[no]]"])
    return " ".join([*said, "[[yes]]"])
