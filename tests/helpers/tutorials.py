"""Runs a tutorial: writes the files that it shows, runs its commands in order, and compares what they print with what it says.

    ```python title="mine.py"      a file, written before the commands that follow
    ```bash                        commands: rewardlab, python, export; others (pip, make ...) are only read
    ```text                        what the commands before it print: these lines, in this order, with others between them

Numbers may differ, and so may spaces; "..." stands for anything. Scaled down, runs take two steps and policies are untrained.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

READ_ONLY = ("pip", "make", "git", "cd", "torchrun", "open")
"""Commands that a tutorial tells a reader to run, and its test does not."""
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")
SMALL = {
    "train": {"--model": "untrained", "--steps": "2", "--eval-problems": "4", "--max-new": "12"},
    "compare": {"--model": "untrained", "--steps": "2", "--eval-problems": "4", "--seeds": "2", "--max-new": "12"},
    "eval": {"--problems": "4"},
    "data filter": {"--between": "pass_rate=0:"},
    "prm label": {"--problems": "40", "--max-new": "12"},
    "prm train": {"--model": "untrained", "--steps": "2"},
    "search": {"--problems": "4", "--budgets": "200"},
}
"""The flags of commands that are set when a tutorial is scaled down; a model of its own is kept, unless it is `embedded`."""
WHOLE_ONLY = ("reproduce", "league")
"""Commands that cannot be scaled down: a claim fixes its policy and its steps, and a policy that is untrained decides nothing in a
league. Their plans (--dry-run) are made all the same."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the title in its fence, and its text."""

    language: str
    title: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    for language, title, text in FENCE.findall(page):
        yield Block(language, title, text)


def run(page: str, main: Callable[[list[str]], int], whole: bool = False) -> list[str]:
    """Run a page in the current folder; returns what does not hold, in words."""
    printed, wrong = "", []
    for block in blocks(page):
        if block.title:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.text if whole else smaller(block.text))
        elif block.language == "bash":
            printed = "".join(command(words, main, whole) for words in commands(block.text))
        elif block.language == "text":
            wrong += [f"{line!r} is not in:\n{printed}" for line in missing(block.text, printed) if printed]
    return wrong


def commands(text: str) -> Iterator[list[str]]:
    """The commands of a block as words; a backslash joins lines."""
    for line in text.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            yield words


def command(words: list[str], main: Callable[[list[str]], int], whole: bool) -> str:
    """Run one command; returns what it printed."""
    program, arguments = words[0], words[1:]
    if program == "export":
        name, _, value = arguments[0].partition("=")
        # the shell's own variable, which a test that changes the folder does not
        os.environ[name] = os.path.expandvars(value.replace("$PWD", os.getcwd()))
        return ""
    if program in READ_ONLY:
        return ""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        if program == "python":
            with contextlib.suppress(SystemExit), script(arguments):
                runpy.run_path(arguments[0], run_name="__main__")
        elif program == "rewardlab":
            if whole or arguments[0] not in WHOLE_ONLY or "--dry-run" in arguments:
                main(arguments if whole else scaled(arguments))
        else:
            raise AssertionError(f"a tutorial runs {program}, which its test does not know")
    return out.getvalue()


@contextlib.contextmanager
def script(words: list[str]) -> Iterator[None]:
    """The arguments and the import path that `python SCRIPT` has; modules of the tutorial are forgotten afterwards."""
    before = sys.argv, sys.path, set(sys.modules)
    sys.argv, sys.path = words, [os.getcwd(), *sys.path]
    try:
        yield
    finally:
        sys.argv, sys.path, known = before
        for name in set(sys.modules) - known:
            if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == Path.cwd():
                del sys.modules[name]


def scaled(words: list[str]) -> list[str]:
    """The words of a command with the flags of SMALL in place of its own."""
    # of a command that consists of others, each has its own
    flags = dict(SMALL.get(" ".join(words[:2])) or SMALL.get(words[0], {}))
    if "--resume" in words:
        return words
    if "--model" in words and not words[words.index("--model") + 1].startswith("embedded"):
        flags.pop("--model", None)
    kept = [word for before, word in zip([None, *words], words, strict=False) if word not in flags and before not in flags]
    return [*kept, *(word for pair in flags.items() for word in pair)]


def smaller(text: str) -> str:
    """A file of a tutorial with its numbers of steps and problems cut down."""
    text = re.sub(r"\bsteps=\d+", "steps=2", text)
    return re.sub(r"\b(eval_problems|problems)=\d+", r"\1=4", text)


def missing(expected: str, printed: str) -> list[str]:
    """The lines that are not printed, in their order."""
    remaining, absent = [pattern(line) for line in printed.splitlines()], []
    for line in expected.splitlines():
        if not line.strip(" ."):
            continue
        wanted = re.compile(re.escape(pattern(line)).replace(re.escape("..."), ".*"))
        place = next((i for i, found in enumerate(remaining) if wanted.fullmatch(found)), None)
        if place is None:
            absent.append(line)
        else:
            del remaining[: place + 1]
    return absent


def pattern(line: str) -> str:
    """A line without the spaces and the values of numbers."""
    return " ".join(NUMBER.sub("#", line).split())
