"""Training by a recipe into a run folder, and resuming it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.core import Recipe, Run, Task
from rewardlab.engine import distributed
from rewardlab.engine.loop import train as run_training
from rewardlab.engine.step import fitting_tokens
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import accuracy
from rewardlab.models.load import Policy, absolute_name
from rewardlab.report.page import write_report
from rewardlab.runs.config import COLUMNS, IN_PYTHON, RunConfig, read_config
from rewardlab.runs.track import trackers, tracking
from rewardlab.util.files import sweep, write_json

from .inputs import begin_run, configured, policy_of, recipe_of, task_of, versions


@dataclass(frozen=True)
class Result:
    """A finished run: its folder, its summary, and the live models (none where another engine trained)."""

    out: Path
    summary: dict[str, Any]
    run: Run | None = None


def train(
    recipe: Recipe | str, model: str | Policy | None = None, task: Task | str | None = None, *,
    config: RunConfig | None = None, settings: Mapping[str, Any] | None = None, **changes: Any,
) -> Result:  # fmt: skip
    """Train a policy by a recipe (or a method's name) and write everything into a run folder.

    model, task: names, or objects made in Python; they may also be named in the configuration.  settings: of the method, if it
    is given by name.  changes: fields of RunConfig by name (steps, seed, out ...), in place of those of `config`.
    Raises RewardlabError for a wrong value or name, before anything is written.
    """
    config = configured(config, model, task, changes)
    # trackers() refuses unknown or missing trackers now, before anything is written
    recipe, config = recipe_of(recipe, settings), config.but(track=tuple(trackers(config.track)))
    task = task_of(task, config)
    if recipe.study is not None:
        raise RewardlabError(f"{recipe.name} is a study and trains no policy; run it with: rewardlab study {recipe.name}")
    model_name = config.model or task.model if model is None or isinstance(model, str) else None
    config = config.but(
        method=config.method or recipe.name or "recipe", model=absolute_name(model_name) if model_name else IN_PYTHON,
        max_new=config.max_new or task.max_new,
    )  # fmt: skip
    train_by = {"embedded": _train_embedded, "trl": _train_through_trl}[config.engine]
    # no folder is made before all arguments have been checked
    with _run_folder(config, task) as folder:
        return train_by(recipe, model, task, config, folder)


def resume(out: Path | str, task: Task | None = None, model: Policy | None = None) -> Result:
    """Resume a run as if it had never stopped. A finished run is left as it is.

    task, model: only for runs that were started in Python with objects that have no name to load them by again.
    """
    distributed.init()
    folder = Path(out)
    document = read_config(folder)
    config = RunConfig.from_json(document)
    if config.engine != "embedded":
        engine = config.engine.upper()
        raise RewardlabError(
            f"{folder} was trained through {engine} and cannot be resumed; start a new run from {folder / 'model'}"
        )
    if (folder / "summary.json").exists():
        # the run was killed after its last step, while its report was written
        if not (folder / "report.html").exists():
            sweep(folder)
            write_report(folder)
        return Result(folder, json.loads((folder / "summary.json").read_text()))
    recipe = registry.load_recipe(document["recipe"])
    if task is None and not document["source"]:
        raise RewardlabError(f"{folder} was trained on a task made in Python; resume it with rewardlab.resume(folder, task=...)")
    if model is None and config.model == IN_PYTHON:
        raise RewardlabError(f"{folder} began from a model made in Python; resume it with rewardlab.resume(folder, model=...)")
    # the columns are among the options of the source; given twice, they would be refused
    without_columns = config.but(**dict.fromkeys(COLUMNS))
    task = task_of(task or registry.task(document["source"]["name"], **document["source"]["options"]), without_columns)
    run = begin_run(recipe, policy_of(model, config, task), task, config)
    return _run(recipe, run, task, config, folder, document, resumed=any((folder / "checkpoints").glob("step-*")))


def _train_embedded(recipe: Recipe, model: str | Policy | None, task: Task, config: RunConfig, folder: Path) -> Result:
    policy = policy_of(model, config, task)
    # measured on rank 0 and shared: all ranks must make the same micro-batches
    micro_tokens = config.micro_tokens or distributed.on_rank_zero(lambda: fitting_tokens(policy))
    config = replace(config, micro_tokens=micro_tokens).settled()
    run = begin_run(recipe, policy, task, config)
    document = _document(recipe, task, config, folder) | {"params": sum(p.numel() for p in policy.parameters())}
    if distributed.is_rank_zero():
        # before the first step, so that a run that is stopped in it can be resumed
        write_json(folder / "config.json", document)
    return _run(recipe, run, task, config, folder, document, resumed=False)


def _train_through_trl(recipe: Recipe, model: str | Policy | None, task: Task, config: RunConfig, folder: Path) -> Result:
    # imported here: TRL is an optional dependency
    from rewardlab.engines import trl

    config = config.settled()
    document = _document(recipe, task, config, folder)
    document["versions"] |= trl.versions()
    verify = registry.part("reward", task.verifier)
    model = config.model if model is None or isinstance(model, str) else model
    return Result(folder, trl.train(_with_measure(recipe), model, task, config, folder, document, verify=verify))


def _run(recipe: Recipe, run: Run, task: Task, config: RunConfig, folder: Path, document: dict[str, Any], resumed: bool) -> Result:
    about = {k: document[k] for k in ("method", "model", "task", "seed")}
    tracked = config.track if distributed.is_rank_zero() else ()
    try:
        with tracking(tracked, folder, document, resumed=(folder / "track.json").exists()) as track:
            return Result(folder, run_training(_with_measure(recipe), run, task, config, folder, about, resumed, track), run)
    except KeyboardInterrupt:
        # the command line says how to resume the run, and needs its folder for that
        raise KeyboardInterrupt(str(folder)) from None


def _with_measure(recipe: Recipe) -> Recipe:
    """The recipe, with pass@1 as its measure if it has none of its own."""
    return recipe if recipe.measure else recipe.but(measure=accuracy())


def _document(recipe: Recipe, task: Task, config: RunConfig, folder: Path) -> dict[str, Any]:
    """The contents of config.json."""
    return {
        "name": folder.name, **config.to_json(), "task": task.name, "source": task.source and dict(task.source),
        "formula": str(recipe), "recipe": recipe.to_json(), "versions": versions(),
    }  # fmt: skip


@contextlib.contextmanager
def _run_folder(config: RunConfig, task: Task) -> Iterator[Path]:
    """The folder of a new run; it is removed again if the run fails before anything is written."""
    name = f"{config.method}-{task.name}".replace("/", "-")
    if config.engine == "embedded":
        distributed.init()
        folder = distributed.on_rank_zero(lambda: _new_folder(config.out, f"{name}-s{config.seed}"))
    else:
        # accelerate connects TRL's processes later: until then all of them must choose the same folder by themselves
        folder = _new_folder(config.out or Path("runs") / f"{name}-{config.engine}-s{config.seed}", name)
    try:
        yield folder
    except BaseException:
        # rmdir removes empty folders only: once something is written, the folder stays
        with contextlib.suppress(OSError):
            folder.rmdir()
        raise


def _new_folder(out: Path | str | None, name: str) -> Path:
    """`out`, which must not hold a run, or the first of runs/NAME, runs/NAME-2, ... that does not exist."""
    if out is not None:
        folder = Path(out)
        if (folder / "config.json").exists():
            raise RewardlabError(f"{folder} already holds a run; resume it with --resume {folder}, or choose another --out")
    else:
        folders = (Path("runs") / (name if i == 1 else f"{name}-{i}") for i in range(1, 10_000))
        folder = next(f for f in folders if not f.exists())
    # exist_ok: all processes of a TRL run make the same folder
    folder.mkdir(parents=True, exist_ok=True)
    return folder
