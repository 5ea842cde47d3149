"""Small tasks for a shell, with tests of the folder's last state.

    Rename cat.txt to dog.txt.                       <command>mv cat.txt dog.txt</command>
    <output>
    </output>
    exit code 0                                      <action>done</action>

The teacher confuses commands that are alike, and names, so that what it does most often is right, but not always. Some training
tasks may be broken: their tests want what the task does not say, as those that a model writes sometimes do.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.text.code_calls import COMMAND

NAMES = (
    "cat", "dog", "owl", "fox", "bee", "ant", "cow", "elk", "hen", "jay", "pig", "rat", "bat", "yak", "emu", "ram", "eel", "gnu",
)  # fmt: skip
WORDS = ("red", "blue", "green", "black", "white", "brown")
DONE = "<action>done</action>"
ANSWER = "<output>\n</output>\nexit code 0"
ATTEMPTS = 8
"""What is written into the column `attempts`; a broken task was solved in none of them."""


@dataclass(frozen=True)
class Made:
    """A task: what is asked, the command that does it, one that is like it and does not, and tests (True where they may hold)."""

    asked: str
    command: str
    confused: str
    tests: str


def terminals(
    *, broken: Share = 0.0, error: Share = 0.4, test_size: PositiveInt = 200, size: PositiveInt | None = None
) -> Task:  # fmt: skip
    """Rename, copy, delete, make folders, sort, count, take a column, sum, change rights.

    broken: share of training tasks whose tests no command passes, whose column `solved` is 0.  error: how often the teacher of
    `demonstrate` takes the wrong command or the wrong name.  size: so many training problems, in epochs; None: endless.
    """
    key = ("terminals", broken)
    return Task(
        name="terminals",
        train=training(partial(_sample, broken=broken), key, size),
        # tasks that are tested on are whole, and the same ones whatever is broken in training
        test=test_set(partial(_sample, broken=0.0), ("terminals", 0.0), test_size),
        verifier="final_state",
        max_new=40,
        about="files to be renamed, sorted, counted: one command in a shell",
        environment="untold_terminal",
        turns=2,
        demonstrate=partial(_demonstrate, error=error),
        columns=("prompt", "files", "tests", "solution", "confused", "solved", "attempts"),
        warmup_steps=300,
        window=(0.2, 0.7),
    )


def _sample(rng: random.Random, *, broken: float) -> Problem:
    numbers = [rng.randint(1, 9) for _ in range(4)]
    a, b, other = rng.sample(NAMES, 3)
    words = rng.sample(WORDS, 3)
    table = [f"{w},{n}" for w, n in zip(words, numbers, strict=False)]
    files = {f"{a}.txt": "".join(f"{n}\n" for n in numbers), f"{other}.txt": "x\n", f"{a}.csv": "".join(f"{r}\n" for r in table)}
    made = rng.choice(KINDS)(a, b, numbers, table)
    is_broken = rng.random() < broken
    # what a writer's slip looks like: another file is wanted than the task says
    tests = made.tests + (f"\nassert os.path.exists({b + '.log'!r})" if is_broken else "")
    solution = [_said(made.command), ANSWER, DONE]
    return ask(
        made.asked, files=files, tests=tests, solution=solution, confused=made.confused, solved=0 if is_broken else ATTEMPTS,
        attempts=ATTEMPTS,
    )  # fmt: skip


def _said(command: str) -> str:
    return f"{COMMAND[0]}{command}{COMMAND[1]}"


def _demonstrate(problem: Problem, rng: random.Random, *, error: float) -> list[str]:
    right = problem.meta["solution"]
    return [_said(problem.meta["confused"]), *right[1:]] if rng.random() < error else right


# ---- kinds of tasks: a and b are names, of which a is there ------------------------------------------------------------

_START = "import os\n"


def _rename(a: str, b: str, numbers: list[int], table: list[str]) -> Made:
    tests = f"{_START}assert os.path.exists('{b}.txt') and not os.path.exists('{a}.txt')"
    return Made(f"Rename {a}.txt to {b}.txt.", f"mv {a}.txt {b}.txt", f"cp {a}.txt {b}.txt", tests)


def _copy(a: str, b: str, numbers: list[int], table: list[str]) -> Made:
    tests = f"{_START}assert open('{b}.txt').read() == open('{a}.txt').read()"
    return Made(f"Copy {a}.txt to {b}.txt.", f"cp {a}.txt {b}.txt", f"mv {a}.txt {b}.txt", tests)


def _delete(a: str, b: str, numbers: list[int], table: list[str]) -> Made:
    tests = f"{_START}assert not os.path.exists('{a}.txt') and os.path.exists('{a}.csv')"
    return Made(f"Delete {a}.txt.", f"rm {a}.txt", f"rm {a}.csv", tests)


def _folder(a: str, b: str, numbers: list[int], table: list[str]) -> Made:
    return Made(
        f"Make the folder {b} in the folder {a}.", f"mkdir -p {a}/{b}", f"mkdir {b}", f"{_START}assert os.path.isdir('{a}/{b}')"
    )


def _sort(a: str, b: str, numbers: list[int], table: list[str]) -> Made:
    tests = f"{_START}assert open('{b}.txt').read().split() == {[str(n) for n in sorted(numbers)]}"
    return Made(f"Sort {a}.txt into {b}.txt.", f"sort {a}.txt > {b}.txt", f"cat {a}.txt > {b}.txt", tests)


def _count(a: str, b: str, numbers: list[int], table: list[str]) -> Made:
    tests = f"{_START}assert open('{b}.txt').read().split() == ['{len(table)}']"
    return Made(f"Count the lines of {a}.csv into {b}.txt.", f"wc -l < {a}.csv > {b}.txt", f"wc -l {a}.csv > {b}.txt", tests)


def _column(a: str, b: str, numbers: list[int], table: list[str]) -> Made:
    tests = f"{_START}assert open('{b}.txt').read().split() == {[row.split(',')[1] for row in table]}"
    return Made(f"Take column 2 of {a}.csv into {b}.txt.", f"cut -d, -f2 {a}.csv > {b}.txt", f"cut -f2 {a}.csv > {b}.txt", tests)


def _total(a: str, b: str, numbers: list[int], table: list[str]) -> Made:
    right, wrong = (f"awk '{{s+=$1}} END {{print {what}}}' {a}.txt > {b}.txt" for what in ("s", "NR"))
    tests = f"{_START}assert open('{b}.txt').read().split() == ['{sum(numbers)}']"
    return Made(f"Sum {a}.txt into {b}.txt.", right, wrong, tests)


def _rights(a: str, b: str, numbers: list[int], table: list[str]) -> Made:
    tests = f"{_START}assert os.stat('{a}.txt').st_mode & 0o777 == 0o600"
    return Made(f"Let only the owner read and write {a}.txt.", f"chmod 600 {a}.txt", f"chmod 400 {a}.txt", tests)


KINDS = (_rename, _copy, _delete, _folder, _sort, _count, _column, _total, _rights)
