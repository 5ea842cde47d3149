"""Tasks made of a program, its inputs and its outputs: the question asks for one of the three and shows the other two.

    deduction    Program: keep > 3; sum       abduction    Program: keep > 3; sum      induction    [1, 4] -> 4
                 Input: [1, 4]                             Output: 4                                [5, 6, 2] -> 11
                 Output?                                   Input?                                   Program?

A proposal of a task is text too; running its program makes the task.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewardlab.core import Problem, ask
from rewardlab.tasks.programs import ProgramError, Value, parse, read_value, run, show, show_value

from .triplet import INPUTS, KINDS, Triplet

__all__ = [
    "ASKED",
    "FIRST",
    "INPUTS",
    "KINDS",
    "Triplet",
    "made",
    "proposal",
    "read_proposal",
    "solved",
    "solves",
    "to_propose",
    "to_solve",
    "triplet",
]

ASKED = {"deduction": "Output", "abduction": "Input", "induction": "Program"}
FIRST = ("+ 0", tuple(f"[{k}, {k + 1}]" for k in range(INPUTS)))
"""The first task: a program that changes nothing."""


def triplet(program: str, inputs: Sequence[str]) -> Triplet:
    """Run a program. Raises ProgramError where it has no value. One run is enough, since the language is deterministic."""
    parsed, values = parse(program), [read_value(text) for text in inputs]
    outputs = tuple(show_value(run(parsed, value).value) for value in values)
    return Triplet(show(parsed), tuple(show_value(value) for value in values), outputs)


def made(cases: Sequence[tuple[str, Sequence[str]]]) -> list[Triplet | ProgramError]:
    """The triplet of each program and its inputs, or why it is none."""
    return [_made(*case) for case in cases]


def _made(program: str, inputs: Sequence[str]) -> Triplet | ProgramError:
    try:
        return triplet(program, inputs)
    except ProgramError as problem:
        return problem


def to_solve(kind: str, task: Triplet) -> Problem:
    """The problem of stating what `kind` asks for; its answer is one of several right ones."""
    program, inputs, outputs = task
    shown = zip(inputs[: INPUTS // 2], outputs[: INPUTS // 2], strict=True)
    shown_parts, answer = {
        "deduction": ([f"Program: {program}", f"Input: {inputs[0]}"], outputs[0]),
        "abduction": ([f"Program: {program}", f"Output: {outputs[0]}"], inputs[0]),
        "induction": ([f"{i} -> {o}" for i, o in shown], program),
    }[kind]
    question = "\n".join([*shown_parts, f"{ASKED[kind]}?"])
    return ask(question, answer, role="solve", kind=kind, program=program, inputs=list(inputs), outputs=list(outputs))


def to_propose(kind: str, past: Sequence[Triplet]) -> Problem:
    """The problem of making up a task unlike past ones; of induction, of making up inputs for the program of the first."""
    program = past[0].program if kind == "induction" else None
    lines = [f"Program: {program}"] if program else [f"unlike: {t.program} of {t.inputs[0]}" for t in past]
    return ask("\n".join([f"Propose {kind}", *lines]), role="propose", kind=kind, program=program, inputs=[], outputs=[])


def proposal(kind: str, task: Triplet) -> str:
    """A task as its proposer writes it."""
    if kind == "induction":
        return "\n".join(f"Input: {text}" for text in task.inputs)
    return f"Program: {task.program}\nInput: {task.inputs[0]}"


def read_proposal(problem: Problem, reply: str) -> tuple[str, list[str]]:
    """(program, inputs) that a reply to `to_propose` states. Raises ProgramError where it cannot be read."""
    programs, inputs = stated(reply, "Program"), stated(reply, "Input")
    count = INPUTS if problem.meta["kind"] == "induction" else 1
    if len(inputs) != count or len(set(inputs)) != count:
        raise ProgramError(f"{len(set(inputs))} different inputs where {count} are asked for")
    if problem.meta["program"] is None and len(programs) != 1:
        raise ProgramError(f"{len(programs)} programs where one is asked for")
    program = problem.meta["program"] or programs[0]
    parse(program)
    for text in inputs:
        read_value(text)
    return program, inputs


def stated(reply: str, name: str) -> list[str]:
    """What follows "NAME: " in the lines of a reply."""
    lines = (line.strip() for line in reply.splitlines())
    return [line.removeprefix(f"{name}: ") for line in lines if line.startswith(f"{name}: ")]


def solved(pairs: Sequence[tuple[Problem, str]]) -> list[bool | ProgramError]:
    """Whether each reply to `to_solve` is right, or why nothing can be read from it."""
    return [_solved(*pair) for pair in pairs]


def _solved(problem: Problem, reply: str) -> bool | ProgramError:
    try:
        return solves(problem, reply)
    except ProgramError as why:
        return why


def solves(problem: Problem, reply: str) -> bool:
    """Whether a reply to `to_solve` is right. Raises ProgramError where it states nothing that can be read."""
    meta = problem.meta
    answers = stated(reply, ASKED[meta["kind"]])
    if not answers:
        raise ProgramError(f"no line {ASKED[meta['kind']]}: ... in the reply")
    if meta["kind"] == "deduction":
        return read_value(answers[-1]) == read_value(meta["outputs"][0])
    if meta["kind"] == "abduction":
        return _gives(meta["program"], read_value(answers[-1]), meta["outputs"][0])
    # only the inputs that the question did not show decide
    program, half = show(parse(answers[-1])), INPUTS // 2
    return all(_gives(program, read_value(i), o) for i, o in zip(meta["inputs"][half:], meta["outputs"][half:], strict=True))


def _gives(program: str, value: Value, output: str) -> bool:
    try:
        return run(parse(program), value).value == read_value(output)
    except ProgramError:
        return False
