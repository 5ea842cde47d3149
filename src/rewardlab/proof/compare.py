"""Several methods on the same problems and one budget: means, paired differences, and learning curves."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab import api, registry
from rewardlab.api.fitting import fit_prompts
from rewardlab.api.inputs import policy_of, task_of
from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import absolute_name
from rewardlab.runs.config import RunConfig
from rewardlab.util.files import new_folder, write_json, write_text
from rewardlab.util.progress import Bar

from .page import page
from .runs import Done, Job, kind_of, number, run
from .verdict import interval
from .workers import Failed, run_all

POINTS = 60  # token counts at which a mean learning curve is drawn
STEPS = 20  # of the first method, if neither steps nor a budget are given

Record = dict[str, Any]
Outcomes = dict[str, list[Done]]


def compare(
    methods: Sequence[str], config: RunConfig, *, seeds: Sequence[int] = range(5), measure: str | None = None,
    jobs: int | None = None, out: Path | None = None,
) -> Record:  # fmt: skip
    """Run every method on every seed; write compare.json and compare.html into a folder, and return the contents of compare.json.

    config: what all methods share: task, model, eval_problems, eval_every ...  Every run ends at config.budget; without one, at the
    tokens that the first method uses in config.steps (default 20) steps with the same seed.
    measure: the number compared; None: the first one that the first method measures.  out: the folder; None: a new one in runs/.
    """
    config = config.but(steps=None if config.budget else config.steps or STEPS)
    methods = [registry.spell(m) if "+" not in m else m for m in methods]
    if repeated := next((m for m in methods if methods.count(m) > 1), None):
        raise RewardlabError(f"{repeated} is named twice; name every method once")
    # before any run, so that a folder that exists is refused at once and not after hours
    folder = _new_folder(out, methods, config.task)
    outcomes = run_methods(methods, config, seeds, jobs)
    measure = measure or next(iter(outcomes[methods[0]][0].numbers))
    model = config.model or task_of(None, config).model
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"), "task": config.task, "model": model,
        "problems": config.eval_problems, "seeds": list(seeds), "budget": config.budget, "steps": config.steps, "measure": measure,
        "methods": [summarise(m, outcomes, measure) for m in methods], "versions": api.versions(),
    }  # fmt: skip
    with new_folder(folder) as new:
        write_json(new / "compare.json", record)
        write_text(new / "compare.html", page(record))
    return {"out": str(folder), **record}


def run_methods(methods: Sequence[str], config: RunConfig, seeds: Sequence[int], jobs: int | None) -> Outcomes:
    """Every method on every seed; without a budget, the others get the tokens that the first uses. Raises where a run fails."""
    if any(kind_of(registry.build(m)) == "study" for m in methods):
        raise RewardlabError("a study trains no policy and has no metric to compare; run it with: rewardlab study NAME")
    # a small policy is warmed up and cached here, once, and not by every worker
    task = task_of(None, config)
    # prompts too long for the model are refused here, before the first run
    fit_prompts(task, policy_of(None, config, task), config, registry.build(methods[0]))
    config = config.but(model=absolute_name(config.model) if config.model else None)
    with tempfile.TemporaryDirectory(prefix="rewardlab-") as folder, Bar("comparing", len(methods) * len(seeds)) as bar:

        def jobs_of(names: Sequence[str], budgets: Sequence[int | None]) -> list[Job]:
            return [
                Job(
                    name, config.but(seed=seed, steps=None if tokens else config.steps, budget=tokens), f"{folder}/{name}-{seed}"
                )
                for (seed, tokens), name in itertools.product(zip(seeds, budgets, strict=True), names)
            ]  # fmt: skip

        if config.budget:
            return _run(jobs_of(methods, [config.budget] * len(seeds)), jobs, bar)
        # the first method runs alone: what it uses is the budget of the others, seed by seed
        first = _run(jobs_of(methods[:1], [None] * len(seeds)), jobs, bar)
        used = [int(done.numbers["tokens"]) or None for done in first[methods[0]]]
        return first | _run(jobs_of(methods[1:], used), jobs, bar)


def summarise(method: str, outcomes: Outcomes, measure: str) -> Record:
    """A method's numbers, seed by seed, their mean, their differences to the first method, and its learning curve."""
    values = [number(done.numbers, measure, method) for done in outcomes[method]]
    first = next(iter(outcomes))
    differences = [v - number(d.numbers, measure, first) for v, d in zip(values, outcomes[first], strict=True)]
    tokens = [done.numbers["tokens"] for done in outcomes[method]]
    return {
        "method": method, "formula": str(registry.build(method)), "values": values, **_mean(values),
        "difference": None if method == first else {"values": differences, **_mean(differences)},
        "tokens": round(sum(tokens) / len(tokens)), "steps": [done.numbers.get("steps") for done in outcomes[method]],
        "seconds": [done.seconds for done in outcomes[method]], "curve": mean_curve([d.curve for d in outcomes[method]], measure),
    }  # fmt: skip


def mean_curve(curves: Sequence[Sequence[tuple[int, Mapping[str, float]]]], measure: str) -> Record:
    """The mean over seeds of a number against the token count, with its t interval, where all seeds have been measured."""
    points = [[(tokens, numbers[measure]) for tokens, numbers in curve if measure in numbers] for curve in curves]
    if not all(points):
        return {"tokens": [], "mean": [], "low": [], "high": []}
    starts, ends = ([curve[i][0] for curve in points] for i in (0, -1))
    # only where every seed has points on both sides; unique leaves one point if that is a single token count
    tokens = np.unique(np.linspace(max(starts), max(max(starts), min(ends)), POINTS))
    # seeds are measured at different token counts, so every curve is interpolated at the same ones
    table = np.stack([np.interp(tokens, *np.asarray(curve, float).T) for curve in points], -1)  # (points, seeds)
    mean, low, high = interval(table)
    # the interval of a single seed is infinite, which JSON cannot hold and a page cannot draw
    bounds = {"low": low, "high": high} if len(points) > 1 else {"low": mean, "high": mean}
    return {name: values.tolist() for name, values in ({"tokens": tokens, "mean": mean} | bounds).items()}


def _run(todo: list[Job], jobs: int | None, bar: Bar) -> Outcomes:
    """Do the jobs, `jobs` of them at a time; their outcomes by method, in the order of the seeds. Raises where a run fails."""
    done: dict[int, Done] = {}
    # closing ends the other runs when one has failed
    with closing(run_all(run, todo, jobs)) as outcomes:
        for i, outcome in outcomes:
            name = f"{todo[i].method}, seed {todo[i].config.seed}"
            if isinstance(outcome, Failed):
                raise RewardlabError(f"{name}, failed: {outcome.error}")
            bar.advance(name)
            done[i] = outcome
    methods = dict.fromkeys(job.method for job in todo)
    return {method: [done[i] for i, job in enumerate(todo) if job.method == method] for method in methods}


def _mean(values: Sequence[float]) -> Record:
    mean, low, high = (float(x) for x in interval(np.asarray(values, float)))
    return {"mean": mean, "ci95": [low, high] if len(values) > 1 else None}


def _new_folder(out: Path | None, methods: Sequence[str], task: str) -> Path:
    """`out`, which must be new, or the first of runs/compare-..., runs/compare-...-2, ... that does not exist."""
    if out is not None:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise RewardlabError(f"{out} exists and is not an empty folder; choose a new --out")
        return out
    # file systems limit a name to 255 bytes, and a comparison may have many methods
    name = f"compare-{'-'.join(methods)[:80]}-{task.partition(':')[0].rpartition('/')[2]}"
    folders = (Path("runs") / (name if i == 1 else f"{name}-{i}") for i in itertools.count(1))
    return next(folder for folder in folders if not folder.exists())
