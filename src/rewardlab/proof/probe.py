"""What is known of a world: where its small policy starts, what GRPO reaches there, and how much of that is noise."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from rewardlab import api, registry
from rewardlab.core import Problem, Run, Task
from rewardlab.models.embedded import checkpoint
from rewardlab.models.load import load_policy
from rewardlab.models.start import player
from rewardlab.util.files import check_writable, write_json
from rewardlab.util.progress import Bar, console

from .worlds import World, results_folder

Record = dict[str, Any]
UPDATES, SEEDS, RATES = 40, (0, 1, 2), (3e-4, 1e-3)
PROBLEMS, VOTED, VOTES = 1000, 300, 8
"""Held-out problems, one sample each; those that a majority is asked of, and of how many replies."""
ROOM = 0.15
"""Fit: the start and the end of GRPO keep so much of the range above and below."""


def check(world: World, *, seeds: Sequence[int] = SEEDS, updates: int = UPDATES, problems: int = PROBLEMS) -> Record:
    """Measure a world and write its record; returns it, with the file as "recorded".

    GRPO runs on the first seed at each of RATES; on the others at the better one. Development seeds: no claim is decided by them.
    """
    where = results_folder() / f"{world.name}.json"
    where.parent.mkdir(parents=True, exist_ok=True)
    # now, and not after minutes of runs
    check_writable(where)
    began = time.process_time()
    task = registry.task(world.task)
    with Bar(f"measuring {world.name}", 1 + len(RATES) + len(seeds) - 1) as bar:
        start = _start(task, problems)
        bar.advance(f"starts at {start['single']:.2f}")
        runs = [_advanced(bar, _grpo(world, task, lr, seeds[0], updates, problems)) for lr in RATES]
        best = max(runs, key=lambda run: run["truth"]["single"] if world.reward is None else run["paid"])
        runs += [_advanced(bar, _grpo(world, task, best["lr"], seed, updates, problems)) for seed in seeds[1:]]
    record = {
        "name": world.name, "task": world.task, "reward": dict(world.reward) if world.reward else None, "problems": problems,
        "start": start, "updates": updates, "lr": best["lr"], "runs": runs, "steps": _steps(task),
        **_summary([run for run in runs if run["lr"] == best["lr"]], start), "seconds": round(time.process_time() - began),
        "policy": checkpoint(task).name, "when": datetime.now(UTC).isoformat(timespec="seconds"), "versions": api.versions(),
    }  # fmt: skip
    write_json(where, record)
    return {**record, "recorded": str(where)}


def _advanced(bar: Bar, run: Record) -> Record:
    bar.advance(f"seed {run['seed']}, lr {run['lr']:g}: {run['truth']['single']:.2f}")
    return run


def _summary(runs: Sequence[Record], start: Record) -> Record:
    """reached: mean over seeds; noise: their standard deviation; left: of the range above it; fit, or why not."""
    ends = [run["truth"]["single"] for run in runs]
    reached, noise = statistics.mean(ends), statistics.stdev(ends) if len(ends) > 1 else 0.0
    gained = reached - start["single"]
    problems = [
        (abs(gained) < 3 * noise, "GRPO moves it by less than three standard deviations of its noise"),
        (gained < 0, "GRPO lowers the truth"),
        (reached > 1 - ROOM, "little is left to learn when GRPO ends"),
        (start["greedy"] > 0.6, "its greedy answer is right already"),
    ]
    return {
        "reached": round(reached, 4), "noise": round(noise, 4), "left": round(1 - reached, 4),
        "remarks": [why for is_so, why in problems if is_so],
    }  # fmt: skip


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
    seconds = time.process_time() - began
    run = result.run
    assert run is not None
    return {
        "seed": seed, "lr": lr, "truth": _rates(task, policy, problems, seed), "paid": round(run.metrics.get("reward", 0.0), 4),
        "tokens": run.tokens, "seconds": round(seconds),
    }  # fmt: skip


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
    # far from any training step, so that no stream of random numbers is one that it trained on
    return Run(policy, step=1_000_000, seed=seed, max_new=task.max_new, verify=registry.part("reward", task.verifier))


def _mean(rows: Sequence[Sequence[float]]) -> float:
    return round(float(np.mean([value for row in rows for value in row])), 4)


def check_all(names: Sequence[str] = ()) -> list[Record]:
    """Measure the worlds of these names one after another, or all."""
    from .worlds import WORLDS, world

    records = []
    for i, one in enumerate(chosen := [world(name) for name in names] or list(WORLDS), 1):
        console.print(f"{i}/{len(chosen)} {one.name}: {one.task}", highlight=False, markup=False)
        records.append(check(one))
    return records
