"""Code execution: the result of a call and what happens on the way, for generated functions or a file of Python code.

    1 def f(x):                    2: y = 7
    2  y = x + 3                   3: z = 8
    3  z = x * 2                   4: yes
    4  if y > 6:                   5: y = 3
    5   y = y - 4                  <answer>
    6  return y                    3
    f(4)?                          y = y - 4
    line 4, time 1: next?          7; int
    line 2, time 1: y?             </answer>

On the left a prompt, on the right a reply. Answers come from the run itself, so that each of them can be checked.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from rewardlab.core import Problem, Task, ask, seed_of
from rewardlab.data.tables import Table
from rewardlab.errors import RewardlabError
from rewardlab.sandbox import Limits, ProgramRun, Sandbox
from rewardlab.settings.domain import PositiveFloat, PositiveInt, Share
from rewardlab.tasks.pairs import Paired, Reply, all_paired, with_pair
from rewardlab.tasks.sources import Shuffled, held_out, test_set, training

from . import tracer
from .language import Block, Function, Set, follow, sample_function
from .questions import Event, Question, answer_of, asked, can_be_told, chosen, questions, stated

COLUMNS = ("prompt", "answer", "code", "call")


def executions(
    *, code: str = "", max_per_kind: PositiveInt = 2, slips: Share = 0.15, test_size: PositiveInt = 1000,
    size: PositiveInt | None = None, seconds: PositiveFloat = 5.0,
) -> Task:  # fmt: skip
    """code: a file of rows with the columns `code` (a function in Python) and `call`, such as "f([1, 2])", each of which is run
    once in the sandbox, for `seconds` at most; without it, functions are made here.  max_per_kind: questions of each kind.  slips:
    how often a value slips in a reply by the reader of `demonstrate`, and in both replies of a pair.  size: so many training
    problems.
    """
    if not 0 <= slips <= 1:
        raise RewardlabError(f"executions: slips is a share between 0 and 1, not {slips}")
    about = "what a call returns, and what happens on the way"
    if code:
        made = from_python(Table.load(code).rows, max_per_kind=max_per_kind, seconds=seconds)
        test = [p for p in made if held_out(p)][:test_size]
        train = [p for p in made if not held_out(p)][: size or len(made)]
        if not test or not train:
            raise RewardlabError(f"executions: {code} has too few rows that can be traced: {len(made)}")
        return Task("executions", Shuffled(train), test, "trace_answers", max_new=512, about=about, columns=COLUMNS)
    sample, key, pair = partial(_sample, max_per_kind=max_per_kind), ("executions", max_per_kind), partial(_pair, slips=slips)
    return Task(
        name="executions",
        train=Paired(training(sample, key, size), pair),
        test=all_paired(test_set(sample, key, test_size), pair),
        verifier="trace_answers",
        max_new=160,
        about=about,
        demonstrate=partial(_demonstrate, slips=slips),
        columns=(*COLUMNS, "function", "x", "asked", "solution", "chosen", "rejected", "qualities"),
    )


def from_python(rows: Sequence[dict[str, Any]], *, max_per_kind: int = 5, seconds: float = 5.0) -> list[Problem]:
    """A problem of each row whose call can be traced in the sandbox, to a value that can be told; the others are left out."""
    known = [r for r in rows if isinstance(r.get("code"), str) and isinstance(r.get("call"), str)]
    if len(known) < len(rows):
        raise RewardlabError("executions: each row needs the columns `code`, a function in Python, and `call`, such as 'f([1, 2])'")
    harness = Path(tracer.__file__).read_text("utf-8")
    programs = [ProgramRun(f"{harness}\nmain({r['code']!r}, {r['call']!r})") for r in known]
    problems = []
    for row, output in zip(known, Sandbox(Limits(seconds=seconds)).run_programs(programs), strict=True):
        if output.ended is None:
            raise RewardlabError(f"executions: {output.why}")
        events = _events(output.stdout) if output.ended else []
        if events and can_be_told(events[-1]["value"]):
            source, call = row["code"].strip("\n"), row["call"]
            rng = random.Random(seed_of("executions", source, call))
            about = chosen(questions(source, events), rng, max_per_kind)
            value = events[-1]["value"]
            problems.append(ask(asked(source, call, about, True), answer_of(value, about), code=source, call=call))
    return problems


def _events(printed: str) -> list[Event]:
    """The trace on the last line of what was printed; none where the code printed something else there."""
    try:
        events = json.loads(printed.rstrip().rpartition("\n")[2])
    except ValueError:
        return []
    return events if isinstance(events, list) and len(events) > 1 and "value" in events[-1] else []


def _sample(rng: random.Random, *, max_per_kind: int) -> Problem:
    function, x = sample_function(rng), rng.randint(0, 9)
    events = follow(function, x)
    about = chosen(questions(function.source, events), rng, max_per_kind)
    call = f"f({x})"
    return ask(
        asked(function.source, call, about, False),
        answer_of(events[-1]["value"], about),
        code=function.source,
        call=call,
        function=[list(map(_plain, function.body)), function.returns],
        x=x,
        asked=[q.text for q in about],
        solution="\n".join([*_told(function, events), stated(events[-1]["value"], about)]),
    )


def _plain(part: Set | Block) -> list[Any]:
    return [part.name, part.number, list(part.inner)] if isinstance(part, Block) else list(part)


def _function(problem: Problem) -> Function:
    body, returns = problem.meta["function"]
    return Function(tuple(Set(*p) if len(p) == 4 else Block(p[0], p[1], Set(*p[2])) for p in body), returns)


def _reply(function: Function, events: Sequence[Event], about: Sequence[str]) -> str:
    """What a reader writes who sees these events: the trace, and the answers that follow from it."""
    by_text = {q.text: q for q in questions(function.source, events)}
    # a line that the reader never came to has no value
    answers = [by_text.get(text, Question("state", text, "-1")) for text in about]
    return "\n".join([*_told(function, events), stated(events[-1]["value"], answers)])


def _told(function: Function, events: Sequence[Event]) -> list[str]:
    """A line for each event but the last: what it changes, or whether its condition holds."""
    lines, told = function.source.split("\n"), []
    for event, after in pairwise(events[:-1]):
        changed = [f"{name} = {v[0]}" for name, v in after["locals"].items() if event["locals"].get(name) != v]
        number = event["line"]
        if lines[number - 1].strip().startswith("if "):
            changed = ["yes" if after["line"] == number + 1 else "no"]
        told.append(f"{number}: {', '.join(changed) or 'same'}")
    return told


def _careless(function: Function, x: int, rng: random.Random, slips: float) -> Sequence[Event]:
    """A run as a careless reader sees it."""
    return follow(function, x, lambda value: value + rng.choice((-1, 1, 2)) if rng.random() < slips else value)


def _demonstrate(problem: Problem, rng: random.Random, *, slips: float) -> str:
    function = _function(problem)
    return _reply(function, _careless(function, problem.meta["x"], rng, slips), problem.meta["asked"])


def _pair(problem: Problem, rng: random.Random, *, slips: float) -> Problem:
    """Two careless replies; chosen: the one more of whose trace is right."""
    function, x = _function(problem), problem.meta["x"]
    wanted = _told(function, follow(function, x))
    runs: dict[float, Sequence[Event]] = {}
    # until two differ; slips of 0 never would
    while len(runs) < 2:
        events = _careless(function, x, rng, max(slips, 0.05))
        told = _told(function, events)
        hits = sum(a == b for a, b in zip(wanted, told, strict=False))
        runs[hits / max(len(wanted), len(told))] = events
    worse, better = (Reply(_reply(function, runs[good], problem.meta["asked"]), good) for good in sorted(runs))
    return with_pair(problem, better, worse)
