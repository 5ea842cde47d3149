"""Tasks for a shell, written by a model, validated by running them, and attempted by a strong model (Endless Terminals)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.api.arguments import named_model
from rewardlab.api.inputs import as_in_run, begin_run, policy_of, told_template
from rewardlab.api.pass_rates import check_out, file_problems, file_task, in_work
from rewardlab.clients.endpoint import identity
from rewardlab.core import Message, Problem, Recipe, Run, Sampling, Trajectory
from rewardlab.core.run import stream
from rewardlab.data.drops import Drop, Fates, leaving, staying
from rewardlab.data.tables import Places, Table
from rewardlab.data.values import map_of
from rewardlab.data.work import work_beside
from rewardlab.envs.terminal import session_of, terminal, tests_of
from rewardlab.errors import RewardlabError
from rewardlab.models.load import Policy
from rewardlab.rollouts.interactive import interactive
from rewardlab.runs.named import refuse_missing
from rewardlab.sandbox.shell import run as run_command
from rewardlab.settings.domain import NOT_NEGATIVE, POSITIVE
from rewardlab.text.blocks import blocks
from rewardlab.text.filled import filled
from rewardlab.util.keeping import keeping

PLACE = """\
The task is done in a Linux shell, as a user without rights, in one folder with its files. There are bash, the usual commands and
Python's standard library; there is no network, no service, and nothing outside of the folder."""
ASK_TASK = """\
Write a task for an agent that works in a terminal. Topic: {topic}

{place}

Write the task as a person would who needs it done: where things are is said exactly, how to do it is not said, and nothing is said
of tests. Then write the truth, which the agent will not see: which files are there at the start and what they hold, exactly what
must hold at the end, and what must not have changed. The task alone must be enough to reach it.

<task>...</task>
<truth>...</truth>"""
ASK_START = """\
Here are a task for an agent in a terminal, and its truth.

Task: {task}

Truth: {truth}

{place}

Write the files at the start as a block of JSON, names (relative to the folder) with their texts:
```json
{"notes/a.txt": "one\\n"}
```
Then, if files alone do not do, commands that prepare the folder, in a block of bash. Then a Python program with asserts that hold
at the start, in a block of Python: that all is there which the task speaks of. Do not test for what the agent is to make."""
ASK_END = """\
Here are a task for an agent in a terminal, its truth, and a program that tests the start.

Task: {task}

Truth: {truth}

```python
{initial}
```

{place}

Write a Python program with asserts that hold if and only if the task was done, in a block of Python. It is run in the folder, with
Python's standard library. Test what the task says and not how it was done, and nothing that the task leaves open, such as white
space; say in each assert what is wrong. Run what the agent wrote as a command; do not import it."""
"""What the writer reads, stage by stage."""
COLUMNS = ("files", "setup", "initial_tests", "tests", "truth", "solved", "attempts")
_PART = r"<{0}>\s*(.*?)\s*</{0}>"


def terminal_tasks_file(
    source: Path | str, out: Path | str, dropped: Path | str | None = None, *, model: str | Policy | None = None, solver: str = "",
    attempts: int = 16, turns: int = 16, temperature: float = 1.0, batch: int = 8, **settings: Any,
) -> dict[str, Any]:  # fmt: skip
    """Let a model write a task for each row's topic, which is its prompt; keep those that hold when they are run, and that a strong
    model solves in one of so many attempts. A row that has `tests` already is a task, and is only validated and attempted.

    What stays has the columns prompt, files, setup, initial_tests, tests, truth, solved and attempts; what does not is dropped with
    the reason (`fault_of`, or that no attempt solved it).
    solver: the strong model; "": the writer.  attempts: 0 leaves them out.  turns: the most commands of one.  batch: rows at a
    time, after which the work is saved in OUT.work.  settings: fields of RunConfig, as of `pass_rate_file`.
    """
    POSITIVE.check("turns", turns)
    POSITIVE.check("batch", batch)
    NOT_NEGATIVE.check("attempts", attempts)
    places = Places("terminals", [source], out, dropped)
    check_out(out, "the tasks")
    refuse_missing(model := named_model(model))
    config, _ = as_in_run(model, str(source), settings)
    table = Table.load(source)
    problems, fate = file_problems(table, config)
    task = file_task(problems)
    policy = policy_of(model, config, task)
    strong = policy_of(None, replace(config, model=solver), task) if solver else policy
    run, attempting = (begin_run(Recipe(), one, task, config) for one in (policy, strong))
    make = Maker(run, attempting, attempts, turns, temperature)
    about = {"model": identity(config.model or policy.name), "solver": identity(solver), **make.settings, **told_template(config)}
    with work_beside(out, about) as work:
        resumed = len(work.done)
        found = iter(in_work(problems, make, work, batch))
        made = [None if drop else next(found) for drop in fate]
    return _finished(places, table, fate, made, {"model": about["model"], "solver": solver or None, "resumed_batches": resumed})


def _finished(places: Places, table: Table, fate: Fates, made: Sequence[Any], facts: dict[str, Any]) -> dict[str, Any]:
    """Write the tasks that stay. made: of each row what was found, None where it is no problem."""
    fate = [drop or (Drop(*one["fault"]) if one["fault"] else None) for drop, one in zip(fate, made, strict=True)]
    kept = [one["task"] for one, drop in zip(made, fate, strict=True) if not drop]
    rows = [{**row, **task} for row, task in zip(staying(table.rows, fate), kept, strict=True)]
    # a task that does not stay is shown as far as it was written
    whole = [{**row, **(one["task"] if one else {})} for row, one in zip(table.rows, made, strict=True)]
    left_out = leaving(table.places, whole, fate)
    rates = [task["solved"] / task["attempts"] for task in kept if task.get("attempts")]
    return places.finish([table], left_out, rows, **facts, tasks=len(kept), solved=sum(rates) / len(rates) if rates else None)


def fault_of(task: Mapping[str, Any]) -> str:
    """What is wrong with a task before anyone attempts it, by running it; "" where all holds.

    Files and setup can be made; initial tests pass at the start; final tests are a program, and do not pass at the start.
    """
    try:
        session, final = session_of(task.get("files"), task.get("setup")), tests_of(task.get("tests"))
        if isinstance(final, str):
            compile(final, "<tests>", "exec")
        if initial := task.get("initial_tests"):
            ran = run_command(session, None, tests_of(initial))
            if not ran.passed:
                return f"its initial tests do not pass at the start: {ran.why}"
        ran = run_command(session, None, final)
    except (RewardlabError, SyntaxError, ValueError) as problem:
        return f"{type(problem).__name__ if isinstance(problem, SyntaxError) else 'it cannot be made'}: {problem}"
    if ran.failed or ran.passed is None:
        raise RewardlabError(f"the sandbox failed: {ran.why}")
    return "its final tests pass at the start, where nothing was done" if ran.passed else ""


@dataclass(frozen=True)
class Maker:
    """Writes tasks, validates them, and attempts them."""

    run: Run
    strong: Run
    attempts: int
    turns: int
    temperature: float

    @property
    def settings(self) -> dict[str, Any]:
        """What the results depend on, beside the models."""
        return {"attempts": self.attempts, "turns": self.turns, "temperature": self.temperature, "seed": self.run.seed,
                "max_new": self.run.max_new}  # fmt: skip

    def __call__(self, problems: Sequence[Problem], key: str) -> list[dict[str, Any]]:
        """For each topic, or task, {"task": its columns, "fault": [kind, why] or None}."""
        tasks: list[dict[str, Any]] = [
            {"prompt": p.question, **{c: p.meta[c] for c in COLUMNS if p.meta.get(c) is not None}} if p.meta.get("tests") else {}
            for p in problems
        ]
        topics = [i for i, task in enumerate(tasks) if not task]
        for i, written in zip(topics, self.written([problems[i].question for i in topics], key), strict=True):
            tasks[i] = written
        faults: list[list[str] | None] = []
        for task in tasks:
            missing = "" if task.get("tests") else "the writer's reply is not in the form"
            why = missing or fault_of(task)
            faults.append(["invalid", why] if why else None)
        whole = [i for i, fault in enumerate(faults) if not fault]
        if self.attempts:
            for i, solved in zip(whole, self.solved([tasks[i] for i in whole]), strict=True):
                tasks[i] |= {"solved": solved, "attempts": self.attempts}
                faults[i] = None if solved else ["not solved", f"none of {self.attempts} attempts solved it"]
        return [{"task": task, "fault": fault} for task, fault in zip(tasks, faults, strict=True)]

    def written(self, topics: Sequence[str], key: str) -> list[dict[str, Any]]:
        """Tasks as far as they were written in the form: one without `tests` is none."""
        stages = (
            (ASK_TASK, _read_task), (ASK_START, _read_start), (ASK_END, lambda reply: {"tests": _block(reply, "python", "py")}),
        )  # fmt: skip
        tasks: list[dict[str, Any]] = [{"topic": topic} for topic in topics]
        going = list(range(len(tasks)))
        for number, (ask, read) in enumerate(stages):
            asked = [_filled(ask, tasks[i]) for i in going]
            replies = self._said(asked, f"{key} {number}")
            for i, reply in zip(list(going), replies, strict=True):
                parts = read(reply)
                if any(value is None for value in parts.values()):
                    going.remove(i)
                else:
                    tasks[i] |= parts
        renamed = {"task": "prompt", "initial": "initial_tests"}
        return [{renamed.get(name, name): value for name, value in task.items() if name != "topic"} for task in tasks]

    def _said(self, texts: Sequence[str], key: str) -> list[str]:
        if not texts:
            return []
        problems = [Problem((Message("user", text),)) for text in texts]
        prompts = self.run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
        done = self.run.policy.extend(prompts, Sampling(self.run.max_new, self.temperature), stream(self.run.seed, "tasks", key))
        return [t.reply for t in done]

    def solved(self, tasks: Sequence[Mapping[str, Any]]) -> list[int]:
        """In how many of the attempts the strong model passes the final tests."""
        if not tasks:
            return []
        problems = [Problem((Message("user", task["prompt"]),), meta=dict(task)) for task in tasks]
        rollout = interactive(env=terminal(), n=self.attempts, turns=self.turns, temperature=self.temperature)
        with keeping(self.strong.policy):
            episodes = rollout(problems, self.strong)
        scores = registry.part("reward", "final_state")(episodes, self.strong)
        return [sum(s.total is not None and s.total >= 1.0 for s in row) for row in scores]


def _filled(ask: str, task: Mapping[str, Any]) -> str:
    texts = {name: str(value) for name, value in task.items() if name in ("topic", "task", "truth", "initial")}
    return filled(ask, place=PLACE, **texts)


def _read_task(reply: str) -> dict[str, Any]:
    found = {name: re.search(_PART.format(name), reply, re.DOTALL) for name in ("task", "truth")}
    return {name: match[1] if match and match[1] else None for name, match in found.items()}


def _read_start(reply: str) -> dict[str, Any]:
    files = _block(reply, "json")
    setup = _block(reply, "bash", "sh")
    return {"files": map_of(files) if files else None, "setup": [setup] if setup else [], "initial": _block(reply, "python", "py")}


def _block(reply: str, *languages: str) -> str | None:
    found = blocks(reply, *languages)
    return found[-1] if found else None
