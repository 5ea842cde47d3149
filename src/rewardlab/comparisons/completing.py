"""What a comparison's plan lacks is run, and its result written."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any

from rewardlab import api
from rewardlab.api.inputs import held_out, task_of
from rewardlab.checks.kept import with_shared_start
from rewardlab.checks.runs import Done, Job, drop_weights, finished, run, watched
from rewardlab.checks.workers import Failed, run_all
from rewardlab.comparisons import comparison
from rewardlab.comparisons.frontier import frontier
from rewardlab.comparisons.page import page
from rewardlab.comparisons.plan import TOKENS, Plan
from rewardlab.comparisons.tuning import tuned, tuning_jobs
from rewardlab.core import Task
from rewardlab.errors import RewardlabError
from rewardlab.report.library import share
from rewardlab.runs.config import RunConfig
from rewardlab.util.files import write_json, write_text
from rewardlab.util.progress import Bar

Record = dict[str, Any]


def complete(plan: Plan, folder: Path, self_contained: bool) -> Record:
    """Run what has not finished, in the processes of `shared_processes`, and write the result.

    Returns the contents of compare.json, and the folder as `out`.
    """
    # before the runs, whose reports load it too
    library = None if self_contained else share(folder)
    try:
        plan = _with_rates(plan, folder)
        outcomes = _outcomes(plan, folder)
    except KeyboardInterrupt as stop:
        # the command line shows notes
        stop.add_note(f"finished runs are kept; resume with: rewardlab compare --resume {quote(str(folder))}")
        raise
    config, task = plan.config, task_of(None, plan.config)
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"), "task": task.name, "model": config.model or task.model,
        "problems": measured_problems(task, config), "seeds": list(plan.seeds), "budget": config.budget,
        "steps": config.steps, "measure": plan.measure, "equal": plan.equal,
        "rates": list(plan.rates), "rate_seeds": plan.rate_seeds, "rates_by": list(dict.fromkeys(plan.rates_by.values())),
        **comparison.result(plan, outcomes, _logs(plan, folder)),
        "frontier": frontier(plan, outcomes), "versions": api.versions(),
    }  # fmt: skip
    write_json(folder / "compare.json", record)
    out = folder / "compare.html"
    write_text(out, page(record, out, library))
    return {"out": str(folder), **record}


def complete_already(plan: Plan, folder: Path) -> bool:
    """Whether every run has finished."""
    if plan.rates and not plan.chosen:
        return False
    return all(finished(Path(plan.job(arm, seed, folder).folder)) for arm in plan.arms for seed in plan.seeds)


def _with_rates(plan: Plan, folder: Path) -> Plan:
    """The plan with the rate of every arm, if it asks for one and has none yet."""
    if not plan.rates or plan.chosen:
        return plan
    todo = sum(map(len, tuning_jobs(plan, folder).values()))
    with Bar("choosing rates", todo) as bar:
        plan = tuned(plan, folder, lambda runs: _run(runs, plan, folder, bar))
    plan.save(folder)
    return plan


def _logs(plan: Plan, folder: Path) -> dict[str, list[Any]]:
    """What training logged at every step, by method, in the order of the seeds."""
    return {arm.name: [watched(Path(plan.job(arm, seed, folder).folder)) for seed in plan.seeds] for arm in plan.trained}


def _outcomes(plan: Plan, folder: Path) -> dict[str, list[Done]]:
    """The outcome of every run, by method, in the order of the seeds."""
    budgets = dict.fromkeys(plan.seeds, plan.config.budget)
    done: dict[Path, Done] = {}
    folders = [Path(plan.job(arm, seed, folder).folder) for arm in plan.arms for seed in plan.seeds]
    with Bar("comparing", len(folders), done=sum(finished(where) is not None for where in folders)) as bar:
        if plan.trained and not plan.config.budget and plan.equal == TOKENS:
            # the first method runs alone: what it uses is the budget of the others, seed by seed
            first = [plan.job(plan.trained[0], seed, folder) for seed in plan.seeds]
            done = _run(first, plan, folder, bar)
            budgets = {job.config.seed: int(done[Path(job.folder)].numbers["tokens"]) or None for job in first}
        every = [plan.job(arm, seed, folder, budgets[seed]) for seed in plan.seeds for arm in plan.arms]
        done |= _run([job for job in every if Path(job.folder) not in done], plan, folder, bar)
    return {arm.name: [done[Path(plan.job(arm, seed, folder).folder)] for seed in plan.seeds] for arm in plan.arms}


def _run(todo: Sequence[Job], plan: Plan, folder: Path, bar: Bar) -> dict[Path, Done]:
    """The outcomes of jobs by their folders: read where they have finished, else run. Raises RewardlabError where one fails."""
    done = {where: outcome for job in todo if (outcome := finished(where := Path(job.folder)))}
    missing = [job for job in todo if Path(job.folder) not in done]
    # closing ends the other runs when one has failed
    with closing(run_all(run, [with_shared_start(job, folder) for job in missing])) as outcomes:
        for i, outcome in outcomes:
            name, where = f"{missing[i].method}, seed {missing[i].config.seed}", Path(missing[i].folder)
            if isinstance(outcome, Failed):
                resume = f"rewardlab compare --resume {quote(str(folder))}"
                how = f"finished runs are kept; mend it and resume with: {resume}, or: {resume} --without {missing[i].method}"
                raise RewardlabError(f"{name}, failed: {outcome.reason} ({how})")
            # from its files, as they will be read when the comparison is completed or extended
            done[where] = finished(where) or outcome
            drop_weights(where, models_too=not plan.keep_models)
            bar.advance(name)
    return done


def measured_problems(task: Task, config: RunConfig) -> int:
    """Held-out problems that every run is measured on."""
    return len(held_out(task, config.eval_problems)) if config.eval_problems else 0
