"""Measuring a world of claims: where its small policy starts, what GRPO reaches there, and how much of that is noise."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab import api, registry
from rewardlab.checks.worlds import WORLDS, Record, World, results_folder, world
from rewardlab.core import Problem, Run, Task
from rewardlab.models.embedded import checkpoint
from rewardlab.models.load import load_policy
from rewardlab.models.start import player
from rewardlab.runs.metrics import read_metrics
from rewardlab.util.files import check_writable, write_json
from rewardlab.util.progress import Bar, console

UPDATES, SEEDS, RATES = 40, (0, 1, 2), (3e-4, 1e-3)
PROBLEMS, VOTED, VOTES = 1000, 300, 8
"""Held-out problems, one sample each; those that a majority is asked of, and of how many replies."""
LAST = 10
"""Steps over whose reward rates are compared: one step alone is too noisy."""
ROOM = 0.15
"""Fit: the start and the end of GRPO keep so much of the range above and below."""


def check(
    world: World, *, seeds: Sequence[int] = SEEDS, updates: int = UPDATES, problems: int = PROBLEMS, start_only: bool = False
) -> Record:  # fmt: skip
    """Measure a world and write its record; returns it, with the file as "recorded".

    GRPO runs on the first seed at each of RATES; on the others at the better one. Development seeds: no claim is decided by them.
    The record is written after each part, so that what was measured is kept if the rest is stopped.
    start_only: do not run GRPO.
    """
    where = results_folder() / f"{world.name}.json"
    where.parent.mkdir(parents=True, exist_ok=True)
    # now, and not after minutes of runs
    check_writable(where)
    began, task = time.process_time(), registry.task(world.task)
    record: Record = {}

    def keep(runs: Sequence[Record], start: Record) -> None:
        record.update(_record(world, task, start, runs), updates=updates, problems=problems)
        record["seconds"] = round(time.process_time() - began)
        write_json(where, record)

    with Bar(f"measuring {world.name}", 1 if start_only else len(RATES) + len(seeds)) as bar:
        start = _start(task, problems)
        keep([], start)
        bar.advance(f"starts at {start['single']:.2f}")
        runs: list[Record] = []
        for lr, seed in () if start_only else _planned(seeds, runs):
            runs.append(_grpo(world, task, lr, seed, updates, problems))
            keep(runs, start)
            bar.advance(f"seed {seed}, lr {lr:g}: {runs[-1]['truth']['single']:.2f}")
    return {**record, "recorded": str(where)}


def _planned(seeds: Sequence[int], runs: Sequence[Record]) -> Iterator[tuple[float, int]]:
    """Rates and seeds to run; `runs` holds, by the time it is asked for, those that are done."""
    yield from ((lr, seeds[0]) for lr in RATES)
    # by what it is paid, not by the truth: a method does not know the truth either
    best = max(runs, key=lambda run: run["paid"])["lr"]
    yield from ((best, seed) for seed in seeds[1:])


def _record(world: World, task: Task, start: Record, runs: Sequence[Record]) -> Record:
    best = max(runs, key=lambda run: run["paid"])["lr"] if runs else None
    return {
        "name": world.name, "task": world.task, "reward": dict(world.reward) if world.reward else None, "start": start, "lr": best,
        "runs": list(runs), "steps": _steps(task), **_summary([run for run in runs if run["lr"] == best], start, task.window[1]),
        "policy": checkpoint(task).name, "when": datetime.now(UTC).isoformat(timespec="seconds"), "versions": api.versions(),
    }  # fmt: skip


def _summary(runs: Sequence[Record], start: Record, most: float = 0.6) -> Record:
    """reached: mean over seeds; noise: their standard deviation, None of one; left: of the range above it; remarks: what to know
    before a claim is made there. most: what the greedy reply may get at the start."""
    greedy_right = (start["greedy"] > most, "its greedy answer is right already")
    if not runs:
        return {"reached": None, "noise": None, "left": None, "remarks": _so(greedy_right, (True, "GRPO was not run yet"))}
    ends = [run["truth"]["single"] for run in runs]
    reached, noise = statistics.mean(ends), statistics.stdev(ends) if len(ends) > 1 else None
    gained = reached - start["single"]
    return {
        "reached": round(reached, 4), "noise": None if noise is None else round(noise, 4), "left": round(1 - reached, 4),
        "remarks": _so(
            (noise is not None and abs(gained) < 3 * noise, "GRPO moves it by less than three standard deviations of its noise"),
            (gained < 0, "GRPO lowers the truth"), (reached > 1 - ROOM, "little is left to learn when GRPO ends"), greedy_right,
            (noise is None, "one seed tells nothing of the noise"),
        ),
    }  # fmt: skip


def _so(*remarks: tuple[bool, str]) -> list[str]:
    return [why for is_so, why in remarks if is_so]


def _steps(task: Task) -> str:
    """Whether the steps of a reply can be checked one by one."""
    meta = task.train[0].meta
    return "every step" if "steps" in meta else "every turn" if "searches" in meta else "the reply as a whole"


def _grpo(world: World, task: Task, lr: float, seed: int, updates: int, problems: int) -> Record:
    """GRPO from the start of a world, in a folder that does not stay."""
    began = time.process_time()
    policy = load_policy(task.model, "cpu", task=task)
    with tempfile.TemporaryDirectory(prefix="rewardlab-") as folder:
        result = api.train(
            world.recipe(lr), policy, task, steps=updates, seed=seed, out=f"{folder}/run", eval_every=0, eval_problems=1,
            device="cpu",
        )  # fmt: skip
        paid = _paid(result.out)
    seconds = time.process_time() - began
    run = result.run
    assert run is not None
    return {
        "seed": seed, "lr": lr, "truth": _rates(task, policy, problems, seed), "paid": paid,
        "tokens": run.tokens, "seconds": round(seconds),
    }  # fmt: skip


def _paid(run: Path) -> float:
    """What the last steps of a run were paid, on average."""
    return round(statistics.mean([row["reward"] for row in read_metrics(run) if "reward" in row][-LAST:]), 4)


def _start(task: Task, problems: int) -> Record:
    policy = load_policy(task.model, "cpu", task=task)
    return {**_rates(task, policy, problems, 0), "majority": _majority(task, policy)}


def _rates(task: Task, policy: Any, problems: int, seed: int) -> Record:
    """The mean verdict of one sample, and of the greedy reply."""
    return {
        "single": _mean(_verdicts(task, policy, task.test[:problems], 1.0, 1, seed)),
        "greedy": _mean(_verdicts(task, policy, task.test[: problems // 2], 0.0, 1, seed)),
    }


def _majority(task: Task, policy: Any) -> float:
    """The mean verdict of what most of several replies say."""
    run = _run(task, policy, 0)
    vote = registry.part("select", "majority")
    groups = player(task, 1.0, VOTES)(list(task.test[:VOTED]), run)
    chosen = [[vote(group, [], run)] for group in groups]
    return _mean([[score.value or 0.0 for score in row] for row in run.verify(chosen, run)])


def _verdicts(
    task: Task, policy: Any, problems: Sequence[Problem], temperature: float, n: int, seed: int
) -> list[list[float]]:  # fmt: skip
    run = _run(task, policy, seed)
    groups = player(task, temperature, n)(list(problems), run)
    return [[score.value or 0.0 for score in row] for row in run.verify(groups, run)]


def _run(task: Task, policy: Any, seed: int) -> Run:
    verify = registry.verifier(task.verifier)
    return Run(policy, seed=seed, max_new=task.max_new, verify=verify).for_evaluation()


def _mean(rows: Sequence[Sequence[float]]) -> float:
    return round(float(np.mean([value for row in rows for value in row])), 4)


def check_all(names: Sequence[str] = (), *, start_only: bool = False) -> list[Record]:
    """Measure the worlds of these names one after another, or all."""
    records, chosen = [], [world(name) for name in names] or list(WORLDS)
    for i, one in enumerate(chosen, 1):
        console.print(f"{i}/{len(chosen)} {one.name}: {one.task}", highlight=False, markup=False)
        records.append(check(one, start_only=start_only))
    return records
