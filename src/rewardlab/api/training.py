"""Training by a recipe into a run folder, and resuming it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.api.arguments import check_settings, named_model, named_task, run_folder
from rewardlab.api.changes import base_of, check_base, check_given, check_same, digest, prepare, resumable, write
from rewardlab.api.first_rows import check_episodes
from rewardlab.api.given_rewards import give_again
from rewardlab.api.idle import tell_idle
from rewardlab.api.inputs import (
    begin_run,
    configured,
    corrected,
    in_environment,
    policy_of,
    recipe_of,
    require_learning,
    require_packages,
    require_weights,
    task_of,
    trainable,
    versions,
)
from rewardlab.api.judges import with_judges
from rewardlab.api.machine import check_disk, disk_bytes
from rewardlab.api.measuring import measured, watched, watching
from rewardlab.api.named_scorers import require_scorers
from rewardlab.api.order import in_order
from rewardlab.api.pair_labels import check_rows
from rewardlab.api.prompt_lengths import fit_prompts, text_reader
from rewardlab.api.result import Result
from rewardlab.api.stages import check_stages
from rewardlab.core import Recipe, Run, Task
from rewardlab.data.in_memory import GivenRows
from rewardlab.engine import distributed
from rewardlab.engine.learner import fitting_tokens
from rewardlab.engine.loop import train as run_training
from rewardlab.engine.rates import say_rates, with_rates
from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import absolute_name
from rewardlab.models.load import Policy
from rewardlab.policies.template_kwargs import kwargs_in
from rewardlab.report.page import write_report
from rewardlab.runs.config import COLUMNS, IN_PYTHON, RunConfig
from rewardlab.runs.folder import checkpointed, new_run_folder, saying_how_to_resume
from rewardlab.runs.lock import locked
from rewardlab.runs.sources import fingerprints
from rewardlab.runs.track import trackers, tracking
from rewardlab.tasks.pictures import shows_any
from rewardlab.util.files import disk_errors, sweep, write_json
from rewardlab.util.progress import console
from rewardlab.util.ranks import is_first


@in_order
def train(
    recipe: Recipe | str, model: str | Path | Policy | None = None, task: Task | Path | str | None = None, *,
    config: RunConfig | None = None, settings: Mapping[str, Any] | None = None, reward: Any = None, eval_on: Sequence[str] = (),
    watch: str | bool = False, **changes: Any,
) -> Result:  # fmt: skip
    """Train a policy by a recipe (or a method's name) and write everything into a run folder.

    model, task: names, or objects made in Python; they may also be named in the configuration.  settings: of the method, if it
    is given by name.  reward: in place of the method's own: a plain function or an object that can be called, whose arguments are
    given by name (docs/REWARDS.md), a text as of --reward, a reward, or a list of these, which are added up. A run with a function
    that is in no file by its name is resumed with the same one.  eval_on: benchmarks of rewards on which the model is measured too,
    at each evaluation.  watch: what pays the policy is measured then as well, on replies of its own or of a file with labels.
    changes: fields of RunConfig by name (steps, seed, out ...), in place of those of `config`.
    Raises RewardlabError for a wrong value or name, for a folder that holds a run, is in use or cannot be written to, and for a
    disk that is too small, before anything is written. Raises errors.Stopped, a KeyboardInterrupt, after Ctrl-C or SIGTERM, once
    the step is done and saved.
    """
    check_settings(recipe, settings, changes)
    asked, model = recipe, named_model(model)
    config = configured(config, model, task, changes)
    recipe, config = with_judges(recipe_of(recipe, settings, reward)), config.but(track=tuple(trackers(config.track)))
    require_learning(recipe)
    check_stages(recipe, config, asked)
    task = trainable(task_of(task, config))
    require_packages(recipe, task)
    require_scorers(recipe)
    check_rows(recipe, task)
    tell_idle(recipe, task, config)
    recipe = corrected(in_environment(recipe, task), config.mismatch)
    recipe = watching(watched(measured(recipe, task), eval_on), watch)
    model_name = config.model or task.model if model is None or isinstance(model, str) else None
    require_weights(model_name or model)
    config = config.but(
        method=config.method or recipe.name or "recipe", model=absolute_name(model_name) if model_name else IN_PYTHON,
        max_new=config.max_new or task.max_new,
    )  # fmt: skip
    train_by = {"embedded": _train_embedded, "trl": _train_through_trl}[config.engine]
    # no folder is made before all arguments have been checked
    with _run_folder(config, task) as folder:
        return train_by(recipe, model, task, config, folder)


@in_order
def resume(
    out: Path | str | Result, task: Any = None, model: Policy | None = None, *, reward: Any = None,
    reward_changed: bool = False, **changes: Any,
) -> Result:  # fmt: skip
    """Resume a run as if it had never stopped. A finished run is left as it is, unless it is extended.

    task, model, reward: only for runs that were started in Python with objects that have no name to load them by again: the same
    ones. A function is known by its name and its code.
    reward_changed: resume although the rows, or a file of a reward, tool, corpus or method, have changed since the run began.
    changes: settings of `runs.config.ON_RESUME` by name. More steps, or a larger budget, extend the run, also a finished one: it
    does what a run of so many steps would do from here on. The steps done are what they were: where the learning rate falls
    (lr_end), or a part reads `run.progress`, they took it from the old number of steps; and a finished run was evaluated after
    its last step.

    Raises RewardlabError, before anything is written, while the run is still running, for fewer steps than it has done, and for a
    file of a reward that has changed.
    """
    distributed.init()
    folder, model = run_folder(out), named_model(model)
    # refused before the folder is looked at
    task = _read_again(folder, named_task(task))
    check_same(folder, resumable(folder), task)
    # nothing is left to do, and nothing is written: the folder may be one that cannot be written to
    if not changes and distributed.on_rank_zero(lambda: all((folder / name).exists() for name in ("summary.json", "report.html"))):
        return _finished(folder)
    with contextlib.ExitStack() as stack:
        distributed.on_rank_zero(lambda: _take(stack, folder))
        document, changed = distributed.on_rank_zero(lambda: prepare(folder, changes, reward_changed))
        if not changed and distributed.on_rank_zero((folder / "summary.json").exists):
            # the run was killed after its last step, while its report was written
            distributed.on_rank_zero(lambda: _report(folder))
            return _finished(folder)
        give_again(folder, registry.load_recipe(document["recipe"]), reward, reward_changed)
        stack.enter_context(saying_how_to_resume(folder))
        return _resume(folder, document, changed, task, model)


def _read_again(folder: Path, task: Any) -> Any:
    """The task; of rows given in Python, the one that they made when the run began."""
    if not isinstance(task, GivenRows):
        return task
    document = resumable(folder)
    config = RunConfig.from_json(document)
    columns = {name: getattr(config, name) for name in COLUMNS if name != "test"}
    return registry.task(task, **columns, seed=document.get("order_seed", 0))


def _finished(folder: Path) -> Result:
    return Result(folder, json.loads((folder / "summary.json").read_text()))


def _take(stack: contextlib.ExitStack, folder: Path) -> None:
    with disk_errors(folder):
        stack.enter_context(locked(folder))


def _report(folder: Path) -> None:
    if not (folder / "report.html").exists():
        sweep(folder)
        write_report(folder)


def _resume(folder: Path, document: dict[str, Any], changed: bool, task: Task | None, model: Policy | None) -> Result:
    config, recipe = RunConfig.from_json(document), registry.load_recipe(document["recipe"])
    check_given(folder, document, task, model)
    # the columns are among the options of the source; given twice, they would be refused
    without_columns = config.but(**dict.fromkeys(COLUMNS))
    if task is None:
        task = registry.task(document["source"]["name"], **document["source"]["options"])
    # older versions gave rows the same order under every seed
    task = task_of(task, without_columns.but(seed=document.get("order_seed", 0)))
    policy = policy_of(model, config, task)
    check_base(folder, document, policy)
    tell_processes(document, distributed.world_size())
    # a run of an older version was begun without looking at its prompts, and is resumed so
    if "overlong" in document:
        task, _ = fit_prompts(task, policy, config, recipe, written="written" in document.get("prompts", {}))
    if document.get("problems") not in (None, digest(task)):
        raise RewardlabError(f"{folder} was trained on other problems than those of the task {task.name} that is given now")
    # older versions saved a recipe without a measure, where it is now chosen before it is saved
    recipe = recipe if recipe.measure else measured(recipe, task)
    run = begin_run(recipe, policy, task, config)
    if changed:
        # only now that everything is there: a run that cannot be resumed so stays as it was
        distributed.on_rank_zero(lambda: write(folder, document))
    return _run(recipe, run, task, config, folder, document, resumed=bool(checkpointed(folder)))


def tell_processes(document: dict[str, Any], now: int) -> None:
    """Say that a run goes on with another number of processes than it began with: each has random numbers of its own."""
    before = document.get("processes", now)
    if before != now and distributed.is_rank_zero():
        console.print(
            f"warning: the run was begun by {before} process{'es' * (before != 1)}, and goes on with {now}: it is trained on as "
            "well, but samples other replies from here on than it would have sampled",
            highlight=False, markup=False, soft_wrap=True,
        )  # fmt: skip


def _template_of(policy: Policy) -> Any:
    """The chat template of a policy; None where it has none, as one of motor commands."""
    return getattr(getattr(policy, "tokenizer", None), "chat_template", None)


def _train_embedded(recipe: Recipe, model: str | Policy | None, task: Task, config: RunConfig, folder: Path) -> Result:
    policy = policy_of(model, config, task)
    check_episodes(recipe, task, policy, config)
    task, prompts = fit_prompts(task, policy, config, recipe)
    # measured on rank 0 and shared: all ranks must make the same micro-batches
    micro_tokens = config.micro_tokens or distributed.on_rank_zero(lambda: fitting_tokens(policy))
    config = replace(config, micro_tokens=micro_tokens).settled()
    run = begin_run(recipe, policy, task, config)
    say_rates(recipe, policy, run.models)
    recipe = with_rates(recipe, run)
    about_run = {
        "prompts": prompts,
        "processes": distributed.world_size(),
        "params": sum(p.numel() for p in policy.parameters()),
        "loaded_dtype": getattr(policy, "loaded_dtype", "float32"),
        **base_of(policy),
        **({"chat_template_kwargs": told} if (told := kwargs_in(_template_of(policy))) else {}),
    }
    document = _document(recipe, task, config, folder) | about_run
    needed = disk_bytes(recipe, policy, run.models, config)
    distributed.on_rank_zero(lambda: check_disk(folder, needed))
    if distributed.is_rank_zero():
        # before the first step, so that a run that is stopped in it can be resumed
        with disk_errors(folder / "config.json"):
            write_json(folder / "config.json", document)
    return _run(recipe, run, task, config, folder, document, resumed=False)


def _train_through_trl(recipe: Recipe, model: str | Policy | None, task: Task, config: RunConfig, folder: Path) -> Result:
    # imported here: TRL is an optional dependency
    from rewardlab.backends import trl

    config = config.settled()
    reader = text_reader(model, config, task)
    check_episodes(recipe, task, reader, config)
    task, prompts = fit_prompts(task, reader, config, recipe)
    document = _document(recipe, task, config, folder) | {"prompts": prompts}
    document["versions"] |= trl.versions()
    verify = registry.verifier(task.verifier)
    model = config.model if model is None or isinstance(model, str) else model
    return Result(folder, trl.train(recipe, model, task, config, folder, document, verify=verify))


def _run(recipe: Recipe, run: Run, task: Task, config: RunConfig, folder: Path, document: dict[str, Any], resumed: bool) -> Result:
    about = {k: document[k] for k in ("method", "model", "task", "seed")}
    tracked = config.track if distributed.is_rank_zero() else ()
    # a tool, an environment or a reward of the user may change the current folder
    there = folder.absolute()
    with (
        _current_folder_kept(),
        tracking(tracked, there, document, resumed=(there / "track.json").exists()) as track,
    ):
        return Result(folder, run_training(recipe, run, task, config, there, about, resumed, track), run)


@contextlib.contextmanager
def _current_folder_kept() -> Iterator[None]:
    before = Path.cwd()
    try:
        yield
    finally:
        os.chdir(before)


def _document(recipe: Recipe, task: Task, config: RunConfig, folder: Path) -> dict[str, Any]:
    """The contents of config.json."""
    return {
        "name": folder.name, **config.to_json(), "task": task.name, "source": task.source and dict(task.source),
        "problems": None if task.source and not shows_any(task) else digest(task), "order_seed": config.seed,
        "formula": str(recipe), "recipe": recipe.to_json(), "files": fingerprints(recipe, task.source), "versions": versions(),
    }  # fmt: skip


@contextlib.contextmanager
def _run_folder(config: RunConfig, task: Task) -> Iterator[Path]:
    """The folder of a new run, locked by the first of the processes that train together."""
    name = f"{config.method}-{task.name}".replace("/", "-")
    with contextlib.ExitStack() as stack:
        if config.engine == "embedded":
            distributed.init()
            make = new_run_folder(config.out, f"{name}-s{config.seed}")
            folder = distributed.on_rank_zero(lambda: stack.enter_context(make))
        else:
            # accelerate connects TRL's processes later: until then all of them must choose the same folder by themselves
            folder = Path(config.out or Path("runs") / f"{name}-{config.engine}-s{config.seed}")
            if is_first():
                stack.enter_context(new_run_folder(folder, name))
        stack.enter_context(saying_how_to_resume(folder))
        yield folder
