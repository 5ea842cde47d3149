"""Several methods on the same problems and one budget: means, paired differences, and learning curves."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab import api, registry
from rewardlab.errors import RewardlabError
from rewardlab.models.load import absolute_name, load_policy
from rewardlab.util.files import new_folder, write_json, write_text
from rewardlab.util.progress import Bar

from .page import page
from .runs import Done, Job, kind_of, number, run
from .verdict import interval
from .workers import Failed, run_all

POINTS = 60  # of a mean learning curve

Record = dict[str, Any]
Outcomes = dict[str, list[Done]]


@dataclass(frozen=True)
class World:
    """What all methods of a comparison share. model: None is the task's own small policy."""

    task: str
    model: str | None = None
    problems: int = 200
    eval_every: int = 5


def compare(
    methods: Sequence[str], world: World, *, seeds: Sequence[int] = range(5), steps: int = 20, budget: int | None = None,
    measure: str | None = None, jobs: int | None = None, out: Path | None = None,
) -> Record:  # fmt: skip
    """Run every method on every seed; write compare.json and compare.html into a folder, and return what the former holds.

    budget: tokens for each run; None: what the first method spends in `steps` steps, seed by seed.  measure: the number
    compared; None: the first one that the first method measures.  out: the folder; None: a new one in runs/.
    """
    methods = [registry.spell(m) if "+" not in m else m for m in methods]
    if repeated := next((m for m in methods if methods.count(m) > 1), None):
        raise RewardlabError(f"{repeated} is named twice; name every method once")
    folder = _new_folder(out, methods, world.task)
    found = run_methods(methods, world, seeds, steps, budget, jobs)
    measure = measure or next(iter(found[methods[0]][0].numbers))
    model = world.model or registry.task(world.task).model
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"), "task": world.task, "model": model, "problems": world.problems,
        "seeds": list(seeds), "budget": budget, "steps": None if budget else steps, "measure": measure,
        "methods": [summarise(m, found, measure) for m in methods], "versions": api.versions(),
    }  # fmt: skip
    with new_folder(folder) as new:
        write_json(new / "compare.json", record)
        write_text(new / "compare.html", page(record))
    return {"out": str(folder), **record}


def run_methods(
    methods: Sequence[str], world: World, seeds: Sequence[int], steps: int, budget: int | None, jobs: int | None
) -> Outcomes:
    """Every method on every seed; without a budget, the others get what the first spends. Raises where a run fails."""
    if any(kind_of(registry.build(m)) == "study" for m in methods):
        raise RewardlabError("a study trains no policy and has nothing to be compared on; run it with: rewardlab study NAME")
    task = registry.task(world.task)
    load_policy(world.model or task.model, task=task)
    with tempfile.TemporaryDirectory(prefix="rewardlab-") as folder, Bar("comparing", len(methods) * len(seeds)) as bar:

        def jobs_of(names: Sequence[str], budgets: Sequence[int | None]) -> list[Job]:
            return [
                Job(
                    name, world.task, seed, f"{folder}/{name}-{seed}", {}, absolute_name(world.model) if world.model else None,
                    world.problems, None, None if tokens else steps, tokens, world.eval_every,
                )
                for (seed, tokens), name in itertools.product(zip(seeds, budgets, strict=True), names)
            ]  # fmt: skip

        if budget:
            found = _run(jobs_of(methods, [budget] * len(seeds)), jobs, bar)
        else:
            found = _run(jobs_of(methods[:1], [None] * len(seeds)), jobs, bar)
            spent = [int(done.numbers["tokens"]) or None for done in found[methods[0]]]
            found |= _run(jobs_of(methods[1:], spent), jobs, bar)
    return found


def summarise(method: str, found: Outcomes, measure: str) -> Record:
    """A method's numbers, seed by seed, their mean, what it differs by from the first method, and its learning curve."""
    values = [number(done.numbers, measure, method) for done in found[method]]
    first = next(iter(found))
    differences = [v - number(d.numbers, measure, first) for v, d in zip(values, found[first], strict=True)]
    spent = [done.numbers["tokens"] for done in found[method]]
    return {
        "method": method, "formula": str(registry.build(method)), "values": values, **_mean(values),
        "difference": None if method == first else {"values": differences, **_mean(differences)},
        "tokens": round(sum(spent) / len(spent)), "steps": [done.numbers.get("steps") for done in found[method]],
        "seconds": [done.seconds for done in found[method]], "curve": mean_curve([d.curve for d in found[method]], measure),
    }  # fmt: skip


def mean_curve(curves: Sequence[Sequence[tuple[int, Mapping[str, float]]]], measure: str) -> Record:
    """The mean over seeds of a number against tokens spent, with its t interval, where all seeds have been measured."""
    known = [[(tokens, found[measure]) for tokens, found in curve if measure in found] for curve in curves]
    if not all(known):
        return {"tokens": [], "mean": [], "low": [], "high": []}
    starts, ends = ([curve[i][0] for curve in known] for i in (0, -1))
    tokens = np.unique(np.linspace(max(starts), max(max(starts), min(ends)), POINTS))
    table = np.stack([np.interp(tokens, *np.asarray(curve, float).T) for curve in known], -1)
    mean, low, high = interval(table)
    bounds = {"low": low, "high": high} if len(known) > 1 else {"low": mean, "high": mean}
    return {name: x.tolist() for name, x in ({"tokens": tokens, "mean": mean} | bounds).items()}


def _run(asked: list[Job], jobs: int | None, bar: Bar) -> Outcomes:
    """Runs by method, in the order of seeds."""
    found: dict[int, Done] = {}
    with closing(run_all(run, asked, jobs)) as outcomes:
        for i, outcome in outcomes:
            if isinstance(outcome, Failed):
                raise RewardlabError(f"{asked[i].method}, seed {asked[i].seed}, failed: {outcome.error}")
            bar.advance(f"{asked[i].method}, seed {asked[i].seed}")
            found[i] = outcome
    names = dict.fromkeys(job.method for job in asked)
    return {name: [found[i] for i, job in enumerate(asked) if job.method == name] for name in names}


def _mean(values: Sequence[float]) -> Record:
    mean, low, high = (float(x) for x in interval(np.asarray(values, float)))
    return {"mean": mean, "ci95": [low, high] if len(values) > 1 else None}


def _new_folder(out: Path | None, methods: Sequence[str], task: str) -> Path:
    """`out`, which must be new, or runs/compare-... with the first free number behind it."""
    if out is not None:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise RewardlabError(f"{out} exists and is not an empty folder; choose a new --out")
        return out
    name = f"compare-{'-'.join(methods)[:80]}-{task.partition(':')[0].rpartition('/')[2]}"
    tries = (Path("runs") / (name if i == 1 else f"{name}-{i}") for i in itertools.count(1))
    return next(folder for folder in tries if not folder.exists())
