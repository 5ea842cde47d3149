"""Code without instructions, as tasks: what does it print, and which line gives what it printed? Errors are outputs too.

    forward     Code:               <stdout>10</stdout>        backward    Code:                    <code>sum</code>
                keep > 3; sum       <stderr></stderr>                      keep > 3; <MASK>
                Input: [4, 6]                                              Input: [4, 6]
                                                                           <stdout>10</stdout>
                                                                           <stderr></stderr>

Code is made here in the small language of `tasks.programs`, or comes from a file, in Python. As in what is collected from
everywhere, most pieces are copies of a few with other numbers.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from rewardlab.core import Problem, Task, ask, seed_of
from rewardlab.core.domain import PositiveFloat, PositiveInt, Share
from rewardlab.data.tables import Table
from rewardlab.errors import RewardlabError
from rewardlab.tasks.programs import OPERATIONS, sample_program, show
from rewardlab.tasks.sources import Shuffled, held_out, test_set, training

from .running import LIST, MASK, PYTHON, Outcome, ran

FAMILIES = 6
"""Pieces of code of which there are many copies."""
COLUMNS = ("prompt", "answer", "kind", "code", "solution")
_NUMBER = re.compile(r"(?<![\w.\[])\d+(?![\w.\]])")
_SIGN = re.compile(r"(?<=\s)[-+*](?=\s)")
_SHOWN = "<stdout>{}</stdout>\n<stderr>{}</stderr>"
ASKING = {
    "forward": "What does it print, and what is its error, with the traceback? There its file is <program>, and marks below lines "
    "are left out. Reply: <stdout>...</stdout><stderr>...</stderr>",
    "backward": f"Which line stands at {MASK}? Reply: <code>...</code>",
}


def snippets(
    *, code: str = "", forward: Share = 0.75, copies: Share = 0.8, augment: Share = 0.1, error: Share = 0.2,
    test_size: PositiveInt = 1000, size: PositiveInt | None = None, seconds: PositiveFloat = 5.0,
) -> Task:  # fmt: skip
    """code: a file of Python code with the columns `code`, and `input` if it reads any, each run once in the sandbox for `seconds`
    at most; without it, code is made here.  forward: the share of tasks that ask for the output.  copies: share of copies of a few.
    augment: how often a number or a sign is changed, which makes new code, and errors.  error: of the teacher of `demonstrate`.
    size: so many training problems, in epochs.
    """
    for name, share in (("forward", forward), ("copies", copies), ("augment", augment), ("error", error)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"snippets: {name} is a share between 0 and 1, not {share}")
    about = "what code prints, and which code printed it"
    if code:
        made = from_python(Table.load(code).rows, forward=forward, augment=augment, seconds=seconds)
        test = [p for p in made if held_out(p)][:test_size]
        train = [p for p in made if not held_out(p)][: size or len(made)]
        if not test or not train:
            raise RewardlabError(f"snippets: {code} has too few rows that can be run: {len(made)}")
        return Task("snippets", Shuffled(train), test, "snippet_run", max_new=512, about=about, columns=COLUMNS)
    sample, key = partial(_sample, forward=forward, copies=copies, augment=augment), ("snippets", forward, copies, augment)
    return Task(
        name="snippets",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="snippet_run",
        max_new=48,
        about=about,
        demonstrate=partial(_demonstrate, error=error),
        columns=COLUMNS,
    )


def from_python(
    rows: Sequence[dict[str, Any]], *, forward: float = 0.75, augment: float = 0.1, seconds: float = 5.0
) -> list[Problem]:  # fmt: skip
    """A problem of each row of Python code, after it was changed and run, twice: those that do not end in time, or print something
    else the second time, are left out.
    """
    if not all(isinstance(row.get("code"), str) and row["code"].strip() for row in rows):
        raise RewardlabError("snippets: each row needs the column `code`, Python that prints something")
    streams = [random.Random(seed_of("snippets", row["code"], str(row.get("input") or ""))) for row in rows]
    codes = [augmented(row["code"].strip("\n"), rng, augment) for row, rng in zip(rows, streams, strict=True)]
    inputs = [str(row.get("input") or "") for row in rows]
    cases = list(zip(codes, inputs, strict=True))
    first, second = (ran(PYTHON, cases, seconds) for _ in range(2))
    outcomes = [
        out if out == again and out is not None and not out.late else None for out, again in zip(first, second, strict=True)
    ]
    done = zip(codes, inputs, outcomes, streams, strict=True)
    return [_problem(PYTHON, code, x, out, rng, forward, True) for code, x, out, rng in done if out is not None]


def augmented(code: str, rng: random.Random, share: float) -> str:
    """The code with some numbers (none within brackets), and some of + - *, changed."""

    def other(found: re.Match[str], choices: str) -> str:
        return rng.choice([c for c in choices if c != found.group()]) if rng.random() < share else found.group()

    return _SIGN.sub(partial(other, choices="+-*"), _NUMBER.sub(partial(other, choices="123456789"), code))


def _sample(rng: random.Random, *, forward: float, copies: float, augment: float) -> Problem:
    if rng.random() < copies:
        # a few programs, always the same but for their numbers
        program = sample_program(random.Random(rng.randrange(FAMILIES)), stages=3, fold=0.7)
        code = re.sub(r"\d+", lambda _: str(rng.randint(1, 9)), show(program))
    else:
        code = show(sample_program(rng, stages=rng.randint(2, 3), fold=0.7))
    if rng.random() < augment:
        code = _misfit(code, rng)
    x = str([rng.randint(0, 9) for _ in range(rng.randint(2, 4))])
    (outcome,) = ran(LIST, [(code, x)])
    assert outcome is not None
    return _problem(LIST, code, x, outcome, rng, forward, False)


def _misfit(code: str, rng: random.Random) -> str:
    """The code with a stage more, which may meet a value of the wrong kind."""
    stages = code.split("; ")
    stages.insert(rng.randint(0, len(stages)), rng.choice([name for name, o in OPERATIONS.items() if not o.counted]))
    return "; ".join(stages)


def _problem(
    language: str, code: str, given: str, out: Outcome, rng: random.Random, forward: float, instructed: bool
) -> Problem:  # fmt: skip
    kind, shown = "forward" if rng.random() < forward else "backward", _SHOWN.format(out.stdout, out.stderr)
    answer: dict[str, Any] = {"language": language, "stdout": out.stdout, "stderr": out.stderr}
    text, solution = code, shown
    if kind == "backward":
        text, solution = _masked(language, code, rng)
        answer |= {"masked": text, "input": given}
        solution = f"<code>{solution}</code>"
    parts = ["Code:", text, *([f"Input: {given}"] if given else []), *([shown] if kind == "backward" else [])]
    question = "\n".join([*parts, *([ASKING[kind]] if instructed else [])])
    return ask(question, answer, kind=kind, code=code, solution=solution)


def _masked(language: str, code: str, rng: random.Random) -> tuple[str, str]:
    """The code with a mask for one of its lines or stages, and what stood there."""
    between = "; " if language == LIST else "\n"
    lines = code.split(between)
    i = rng.choice([i for i, line in enumerate(lines) if line.strip()])
    line = lines[i].strip()
    lines[i] = lines[i].replace(line, MASK)
    return between.join(lines), line


def _demonstrate(problem: Problem, rng: random.Random, *, error: float) -> str:
    """The solution, with a digit, or a stage, that is not the right one."""
    solution = problem.meta["solution"]
    if rng.random() >= error:
        return solution
    digits = [i for i, c in enumerate(solution) if c.isdigit()]
    if not digits:
        return f"<code>{rng.choice(('sum', 'max', 'sort', 'len'))}</code>" if problem.meta["kind"] == "backward" else solution
    i = rng.choice(digits)
    return f"{solution[:i]}{(int(solution[i]) + 1) % 10}{solution[i + 1 :]}"
