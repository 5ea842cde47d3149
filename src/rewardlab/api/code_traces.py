"""Solutions in words made into episodes with an interpreter: code that was run takes the place of computations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab import registry
from rewardlab.api.arguments import named_model
from rewardlab.api.inputs import as_in_run, begin_run, policy_of, told_template
from rewardlab.api.pass_rates import VERIFIER, check_out, file_problems, file_task, fitted_problems, in_work
from rewardlab.clients.endpoint import identity
from rewardlab.core import Problem, Recipe, Run, Sampling, Trajectory, Turn
from rewardlab.core.run import stream
from rewardlab.data.drops import Drop, Fates, leaving, staying
from rewardlab.data.tables import Places, Table
from rewardlab.data.values import list_of
from rewardlab.data.work import work_beside
from rewardlab.envs.interpreter import interpreter
from rewardlab.errors import RewardlabError
from rewardlab.models.load import Policy
from rewardlab.rewards.reward import Reward
from rewardlab.runs.named import refuse_missing
from rewardlab.settings.domain import NOT_NEGATIVE, POSITIVE
from rewardlab.text.code_calls import ANSWER, CLOSE, code_of
from rewardlab.text.filled import filled

COLUMN = "solution"
"""What `sft_first` and ReTool's cold start imitate."""
ASK = (
    "Below is a problem with a solution in words. Rewrite the solution so that every computation which is better left to a "
    "program is done by Python code in its place, and everything else stays as it is. Write code as\n<code>\n```python\n...\n```\n"
    "</code>\nand after each block what it prints, between <interpreter> and </interpreter>; then go on from that. Variables stay "
    "from block to block, and there is Python's standard library alone. Where none is worth a program, use none. End with "
    "the answer as the solution has it.\n\n### Problem\n{question}\n\n### Solution\n{solution}"
)
"""What the writer reads, with {question} and {solution}."""
_CALL = re.compile(rf"(.*?{CLOSE})(?:\s*{ANSWER[0]}(.*?){ANSWER[1]})?", re.DOTALL)


def code_traces_file(
    source: Path | str, out: Path | str, dropped: Path | str | None = None, *, model: str | Policy | None = None, tries: int = 4,
    solution_column: str = COLUMN, trace_column: str = "", ask: str = "", seconds: float = 10.0, temperature: float = 1.0,
    batch: int = 32, **settings: Any,
) -> dict[str, Any]:  # fmt: skip
    """Let a model put code into each row's solution, run it, and write the column `solution`: replies and what the interpreter
    answers, in turn, as ReTool's cold start imitates them.

    Of `tries` replies of the writer the first stands that is in the form, whose code runs without an error and prints what the
    writer said it prints, if it said so, and whose last reply has the gold answer. Rows without one are dropped, with the reason
    of the last.  solution_column: the solution in words.  trace_column: traces that are written already; no model is asked.
    ask: what the writer reads, with {question} and {solution}; "": `ASK`.  seconds: for the code of a trace.  batch: rows at a
    time, after which the work is saved in OUT.work.  settings: fields of RunConfig, as of `pass_rate_file`.
    """
    for name, value in (("tries", tries), ("batch", batch)):
        POSITIVE.check(name, value)
    NOT_NEGATIVE.check("temperature", temperature)
    places = Places("code-traces", [source], out, dropped)
    check_out(out, "the traces")
    if not trace_column:
        refuse_missing(model := named_model(model))
    config, _ = as_in_run(model, str(source), settings)
    table = Table.load(source)
    problems, fate = file_problems(table, config)
    column, ask = (trace_column, "{solution}") if trace_column else (solution_column, ask or ASK)
    problems, fate = _asked(problems, fate, table, column, ask)
    judge, about = registry.part("reward", VERIFIER), {"tries": tries, "seconds": seconds, "temperature": temperature}
    if trace_column:
        find: Any = Reader(judge, seconds)
    else:
        policy = policy_of(model, config, file_task(problems))
        problems, fate = fitted_problems(problems, fate, policy, config)
        find = Writer(begin_run(Recipe(), policy, file_task(problems), config), judge, tries, temperature, seconds)
        about |= {"model": identity(config.model or policy.name), "max_new": find.run.max_new, "seed": config.seed}
        about |= told_template(config)
    with work_beside(out, about) as work:
        resumed = len(work.done)
        found = iter(in_work(problems, find, work, batch))
        made = [None if drop else next(found) for drop in fate]
    return _finished(places, table, fate, made, {"model": about.get("model"), "resumed_batches": resumed})


def _finished(places: Places, table: Table, fate: Fates, made: Sequence[Any], facts: dict[str, Any]) -> dict[str, Any]:
    """Write the rows that got a trace. made: of each row what was found, None where it is no problem."""
    fate = [drop or (Drop("no trace", one["why"]) if not one["trace"] else None) for drop, one in zip(fate, made, strict=True)]
    kept = [one["trace"] for one, drop in zip(made, fate, strict=True) if not drop]
    rows = [{**row, COLUMN: trace} for row, trace in zip(staying(table.rows, fate), kept, strict=True)]
    left_out = leaving(table.places, table.rows, fate)
    calls = sum(len(trace) // 2 for trace in kept)
    return places.finish([table], left_out, rows, **facts, traces=len(kept), calls=calls)


def _text_of(problem: Problem, column: str) -> str:
    """What stands in a row's column; "" where that is no text, or is empty."""
    text = problem.meta.get(column)
    if isinstance(text, list):
        text = "\n".join(map(str, list_of(text) or []))
    return text if isinstance(text, str) and text.strip() else ""


def _asked(problems: Sequence[Problem], fate: Fates, table: Table, column: str, ask: str) -> tuple[list[Problem], Fates]:
    """The problems that have a text in the column, as they are asked, and the fates of all rows, where the others are left out."""
    texts = [_text_of(p, column) for p in problems]
    if not any(texts):
        raise RewardlabError(
            f"no row of {table.source} has a text in the column {column!r}; its columns: {', '.join(table.columns)}"
        )
    each, drop = iter(texts), Drop("no text", f"it has no text in the column {column!r}")
    fate = [left_out or (None if next(each) else drop) for left_out in fate]
    asked = [p.reworded(filled(ask, question=p.question, solution=text)) for p, text in zip(problems, texts, strict=True) if text]
    return asked, fate


@dataclass(frozen=True)
class Reader:
    """Reads traces that are written already: the text of the problem is the trace."""

    judge: Reward
    seconds: float

    def __call__(self, problems: Sequence[Problem], key: str) -> list[dict[str, Any]]:
        return [played(p, p.question, self.judge, self.seconds) for p in problems]


@dataclass(frozen=True)
class Writer:
    """Samples traces, and keeps the first of each problem that holds."""

    run: Run
    judge: Reward
    tries: int
    temperature: float
    seconds: float

    def __call__(self, problems: Sequence[Problem], key: str) -> list[dict[str, Any]]:
        prompts = self.run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
        sampling, rng = Sampling(self.run.max_new, self.temperature), stream(self.run.seed, "code traces", key)
        done = self.run.policy.extend([t for t in prompts for _ in range(self.tries)], sampling, rng)
        groups = [done[i : i + self.tries] for i in range(0, len(done), self.tries)]
        return [self._first(p, [t.reply for t in group]) for p, group in zip(problems, groups, strict=True)]

    def _first(self, problem: Problem, replies: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for reply in replies:
            found = played(problem, reply, self.judge, self.seconds)
            if found["trace"]:
                break
        return found


def turns_of(trace: str) -> list[tuple[str, str | None]]:
    """The replies of a written trace, each with what it says that the interpreter answers; None where it says nothing.

    A reply ends at </code>, and the last one is what follows the last answer.
    """
    turns: list[tuple[str, str | None]] = []
    end = 0
    for call in _CALL.finditer(trace):
        turns.append((call[1].strip(), call[2]))
        end = call.end()
    return [*turns, (trace[end:].strip(), None)]


def played(problem: Problem, trace: str, judge: Reward, seconds: float) -> dict[str, Any]:
    """A trace whose code was run: replies and answers in turn, under "trace"; or None, and under "why" what is wrong with it."""
    turns = turns_of(trace)
    if len(turns) < 2:
        return {"trace": None, "why": "it runs no code"}
    env = interpreter(tell="", seconds=seconds)
    _, state = env.start(problem, 0)
    texts: list[str] = []
    for reply, claimed in turns[:-1]:
        if not code_of(reply):
            return {"trace": None, "why": "a block of code is not in the form"}
        before = len(state["blocks"])
        message, state = env(state, Turn("policy", np.zeros(0, np.int64), text=reply))
        said = message.text.removeprefix(ANSWER[0]).removesuffix(ANSWER[1]).strip()
        if len(state["blocks"]) == before or "Traceback (most recent call last)" in said or "SyntaxError" in said:
            return {"trace": None, "why": f"its code fails: {said[-200:]}"}
        if claimed is not None and claimed.split() != said.split():
            return {"trace": None, "why": f"its code prints {said[:80]!r}, and not {claimed[:80]!r}"}
        texts += [reply, message.text]
    last = turns[-1][0]
    verdict = judge([[Trajectory(problem, (Turn("policy", np.zeros(len(last), np.int64), text=last),), "end")]], None)[0][0].total
    if verdict is None or verdict < 1.0:
        return {"trace": None, "why": "its last reply does not have the gold answer"}
    return {"trace": [*texts, last], "why": ""}
