"""Run one method once and return the numbers that it measured. Worker processes do this, for every kind of method."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from rewardlab import api, registry
from rewardlab.api.answering import answer_each
from rewardlab.core import Part, Recipe, Run
from rewardlab.errors import RewardlabError
from rewardlab.evals.core_metrics import core_metrics
from rewardlab.runs.config import RunConfig
from rewardlab.runs.metrics import read_metrics
from rewardlab.util.files import write_json

APART = 10_000  # positions in the training data between neighbouring seeds, so that their problems differ
LAST = 0.25  # share of the steps that a number `train.X` is the mean of
POINTS = 20  # of a learning curve that is kept with a run
BEFORE = "before."  # begins the name of a number that was measured before training
CURVES = ("truth", "reward")  # what training logs at every step, and is drawn
WATCHED = (*CURVES, "entropy", "kl", "length", "signal")  # that a comparison draws beside what it compares
AREAS = (*CURVES, "signal", "distinct", "length", "entropy")  # of which the area under the curve is kept
BESIDES = ("n", "ci95", "ci95_low", "ci95_high")  # beside a measured number, but nothing to compare
COUNTERS = ("step", "tokens")  # in every line of metrics.jsonl
ANSWERED = "answered.json"  # the outcome of a method that trains nothing, in its folder
CHECKPOINTS, MODELS = "checkpoints", ("best", "model", "models")  # the weights in a run folder, which is small without them

Numbers = dict[str, float]


@dataclass(frozen=True)
class Job:
    """A recipe to run under a configuration: plain data, so that another process can do it.

    method: its name in messages.  recipe: as JSON.  folder: where it may write.  by: a Measure as JSON, None for the recipe's own.
    keep: whether the folder stays, so that a run that was stopped is resumed from it.  beside: whether greedy accuracy, a vote and
    the gold solutions' probability are measured too.  config.eval_every: steps between the points of the learning curve; 0: only
    before and after.
    """

    method: str
    recipe: Mapping[str, Any]
    config: RunConfig
    folder: str
    by: Mapping[str, Any] | None = None
    keep: bool = False
    beside: bool = False


@dataclass(frozen=True)
class Done:
    """The outcome of a job.

    numbers: by name, at its end.  curve: (token count, numbers measured there).  seconds: wall clock.  training: by name, what
    training logged at every step, as means over at most POINTS equal stretches of the run.  spread: by name, the 95% interval over
    the held-out problems of a number that was measured with one.  each: by name, the numbers of every problem, of a method that
    trains nothing.
    """

    numbers: Numbers
    curve: list[tuple[int, Numbers]]
    seconds: float
    training: dict[str, list[float]] = field(default_factory=dict)
    spread: dict[str, list[float]] = field(default_factory=dict)
    each: dict[str, list[float]] = field(default_factory=dict)


def watched(folder: Path) -> list[tuple[int, Numbers]]:
    """(step, the numbers of WATCHED that it logged) of a run, step by step."""
    lines = [line for line in read_metrics(folder) if line["step"] > 0]
    return [(line["step"], {name: line[name] for name in WATCHED if line.get(name) is not None}) for line in lines]


def run(job: Job) -> Done:
    """Do a job: train and measure, answer, or run a study, according to its recipe."""
    started = time.monotonic()
    recipe = recipe_of(job)
    done = {"study": _study, "answer": _answer, "train": _train}[kind_of(recipe)](recipe, job)
    done = replace(done, seconds=round(time.monotonic() - started, 2))
    if job.keep and kind_of(recipe) != "train":
        # it has no run folder of its own
        Path(job.folder).mkdir(parents=True, exist_ok=True)
        write_json(Path(job.folder) / ANSWERED, asdict(done))
    return done


def recipe_of(job: Job) -> Recipe:
    recipe = registry.load_recipe(dict(job.recipe))
    recipe = recipe.but(measure=registry.load_part(job.by)) if job.by is not None else recipe
    # where the policy is not trained, it stays as able as it was
    return recipe.but(measure=core_metrics(inner=recipe.measure)) if job.beside and recipe.measure and recipe.objective else recipe


def finished(folder: Path) -> Done | None:
    """What the run in a folder measured, with the seconds of its steps; None if it has not finished."""
    if (folder / ANSWERED).exists():
        done = json.loads((folder / ANSWERED).read_text("utf-8"))
        curve = [(tokens, numbers) for tokens, numbers in done["curve"]]
        # an outcome of an older version has no intervals
        return Done(done["numbers"], curve, done["seconds"], spread=done.get("spread", {}))
    if not (folder / "summary.json").exists():
        return None
    summary, lines = json.loads((folder / "summary.json").read_text("utf-8")), read_metrics(folder)
    before, after = (dict(_plain(summary.get(side) or {})) for side in ("before", "after"))
    numbers = {**after, **{BEFORE + k: v for k, v in before.items()}, **_in_training(lines)}
    curve = [(int(line.get("tokens", 0)), measured) for line in lines if (measured := _measured(line))]
    counts = {name: summary[name] for name in ("tokens", "steps", "updates") if name in summary}
    # added up over the steps: a run may have been stopped and resumed
    seconds = sum(line.get("seconds/step") or 0.0 for line in lines)
    return Done({**numbers, **counts}, curve, round(seconds, 2), _stretches(lines), _spread(summary.get("after") or {}))


def drop_weights(folder: Path, models_too: bool = True) -> None:
    """Remove the checkpoints of a finished run, and its models; its configuration, metrics, rollouts and report stay."""
    for name in (CHECKPOINTS, *(MODELS if models_too else ())):
        shutil.rmtree(folder / name, ignore_errors=True)


def kind_of(recipe: Recipe) -> str:
    """What a recipe is for: "study", "answer" or "train"."""
    if recipe.study is not None:
        return "study"
    # a method may both learn and select answers; it is then compared as a trained one
    return "answer" if recipe.select is not None and not recipe.learns else "train"


def number(numbers: Numbers, name: str, method: str) -> float:
    """A number of a run by name. Raises RewardlabError with the known names if there is none."""
    if name not in numbers:
        raise RewardlabError(f"{method} does not measure {name!r} here; it measures: {', '.join(numbers)}")
    return numbers[name]


def study(name: str, seed: int = 0, settings: Mapping[str, Any] | None = None) -> Numbers:
    """The table of a study under these settings. Raises RewardlabError for a method that is not one."""
    recipe = registry.build(name, settings)
    if recipe.study is None:
        raise RewardlabError(f"{name} is not a study; run it with: rewardlab {kind_of(recipe)} {name}")
    return {k: float(v) for k, v in recipe.study(Run(policy=None, seed=seed)).items()}


def _study(recipe: Recipe, job: Job) -> Done:
    assert recipe.study is not None
    return Done({k: float(v) for k, v in recipe.study(Run(policy=None, seed=job.config.seed)).items()}, [], 0.0)


def _answer(recipe: Recipe, job: Job) -> Done:
    config = job.config
    settings = {f.name: getattr(config, f.name) for f in fields(config) if f.name not in ("model", "task")}
    table, each = answer_each(recipe, config.model, config.task, problems=config.eval_problems, **settings)
    measured = {k: v["value"] for k, v in table.items() if isinstance(v, Mapping) and "value" in v}
    tokens = {"tokens": table["tokens"], "tokens_per_answer": table["tokens"] / table["n"]}
    spread = {k: list(v["ci95"]) for k, v in table.items() if k in measured and v.get("ci95")}
    return Done({**measured, **tokens}, [(table["tokens"], measured)], 0.0, spread=spread, each=each)


def _train(recipe: Recipe, job: Job) -> Done:
    folder = Path(job.folder)
    config = job.config.but(start=job.config.seed * APART, out=folder)
    if job.keep:
        # a run that was stopped is resumed from its last checkpoint
        api.resume(folder) if (folder / "config.json").exists() else api.train(recipe, config=config)
        return _finished(folder)
    try:
        # checkpoints would only cost time: a failed run is not resumed
        api.train(recipe, config=config.but(checkpoint_every=0))
        return _finished(folder)
    finally:
        # hundreds of runs, each with its model, would fill the disk
        shutil.rmtree(folder, ignore_errors=True)


def _finished(folder: Path) -> Done:
    done = finished(folder)
    assert done is not None  # training returned
    return done


def _in_training(lines: list[dict[str, Any]]) -> Numbers:
    """What training logged as X. `train.X`: its mean over the last quarter of the steps; `auc.X`: over all, for AREAS."""
    logged = [line for line in lines if line["step"] > 0]  # step 0 is the measurement before training
    late = logged[-max(1, round(len(logged) * LAST)) :] if logged else []
    areas = {f"auc.{k}": v for k, v in _means(logged).items() if k in AREAS or k.startswith("reward/")}
    return {f"train.{k}": v for k, v in _means(late).items()} | areas


def _means(lines: list[dict[str, Any]]) -> Numbers:
    names = dict.fromkeys(k for line in lines for k in line if k not in COUNTERS and not k.startswith(("eval/", "seconds/")))
    # a metric may be missing in some steps, and NaN is written as null
    values = {name: [line[name] for line in lines if line.get(name) is not None] for name in names}
    return {name: sum(v) / len(v) for name, v in values.items() if v}


def _stretches(lines: list[dict[str, Any]]) -> dict[str, list[float]]:
    """The means of CURVES over equal stretches of the run, of a step or more each."""
    curves = {}
    for name in CURVES:
        values = [line[name] for line in lines if line["step"] > 0 and line.get(name) is not None]
        parts = min(POINTS, len(values))
        cuts = [round(i * len(values) / parts) for i in range(parts + 1)] if parts else []
        curves[name] = [round(sum(values[i:j]) / (j - i), 4) for i, j in pairwise(cuts)]
    return {name: curve for name, curve in curves.items() if curve}


def _measured(line: dict[str, Any]) -> Numbers:
    """The held-out measures of a line of metrics.jsonl; empty if it has none."""
    return {k.removeprefix("eval/"): v for k, v in line.items() if k.startswith("eval/") and v is not None}


def _spread(summary: Mapping[str, Any]) -> dict[str, list[float]]:
    """The interval of one side of a summary, under the name of its leading number, which it is of."""
    bounds, name = summary.get("ci95"), next(iter(summary), "")
    return {name: list(bounds)} if bounds and None not in bounds else {}


def _plain(summary: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The names and numbers of one side of a summary."""
    return ((k, float(v)) for k, v in summary.items() if k not in BESIDES and isinstance(v, int | float))


def as_plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as JSON holds them, with lists for tuples: what a record shows is what was run. Parts stay parts."""
    return {name: _as_plain(value) for name, value in settings.items()}


def _as_plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_plain(x) for x in value]
    if isinstance(value, Mapping):
        return {k: _as_plain(v) for k, v in value.items()}
    return value if isinstance(value, Part) else json.loads(json.dumps(value))
