"""The tasks of `language.py` over Python: a program defines a function f, its inputs are arguments, and it runs in the sandbox.

    deduction    ```python                 abduction    the program, and        induction    the calls and results of half of
                 def f(xs):                             ```output                            the inputs
                     return sum(xs)                     4
                 ```                                    ```
                 ```input
                 [1, 3]
                 ```
    asked for    ```output 4 ```                        ```input [4] ```                     ```python def f(xs): ... ```

Every prompt says what is asked and in which form, so that any model can be asked. Arguments and results are plain data (numbers,
texts, lists, dicts ...): they are read as literals, never evaluated. A program that gives another result the second time it is run,
or imports what makes it do so, is no task.  Zhao et al. 2025, arXiv:2505.03335, whose forms and checks these are.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Any

from rewardlab.core import Problem, ask
from rewardlab.sandbox import Limits, ProgramRun, RunOutput, Sandbox
from rewardlab.tasks.programs import ProgramError
from rewardlab.text.answers import after_thinking
from rewardlab.text.blocks import blocks, last_block

from .triplet import INPUTS, Triplet

PYTHON = "python"
LONGEST = 4000
"""Characters of a program, or of a literal, that are read."""
UNSURE = frozenset(
    (
        "random",
        "secrets",
        "time",
        "datetime",
        "uuid",
        "threading",
        "multiprocessing",
        "subprocess",
        "socket",
        "os",
        "sys",
        "calendar",
    )
)
"""Modules by which a program may give other results another time, or reach what is not its own."""
FIRST = ("def f(a):\n    return a", ("'Hello World'", "[1, 2, 3]", "{'a': 1}", "7"))
_MARK = "=triplet="
_CALLS = "\nimport json as _json\nprint({mark!r} + _json.dumps([repr(f(*x)) for x in {calls}]))"
_TAGS = {"Output": "output", "Input": "input"}
RULES = (
    "A program is Python that defines a function f, with the standard library alone, without input, output, randomness or time. "
    "Arguments and results are plain data: numbers, texts, lists, tuples, dicts, True, False, None."
)
ASKING = {
    "deduction": "What does f return for this input? Think it through step by step, then end with the result as a Python literal:\n"
    "```output\n...\n```",
    "abduction": "For which input does f return this output? Any such input is right. Think, then end with the arguments as Python "
    "literals, with commas between them:\n```input\n...\n```",
    "induction": "Which function f gives these results? It is tried on further inputs. Think, then end with the whole program:\n"
    "```python\ndef f(...):\n    ...\n```",
}
PROPOSING = {
    "deduction": "Make up a new program and an input, for which it takes careful reasoning to tell what f returns.",
    "abduction": "Make up a new program and an input, so that it takes careful reasoning to find an input from what f returns.",
    "induction": f"Make up {INPUTS} different inputs for this program, from whose results one can work out, by careful reasoning, "
    "what the program does.",
}


def program_in(text: str) -> str:
    """A program in its plain form, without comments. Raises ProgramError where it is none, or may not be run."""
    try:
        tree = ast.parse(text[: LONGEST + 1])
        plain = ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise ProgramError(f"no Python: {str(problem)[:80]}") from None
    if len(text) > LONGEST:
        raise ProgramError(f"the program is over {LONGEST} characters long")
    if not any(isinstance(node, ast.FunctionDef) and node.name == "f" for node in tree.body):
        raise ProgramError("the program defines no function f")
    for node in ast.walk(tree):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if bad := [name for name in names if name.partition(".")[0] in UNSURE]:
            raise ProgramError(f"the program imports {bad[0]}")
    return plain


def arguments_in(text: str) -> str:
    """Arguments in their plain form, "1, [2]"; f(1, [2]) may stand around them. Raises ProgramError where they are no literals."""
    inside = text.strip().removeprefix("f(").removesuffix(")") if text.strip().startswith("f(") else text.strip()
    value = _literal(f"({inside},)" if inside and not inside.endswith(",") else f"({inside})")
    if not isinstance(value, tuple):
        raise ProgramError("no arguments")
    return ", ".join(map(repr, value))


def _literal(text: str) -> Any:
    if len(text) > LONGEST:
        raise ProgramError(f"a literal is over {LONGEST} characters long")
    try:
        return ast.literal_eval(text.strip())
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise ProgramError(f"no plain data: {text[:60]!r}") from None


def made(cases: Sequence[tuple[str, Sequence[str]]], seconds: float = 5.0) -> list[Triplet | ProgramError]:
    """The triplet of each program and its inputs, all run together, twice; or why it is none."""
    plain: list[tuple[str, tuple[str, ...]] | ProgramError] = []
    for program, inputs in cases:
        try:
            plain.append((program_in(program), tuple(arguments_in(x) for x in inputs)))
        except ProgramError as problem:
            plain.append(problem)
    runs = [
        ProgramRun((x[0], _CALLS.format(mark=_MARK, calls=f"[{', '.join(map(_call, x[1]))}]")))
        for x in plain
        if isinstance(x, tuple)
    ]
    sandbox = Sandbox(Limits(seconds=seconds))
    outputs = iter(zip(sandbox.run_programs(runs), sandbox.run_programs(runs), strict=True))
    return [_triplet(x, *next(outputs)) if isinstance(x, tuple) else x for x in plain]


def _call(arguments: str) -> str:
    return f"({arguments},)" if arguments else "()"


def _triplet(case: tuple[str, tuple[str, ...]], first: RunOutput, second: RunOutput) -> Triplet | ProgramError:
    try:
        results, again = _results(first, len(case[1])), _results(second, len(case[1]))
    except ProgramError as problem:
        return problem
    return (
        Triplet(case[0], case[1], results) if results == again else ProgramError("the program gives other results the second time")
    )


def _results(output: RunOutput, count: int) -> tuple[str, ...]:
    if not output.ended:
        raise ProgramError(output.why[:200] or "the program did not end")
    try:
        results = json.loads(output.stdout.rpartition(_MARK)[2])
    except ValueError:
        results = None
    if not isinstance(results, list) or len(results) != count or not all(isinstance(x, str) for x in results):
        raise ProgramError("the program gave no results")
    return tuple(repr(_literal(x)) for x in results)


# ---- prompts ---------------------------------------------------------------------------------------------------------


def to_solve(kind: str, task: Triplet) -> Problem:
    """The problem of stating what `kind` asks for; its answer is one of several right ones."""
    program, inputs, outputs = task
    shown = zip(inputs[: INPUTS // 2], outputs[: INPUTS // 2], strict=True)
    parts, answer = {
        "deduction": ([_block("python", program), _block("input", inputs[0])], outputs[0]),
        "abduction": ([_block("python", program), _block("output", outputs[0])], inputs[0]),
        "induction": ([f"f({i}) returns {o}" for i, o in shown], program),
    }[kind]
    question = "\n\n".join([RULES, *parts, ASKING[kind]])
    meta: dict[str, Any] = {"language": PYTHON, "program": program, "inputs": list(inputs), "outputs": list(outputs)}
    return ask(question, answer, role="solve", kind=kind, **meta)


def to_propose(kind: str, past: Sequence[Triplet]) -> Problem:
    """The problem of making up a task unlike past ones; of induction, of making up inputs for the program of the first."""
    program = past[0].program if kind == "induction" else None
    if program:
        parts = [_block("python", program), "Give each input in a block of its own, its arguments with commas between them:"]
        form = "\n".join([_block("input", "...")] * INPUTS)
    else:
        parts = [f"Unlike this one:\n{_block('python', t.program)}\n{_block('input', t.inputs[0])}" for t in past]
        parts += ["Give the program, and its arguments with commas between them:"]
        form = f"{_block('python', 'def f(...):' + chr(10) + '    ...')}\n{_block('input', '...')}"
    question = "\n\n".join([PROPOSING[kind], RULES, *parts, form])
    return ask(question, role="propose", kind=kind, language=PYTHON, program=program, inputs=[], outputs=[])


def _block(tag: str, text: str) -> str:
    return f"```{tag}\n{text}\n```"


# ---- replies ---------------------------------------------------------------------------------------------------------


def read_proposal(problem: Problem, reply: str) -> tuple[str, list[str]]:
    """(program, inputs) that a reply to `to_propose` states. Raises ProgramError where it cannot be read."""
    text, count = after_thinking(reply), INPUTS if problem.meta["kind"] == "induction" else 1
    program = problem.meta["program"] or last_block(text, "python", "py")
    if not program:
        raise ProgramError("no ```python block in the reply")
    inputs = list(dict.fromkeys(arguments_in(x) for x in blocks(text, "input")))
    if len(inputs) < count:
        raise ProgramError(f"{len(inputs)} different ```input blocks where {count} are asked for")
    # the last ones count, as of programs: what stands before is a draft
    return program_in(program), inputs[-count:]


def solved(pairs: Sequence[tuple[Problem, str]]) -> list[bool | ProgramError]:
    """Whether each reply to `to_solve` is right, or why nothing can be read from it; all programs run together."""
    said = [_said(problem, reply) for problem, reply in pairs]
    ran = iter(made([x for x in said if isinstance(x, tuple)]))
    found: list[bool | ProgramError] = []
    for (problem, _), x in zip(pairs, said, strict=True):
        if not isinstance(x, tuple):
            found.append(x)
            continue
        task, meta = next(ran), problem.meta
        wanted = meta["outputs"][:1] if meta["kind"] == "abduction" else meta["outputs"][INPUTS // 2 :]
        found.append(isinstance(task, Triplet) and all(_equal(a, b) for a, b in zip(task.outputs, wanted, strict=True)))
    return found


def _said(problem: Problem, reply: str) -> bool | ProgramError | tuple[str, list[str]]:
    """A verdict, or a program and inputs whose results decide."""
    meta, text = problem.meta, after_thinking(reply)
    try:
        if meta["kind"] == "induction":
            program = last_block(text, "python", "py")
            if program is None:
                raise ProgramError("no ```python block in the reply")
            # only the inputs that the question did not show decide
            return program_in(program), meta["inputs"][INPUTS // 2 :]
        if meta["kind"] == "deduction":
            return _equal(repr(_literal(_stated(text, "Output"))), meta["outputs"][0])
        return meta["program"], [arguments_in(_stated(text, "Input"))]
    except ProgramError as problem_of_reply:
        return problem_of_reply


def _stated(text: str, name: str) -> str:
    """The last block of this name, else the last block without a name, else what follows "NAME:" in its last such line."""
    for tag in (_TAGS[name], ""):
        if (block := last_block(text, tag)) is not None:
            return block
    lines = [line.strip(" *`") for line in text.splitlines()]
    after = [line[len(name) + 1 :].strip(" *`") for line in lines if line.lower().startswith(f"{name.lower()}:")]
    if not after:
        raise ProgramError(f"no ```{_TAGS[name]} block in the reply")
    return after[-1]


def _equal(a: str, b: str) -> bool:
    """Whether two literals are of the same value; True is not 1."""
    x, y = ast.literal_eval(a), ast.literal_eval(b)
    return type(x) is type(y) and x == y
