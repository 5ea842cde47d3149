"""Runs a tutorial: writes the files that it shows, runs its commands in order, and compares what they print with what it says.

    ```python title="mine.py"      a file, written before the commands that follow
    ```bash                        commands: rewardlab, python, export; others (pip, make ...) are only read
    ```text                        what the commands before it print: these lines, in this order, with others between them

Numbers may differ, and so may spaces; a line "..." stands for any lines. Scaled down, runs take two steps and policies are untrained.
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
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
SMALL = {"--steps": "2", "--problems": "4", "--eval-problems": "4", "--seeds": "2", "--eval-every": "1", "--max-new": "12"}
TRAINS = ("train", "compare")


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
            wrong += [f"{line!r} is not in:\n{printed}" for line in missing(block.text, printed)]
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
        os.environ[name] = value
        return ""
    if program in READ_ONLY:
        return ""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        if program == "python":
            with contextlib.suppress(SystemExit), arguments_of(arguments):
                runpy.run_path(arguments[0], run_name="__main__")
        elif program == "rewardlab":
            main(arguments if whole else scaled(arguments))
        else:
            raise AssertionError(f"a tutorial runs {program}, which its test does not know")
    return out.getvalue()


@contextlib.contextmanager
def arguments_of(words: list[str]) -> Iterator[None]:
    before, sys.argv = sys.argv, words
    try:
        yield
    finally:
        sys.argv = before


def scaled(words: list[str]) -> list[str]:
    """The words of a command with the numbers of SMALL in place of its own; training is small even where it names no numbers."""
    given = [SMALL.get(before, word) for before, word in zip([None, *words], words, strict=False)]
    if words[0] not in TRAINS or "--resume" in words:
        return given
    # held-out problems of a comparison are --problems
    names = ("--steps", "--max-new", "--problems" if words[0] == "compare" else "--eval-problems")
    return [*given, *(word for name in names if name not in words for word in (name, SMALL[name]))]


def smaller(text: str) -> str:
    """A file of a tutorial with its numbers of steps and problems cut down."""
    text = re.sub(r"\bsteps=\d+", "steps=2, max_new=12", text)
    return re.sub(r"\b(eval_problems|problems)=\d+", r"\1=4", text)


def missing(expected: str, printed: str) -> list[str]:
    """The lines that are not printed, in their order."""
    remaining = [pattern(line) for line in printed.splitlines()]
    absent = []
    for line in expected.splitlines():
        if not line.strip() or line.strip() == "...":
            continue
        if pattern(line) in remaining:
            del remaining[: remaining.index(pattern(line)) + 1]
        else:
            absent.append(line)
    return absent


def pattern(line: str) -> str:
    """A line without the spaces and the values of numbers."""
    return " ".join(NUMBER.sub("#", line).split())
