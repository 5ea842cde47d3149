"""Judging steps with tools: solutions of table questions; the judge may look up a cell or add two numbers. Who judges may look a
cell up, or add two numbers.

    name age weight                       look Bo age
    Ada 3 7                               -> 5
    Bo 5 8                                +
    age of Bo plus weight of Ada?         look Ada weight
    1: Bo age 5                           -> 7
    2: Ada weight 3                       -
    3: 5+3=8                              sum 5 3
                                          -> 8
                                          +

A step is right if it reads the cell that it names, or adds rightly what was read. `verdicts` says which are, `steps` what they are.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from rewardlab.core import Message, Problem, Task, Turn, ask, environment
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.text.inspections import REFUSED, call_in

NAMES = ("Ada", "Bo", "Cleo", "Dot", "Eli", "Fay")
COLUMNS = ("age", "weight", "goals")
Table = dict[str, dict[str, int]]


def inspections(
    *, rows: PositiveInt = 3, flaw: Share = 0.35, skips: Share = 0.5, trusts: Share = 0.8, slips: Share = 0.1,
    test_size: PositiveInt = 1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Tables of so many rows, and solutions of two steps that read and one that adds.

    flaw: how often a step is wrong. The teacher of `demonstrate`: skips: judges a step without the tool; trusts: how often it then
    finds it right; slips: gives the other verdict than the tool's answer calls for.
    size: so many training problems, in epochs; None: endless.
    """
    if not 2 <= rows <= len(NAMES):
        raise RewardlabError(f"inspections: rows must be from 2 to {len(NAMES)}, not {rows}")
    sample, key = partial(_sample, rows=rows, flaw=flaw), ("inspections", rows, flaw)
    return Task(
        name="inspections",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="inspected",
        max_new=24,
        about="solutions of questions about a table, to be judged step by step with a tool",
        environment="table_tool",
        turns=4,
        demonstrate=partial(_demonstrate, skips=skips, trusts=trusts, slips=slips),
        columns=("prompt", "answer", "table", "steps", "verdicts", "solution"),
        # a solution has three verdicts, all of which must be right
        window=(0.1, 0.6),
    )


def used(table: Table, call: str) -> str | None:
    """What the tool answers to "look NAME COLUMN" or "sum A B"; None to anything else."""
    match call.split():
        case ["look", *rest]:
            # names may be of several words
            asked = " ".join(rest)
            cells = (row[c] for name, row in table.items() if (c := asked.removeprefix(f"{name} ")) != asked and c in row)
            return next(map(str, cells), None)
        case ["sum", a, b] if a.isdecimal() and b.isdecimal() and len(a) < 10 and len(b) < 10:
            return str(int(a) + int(b))
    return None


def call_for(step: str) -> str:
    """The call that checks a step."""
    if "=" in step:
        return f"sum {' '.join(step.split('=')[0].split('+'))}"
    return f"look {' '.join(step.split()[:2])}"


def claimed(step: str) -> str:
    return step.split("=")[1] if "=" in step else step.split()[2]


def _sample(rng: random.Random, *, rows: int, flaw: float) -> Problem:
    names = rng.sample(NAMES, rows)
    table = {name: {column: rng.randint(1, 9) for column in COLUMNS} for name in names}
    cells = [(rng.choice(names), rng.choice(COLUMNS)) for _ in range(2)]
    wrong = [rng.random() < flaw for _ in range(3)]
    read = [
        rng.choice([x for x in range(1, 10) if x != table[n][c]]) if w else table[n][c]
        for (n, c), w in zip(cells, wrong, strict=False)
    ]
    total = read[0] + read[1] + (rng.choice([-1, 1]) if wrong[2] else 0)
    steps = [*(f"{n} {c} {x}" for (n, c), x in zip(cells, read, strict=True)), f"{read[0]}+{read[1]}={total}"]
    verdicts = [not w for w in wrong]
    lines = [f"name {' '.join(COLUMNS)}", *(f"{n} {' '.join(str(x) for x in row.values())}" for n, row in table.items())]
    asked = " plus ".join(f"{c} of {n}" for n, c in cells) + "?"
    question = "\n".join([*lines, asked, *(f"{i}: {step}" for i, step in enumerate(steps, 1))])
    gold = _talk(table, steps, [True] * 3, verdicts)
    return ask(question, "right" if all(verdicts) else "wrong", table=table, steps=steps, verdicts=verdicts, solution=gold)


def _talk(table: Table, steps: list[str], looked: list[bool], verdicts: list[bool]) -> list[str]:
    """Replies, and the tool's answers between them. A verdict stands in the reply after the answer that it follows from."""
    talk, lines = list[str](), list[str]()
    for step, look, verdict in zip(steps, looked, verdicts, strict=True):
        if look:
            talk += ["\n".join([*lines, call_for(step)]), used(table, call_for(step)) or ""]
            lines = []
        lines.append("+" if verdict else "-")
    return [*talk, "\n".join(lines)]


def _demonstrate(problem: Problem, rng: random.Random, *, skips: float, trusts: float, slips: float) -> list[str]:
    meta = problem.meta
    looked = [rng.random() >= skips for _ in meta["steps"]]
    said = [
        right != (rng.random() < slips) if look else rng.random() < trusts
        for look, right in zip(looked, meta["verdicts"], strict=True)
    ]
    return _talk(meta["table"], meta["steps"], looked, said)


# ---- A tool that looks cells of a table up, and adds -----------------------------------------------------------------

State = dict[str, Any]


def _start(problem: Problem, seed: int, **_: Any) -> tuple[Message | None, State]:
    if not isinstance(problem.meta.get("table"), dict):
        raise RewardlabError(f"table_tool needs the column table, by row and column: problem {problem.question[:60]!r} has none")
    return None, {"table": problem.meta["table"]}


@environment(start=_start)
def table_tool(state: State, turn: Turn) -> tuple[Message | None, State]:
    """Answers the call of a reply, if it is "look ROW COLUMN" or "sum A B"; another one by these names gets `Nothing.`

    It is the last line, or stands in a block of code or a <tool_call>. A reply without either is final.
    """
    call = call_in(turn.text)
    if call.split(" ")[0] not in ("look", "sum"):
        return None, state
    return Message("user", used(state["table"], call) or REFUSED), state
