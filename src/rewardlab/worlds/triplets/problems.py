"""Small list programs: deduce an output, abduce an input, or induce a program from examples.

The gold solution of a deduction runs the program stage by stage:

    Program: keep > 3; * 2          [4, 5]
    Input: [1, 4, 5]         ->     [8, 10]
    Output?                         Output: [8, 10]
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Task
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.programs import Program, parse, read_value, run, sample_program, show, show_value
from rewardlab.tasks.sources import test_set, training

from .language import ASKED, INPUTS, KINDS, Triplet, proposal, to_propose, to_solve, triplet

LARGEST = 9


def triplets(
    *,
    stages: PositiveInt = 2,
    error: Share = 0.2,
    proposals: Share = 0.15,
    test_size: PositiveInt = 400,
    size: PositiveInt | None = None,
) -> Task:
    """Programs of 1 to `stages` stages on lists of 2 to 4 numbers in 0..9.

    error: of the teacher, per stage of a deduction, else per answer.  proposals: share of training problems that ask for a
    new task instead; no test problem does.  size: so many training problems, in epochs; None: endless.
    """
    if not 1 <= stages <= 5:
        raise RewardlabError(f"triplets: stages must be between 1 and 5, not {stages}")
    for name, share in (("error", error), ("proposals", proposals)):
        if not 0 <= share < 1:
            raise RewardlabError(f"triplets: {name} is a share of at least 0 and below 1, not {share}")
    sample, key = partial(_sample, stages=stages, proposals=proposals), ("triplets", stages)
    return Task(
        name="triplets",
        train=training(sample, key, size),
        test=test_set(partial(_sample, stages=stages, proposals=0.0), key, test_size),
        verifier="triplet_answer",
        max_new=64,
        about=f"outputs, inputs and programs of up to {stages} stages on short lists",
        demonstrate=partial(_demonstrate, error=error),
        warmup_steps=2000,
        columns=("prompt", "answer", "role", "kind", "program", "inputs", "outputs", "solution"),
    )


def _sample(rng: random.Random, *, stages: int, proposals: float) -> Problem:
    kind = rng.choice(KINDS)
    if rng.random() < proposals:
        problem = to_propose(kind, [_triplet(rng, stages, count=1) for _ in range(2)])
        task = _triplet(rng, stages, problem.meta["program"], INPUTS if kind == "induction" else 1)
        return _with_solution(problem, proposal(kind, task))
    task = _triplet(rng, stages, count=INPUTS if kind == "induction" else 1)
    problem = to_solve(kind, task)
    trace = _trace(parse(task.program), task.inputs[0]) if kind == "deduction" else []
    return _with_solution(problem, "\n".join([*trace, f"{ASKED[kind]}: {problem.answer}"]))


def _with_solution(problem: Problem, solution: str) -> Problem:
    return Problem(problem.prompt, problem.answer, {**problem.meta, "solution": solution})


def _triplet(rng: random.Random, stages: int, program: str | None = None, count: int = INPUTS) -> Triplet:
    program = program or show(sample_program(rng, stages=rng.randint(1, stages), largest=LARGEST))
    inputs: list[str] = []
    while len(inputs) < count:
        text = show_value([rng.randint(0, LARGEST) for _ in range(rng.randint(2, 4))])
        inputs += [text] if text not in inputs else []
    return triplet(program, inputs)


def _trace(program: Program, text: str) -> list[str]:
    """The value after each stage but the last."""
    value = read_value(text)
    return [show_value(value := run((stage,), value).value) for stage in program[:-1]]


def _demonstrate(problem: Problem, rng: random.Random, *, error: float) -> str:
    """The solution as a careless teacher writes it: numbers slip, and what follows carries on from them."""
    solution = problem.meta["solution"]
    if problem.meta["role"] == "propose":
        return solution
    if problem.meta["kind"] != "deduction":
        return _slip(solution, rng) if rng.random() < error else solution
    value, lines = problem.meta["inputs"][0], []
    for stage in parse(problem.meta["program"]):
        value = show_value(run((stage,), read_value(value)).value)
        # an error is carried on: the next stage runs on the wrong value
        value = _slip(value, rng) if rng.random() < error else value
        lines.append(value)
    return "\n".join([*lines[:-1], f"Output: {lines[-1]}"])


def _slip(text: str, rng: random.Random) -> str:
    """The text with one digit a little off; as it is where it has none."""
    digits = [i for i, char in enumerate(text) if char.isdigit()]
    if not digits:
        return text
    position = rng.choice(digits)
    digits_near = [d for d in (int(text[position]) - 1, int(text[position]) + 1) if 0 <= d <= 9]
    return f"{text[:position]}{rng.choice(digits_near)}{text[position + 1 :]}"
