"""Run one method once and return the numbers that it measured. Worker processes do this, for every kind of method."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewardlab import api, registry
from rewardlab.core import Recipe, Run
from rewardlab.errors import RewardlabError
from rewardlab.runs.config import COLUMNS, RunConfig
from rewardlab.runs.metrics import read_metrics

APART = 10_000  # positions in the training data between neighbouring seeds, so that their problems differ
LAST = 0.25  # share of the steps that a number `train.X` is the mean of
BESIDES = ("n", "ci95")  # in a summary, but nothing to compare
COUNTERS = ("step", "tokens")  # in every line of metrics.jsonl

Numbers = dict[str, float]


@dataclass(frozen=True)
class Job:
    """A method to run under a configuration: plain data, so that another process can do it.

    folder: where it may write; it is removed afterwards.  settings: of the method.  by: a Measure as JSON, None for the method's
    own.  config.eval_every: steps between the points of the learning curve; 0: only before and after.
    """

    method: str
    config: RunConfig
    folder: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    by: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Done:
    """The outcome of a job.  numbers: by name, at its end.  curve: (token count, numbers measured there).  seconds: wall clock."""

    numbers: Numbers
    curve: list[tuple[int, Numbers]]
    seconds: float


def run(job: Job) -> Done:
    """Do a job: train and measure, answer, or run a study, according to its method."""
    started = time.monotonic()
    recipe = registry.build(job.method, job.settings)
    if job.by is not None:
        recipe = recipe.but(measure=registry.load_part(job.by))
    run_recipe = {"study": _study, "answer": _answer, "train": _train}[kind_of(recipe)]
    numbers, curve = run_recipe(recipe, job)
    return Done(numbers, curve, round(time.monotonic() - started, 2))


def kind_of(recipe: Recipe) -> str:
    """What a recipe is for: "study", "answer" or "train"."""
    if recipe.study is not None:
        return "study"
    # a method may both learn and select answers; it is then compared as a trained one
    learns = recipe.objective is not None or recipe.loop is not None or any(learner.every for learner in recipe.also)
    return "answer" if recipe.select is not None and not learns else "train"


def number(numbers: Numbers, name: str, method: str) -> float:
    """A number of a run by name. Raises RewardlabError with the known names if there is none."""
    if name not in numbers:
        raise RewardlabError(f"{method} does not measure {name!r} here; it measures: {', '.join(numbers)}")
    return numbers[name]


def study(name: str, seed: int = 0) -> Numbers:
    """The table of a study. Raises RewardlabError for a method that is not one."""
    recipe = registry.build(name)
    if recipe.study is None:
        raise RewardlabError(f"{name} is not a study; run it with: rewardlab {kind_of(recipe)} {name}")
    return {k: float(v) for k, v in recipe.study(Run(policy=None, seed=seed)).items()}


def _study(recipe: Recipe, job: Job) -> tuple[Numbers, list[tuple[int, Numbers]]]:
    assert recipe.study is not None
    return {k: float(v) for k, v in recipe.study(Run(policy=None, seed=job.config.seed)).items()}, []


def _answer(recipe: Recipe, job: Job) -> tuple[Numbers, list[tuple[int, Numbers]]]:
    config = job.config
    settings = {name: getattr(config, name) for name in ("seed", "device", "dtype", "lora_rank", "max_new", *COLUMNS)}
    table = api.answer(recipe, config.model, config.task, problems=config.eval_problems, **settings)
    measured = {k: v["value"] for k, v in table.items() if isinstance(v, Mapping) and "value" in v}
    return {**measured, "tokens": table["tokens"]}, [(table["tokens"], measured)]


def _train(recipe: Recipe, job: Job) -> tuple[Numbers, list[tuple[int, Numbers]]]:
    folder = Path(job.folder)
    try:
        # checkpoints would only cost time: a failed run is not resumed
        config = job.config.but(start=job.config.seed * APART, out=folder, checkpoint_every=0)
        summary = api.train(recipe, config=config).summary
        lines = read_metrics(folder)
    finally:
        # hundreds of runs, each with its model, would fill the disk
        shutil.rmtree(folder, ignore_errors=True)
    before, after = (dict(_plain(summary.get(side, {}))) for side in ("before", "after"))
    numbers = {**after, **{f"before.{k}": v for k, v in before.items()}, **_in_training(lines)}
    curve = [(int(line.get("tokens", 0)), measured) for line in lines if (measured := _measured(line))]
    return {**numbers, "tokens": summary["tokens"], "steps": summary["steps"]}, curve


def _in_training(lines: list[dict[str, Any]]) -> Numbers:
    """`train.X`: the mean of what training logged as X over the last quarter of its steps."""
    logged = [line for line in lines if line["step"] > 0]  # step 0 is the measurement before training
    late = logged[-max(1, round(len(logged) * LAST)) :] if logged else []
    names = dict.fromkeys(k for line in late for k in line if k not in COUNTERS and not k.startswith(("eval/", "seconds/")))
    # a metric may be missing in some steps, and NaN is written as null
    values = {name: [line[name] for line in late if line.get(name) is not None] for name in names}
    return {f"train.{name}": sum(v) / len(v) for name, v in values.items() if v}


def _measured(line: dict[str, Any]) -> Numbers:
    """The held-out measures of a line of metrics.jsonl; empty if it has none."""
    return {k.removeprefix("eval/"): v for k, v in line.items() if k.startswith("eval/") and v is not None}


def _plain(summary: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The names and numbers of one side of a summary."""
    return ((k, float(v)) for k, v in summary.items() if k not in BESIDES and isinstance(v, int | float))


def as_plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as JSON holds them, with lists for tuples: what a record shows is what was run."""
    return json.loads(json.dumps(dict(settings)))
