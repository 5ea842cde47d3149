"""Code without instructions: predict its output, or fill in the line that gives an output. Errors are outputs too.

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
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from rewardlab.core import Problem, Task, ask, seed_of
from rewardlab.data.tables import Table
from rewardlab.errors import RewardlabError
from rewardlab.sandbox import Limits, ProgramRun, RunOutput, Sandbox
from rewardlab.settings.domain import PositiveFloat, PositiveInt, Share
from rewardlab.tasks.programs import OPERATIONS, ProgramError, parse, read_value, run, sample_program, show, show_value
from rewardlab.tasks.sources import Shuffled, held_out, test_set, training
from rewardlab.verifiers.contract import Pair, Verdict, no_verdict, right, verifier, wrong

# ---- What code prints, and its error, line by line: of the small language, or of Python in the sandbox ---------------

LIST, PYTHON, MASK = "list", "python", "<MASK>"
LANGUAGES = (LIST, PYTHON)
LONGEST = 4000
"""Characters of an output that count."""
EXITED = "the program ended with exit code"
"""How the sandbox says of a program that it ended by itself."""
_FOLDER = re.compile(r'(?<=File ")[^"\n]*[/\\](?=[^/\\"\n]+")')
_MARKS = re.compile(r"^[ ~^]*[~^][ ~^]*\n", re.MULTILINE)
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")


class Outcome(NamedTuple):
    """late: it did not end in time, or was ended from outside."""

    stdout: str
    stderr: str
    late: bool = False


def ran(language: str, cases: Sequence[tuple[str, str]], seconds: float = 5.0) -> list[Outcome | None]:
    """The outcome of each code on its input; None where the sandbox failed. All of Python run together."""
    if language == LIST:
        return [_of_list(code, given) for code, given in cases]
    return list(map(_of_python, Sandbox(Limits(seconds=seconds)).run_programs([ProgramRun(code, x) for code, x in cases])))


def _of_list(code: str, given: str) -> Outcome:
    try:
        return Outcome(show_value(run(parse(code[:LONGEST]), read_value(given)).value), "")
    except ProgramError as e:
        return Outcome("", str(e)[:LONGEST])


def _of_python(output: RunOutput) -> Outcome | None:
    if output.ended is None:
        return None
    error = portable(output.stderr) if not output.ended else ""
    # whatever it wrote before it was stopped, it did not end by itself
    stopped = not output.ended and not output.why.startswith(EXITED)
    return Outcome(output.stdout[:LONGEST], error, late=stopped or not (output.ended or error))


def portable(error: str) -> str:
    """An error as it reads on any machine: without the folders of files, addresses, and marks below lines, which differ by version.

    Of a long one whole lines at the end, which say what went wrong.
    """
    text = _ADDRESS.sub("0x0", _MARKS.sub("", _FOLDER.sub("", error.rstrip() + "\n"))).strip()
    if len(text) <= LONGEST:
        return text
    return text[-LONGEST:].partition("\n")[2] or text[-LONGEST:]


# ---- the task ---------------------------------------------------------------------------------------------------------

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


# ---- The verifier of what a reply says that code prints, or of the line that it puts in ------------------------------

REWARDS_LONGEST = 20_000
"""Characters of a reply that is read."""


@verifier(over="pairs")
def snippet_run(pairs: Sequence[Pair], *, seconds: float = 5.0) -> list[Verdict]:
    """Whether a reply says what code prints and how it fails; or puts in a line with which it prints and fails so.

    answer = {"language": "list" or "python", "stdout", "stderr"}, and of the line {"masked": code with <MASK>, "input"} besides.
    The reply has <stdout>...</stdout> and <stderr>...</stderr>, or <code>...</code>, the last of each; such code is run, Python in
    the sandbox, and must end in time.  parts: `form`, the share of these that are there; `stdout`, 1 where it is right, but for a
    line break at its ends; `stderr`, the lines in common over all lines of both.
    """
    broken = [_unusable(pair.answer) for pair in pairs]
    said = [None if why else _said(pair) for pair, why in zip(pairs, broken, strict=True)]
    outcomes: dict[int, Outcome | None] = {}
    for language in LANGUAGES:
        asked = [i for i, s in enumerate(said) if isinstance(s, str) and pairs[i].answer["language"] == language]
        cases = [(pairs[i].answer["masked"].replace(MASK, str(said[i])), str(pairs[i].answer.get("input") or "")) for i in asked]
        outcomes |= dict(zip(asked, ran(language, cases, seconds) if cases else [], strict=True))
    verdicts = []
    for i, (pair, why, s) in enumerate(zip(pairs, broken, said, strict=True)):
        if why or (isinstance(s, str) and outcomes[i] is None):
            verdicts.append(no_verdict(why or "the sandbox failed"))
        else:
            verdicts.append(_judged(pair.answer, s if isinstance(s, tuple) else outcomes.get(i)))
    return verdicts


def _unusable(answer: Any) -> str:
    known = isinstance(answer, Mapping) and answer.get("language") in LANGUAGES
    if not known or not all(isinstance(answer.get(name), str) for name in ("stdout", "stderr")):
        return 'the gold answer is not {"language": "list" or "python", "stdout": text, "stderr": text}'
    return "the gold answer's masked code has no <MASK>" if MASK not in str(answer.get("masked", MASK)) else ""


def _said(pair: Pair) -> str | tuple[str | None, str | None] | None:
    """The line of code; or stdout and stderr, each None where it is missing; None without any."""
    reply = pair.response[:REWARDS_LONGEST]
    if "masked" in pair.answer:
        return _last(reply, "code")
    out, err = _last(reply, "stdout"), _last(reply, "stderr")
    return None if out is None and err is None else (out, err)


def _last(reply: str, tag: str) -> str | None:
    _, opened, after = reply.rpartition(f"<{tag}>")
    inside, closed, _ = after.partition(f"</{tag}>")
    return inside if opened and closed else None


def _judged(gold: Mapping[str, str], said: tuple | None) -> Verdict:
    if said is None:
        return wrong("nothing of the form", parts={"form": 0.0, "stdout": 0.0, "stderr": 0.0})
    if isinstance(said, Outcome) and said.late:
        # else a line that prints what is wanted, and then hangs, would be right
        return wrong("the code does not end in time", parts={"form": 1.0, "stdout": 0.0, "stderr": 0.0})
    out, err = said[0], said[1]
    form = 1 - [out, err].count(None) / 2
    printed = float(out is not None and _trimmed(out) == _trimmed(gold["stdout"]))
    # where nothing is said of the error, it is not said that there is none
    failed = 0.0 if err is None else _common(portable(gold["stderr"]), portable(err))
    parts = {"form": form, "stdout": printed, "stderr": failed}
    if printed and failed == 1.0:
        return right(str(out)[:80], parts=parts)
    return wrong(f"output {'right' if printed else 'wrong'}, {failed:.0%} of the error", str(out)[:80], parts=parts)


def _trimmed(text: str) -> str:
    return re.sub(r"\A\n|\n\Z", "", text)


def _common(gold: str, said: str) -> float:
    a, b = (Counter(line.strip() for line in text.splitlines() if line.strip()) for text in (gold, said))
    return (a & b).total() / (a | b).total() if a or b else 1.0
