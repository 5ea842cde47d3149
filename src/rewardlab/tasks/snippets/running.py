"""What code prints, and its error, line by line: of the small language, or of Python in the sandbox."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rewardlab.sandbox import Limits, ProgramRun, RunOutput, Sandbox
from rewardlab.tasks.programs import ProgramError, parse, read_value, run, show_value

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
