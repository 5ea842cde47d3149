"""Model-written unit tests for the problems of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardlab.api.arguments import named_model
from rewardlab.api.inputs import as_in_run, begin_run, policy_of, told_template
from rewardlab.api.pass_rates import check_out, file_problems, file_task, fitted_problems, in_work
from rewardlab.clients.endpoint import identity
from rewardlab.core import Problem, Recipe, Run, Sampling, Trajectory
from rewardlab.core.run import stream
from rewardlab.data.drops import leaving, staying
from rewardlab.data.tables import Places, Table
from rewardlab.data.work import work_beside
from rewardlab.errors import RewardlabError
from rewardlab.models.load import Policy
from rewardlab.rewards.generated_tests import by_pairs
from rewardlab.runs.named import refuse_missing
from rewardlab.settings.domain import NOT_NEGATIVE, POSITIVE
from rewardlab.text.unit_tests import asked_for_test, distinct, read_test

COLUMN = "generated"


def written_tests_file(
    source: Path | str, out: Path | str, dropped: Path | str | None = None, *, model: str | Policy | None = None, tests: int = 16,
    program_column: str = "", ask: str = "", temperature: float = 1.0, batch: int = 32, **settings: Any,
) -> dict[str, Any]:  # fmt: skip
    """Let a model write tests of programs for each row's problem, and add the column `generated`, which coderm_8b and the reward
    passed_generated read: different tests, pairs [input, output] where the answer holds `io`, else Python with one assert.

    tests: replies of the model to each problem, each of which is one test at most; what cannot be read as one is left out, and
    equal ones are one.  program_column: a column with a program that the writer is shown, as the released writer is; "": none.
    ask: what it reads, with {question} and {program}; "": as in `text/unit_tests.py`.  batch: problems at a time, after which the
    work is saved in OUT.work.  settings: fields of RunConfig, as of `pass_rate_file`. A row that has the column is refused.
    """
    for name, value in (("tests", tests), ("batch", batch)):
        POSITIVE.check(name, value)
    NOT_NEGATIVE.check("temperature", temperature)
    places = Places("tests", [source], out, dropped)
    check_out(out, "the tests")
    refuse_missing(model := named_model(model))
    config, _ = as_in_run(model, str(source), settings)
    table = Table.load(source)
    if table.has(COLUMN):
        raise RewardlabError(f"the rows of {source} have a column {COLUMN} already, which would be overwritten; rename that column")
    if program_column and not table.has(program_column):
        raise RewardlabError(f"no row of {source} has a column {program_column}, with a program to show")
    problems, fate = file_problems(table, config)
    asked = [_asked(p, program_column, ask) for p in problems]
    policy = policy_of(model, config, file_task(asked))
    asked, fate = fitted_problems(asked, fate, policy, config)
    writer = Writer(begin_run(Recipe(), policy, file_task(asked), config), tests, temperature)
    about = {"model": identity(config.model or policy.name), **told_template(config), **writer.settings}
    about |= {"program_column": program_column, "batch": batch}
    with work_beside(out, about) as work:
        facts = {"model": about["model"], "resumed_batches": len(work.done)}
        found = in_work(asked, writer, work, batch)
        rows = [{**row, COLUMN: one[COLUMN]} for row, one in zip(staying(table.rows, fate), found, strict=True)]
        left_out = leaving(table.places, table.rows, fate)
        counts = [len(one[COLUMN]) for one in found]
        facts |= {"tests": sum(counts), "without_tests": counts.count(0), "tokens": sum(one["tokens"] for one in found)}
        return places.finish([table], left_out, rows, **facts)


def _asked(problem: Problem, program_column: str, ask: str) -> Problem:
    shown = problem.meta.get(program_column) if program_column else ""
    program = shown if isinstance(shown, str) else ""
    return problem.reworded(asked_for_test(problem.question, program, by_pairs(problem), ask))


@dataclass(frozen=True)
class Writer:
    """Samples replies that hold a test each, and reads the tests out of them."""

    run: Run
    tests: int
    temperature: float

    @property
    def settings(self) -> dict[str, Any]:
        """What the results depend on, beside the model."""
        return {"tests": self.tests, "temperature": self.temperature, "seed": self.run.seed, "max_new": self.run.max_new}

    def __call__(self, problems: Sequence[Problem], key: str) -> list[dict[str, Any]]:
        """For each problem its tests and the tokens of the replies. The random numbers depend on the seed and `key` alone."""
        prompts = self.run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
        sampling, rng = Sampling(self.run.max_new, self.temperature), stream(self.run.seed, "tests", key)
        done = self.run.policy.extend([t for t in prompts for _ in range(self.tests)], sampling, rng)
        groups = [done[i : i + self.tests] for i in range(0, len(done), self.tests)]
        return [
            {COLUMN: distinct([read_test(t.reply, by_pairs(p)) for t in group]), "tokens": sum(t.written for t in group)}
            for p, group in zip(problems, groups, strict=True)
        ]
