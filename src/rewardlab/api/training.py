"""rewardlab from Python: load, train, resume, evaluate, answer, export.

from rewardlab import build, train

recipe = build("grpo", {"n": 16})
result = train(recipe, task="arithmetic", steps=50)
print(result.summary["before"], result.summary["after"])
"""

from __future__ import annotations

import contextlib
import json
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.core import Problem, Recipe, Run, Score, Task, Trajectory, ask
from rewardlab.engine import distributed
from rewardlab.engine.loop import train as run_training
from rewardlab.engine.step import Settings, fitting_tokens
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import accuracy, count_right, mean_interval, pass_at
from rewardlab.models.load import Policy, absolute_name, learner_model, load_policy
from rewardlab.report.page import write_report
from rewardlab.runs.track import trackers, tracking
from rewardlab.tasks.sources import Shuffled
from rewardlab.util.files import new_folder, sweep, write_json
from rewardlab.util.progress import in_batches

ENDLESS = 10**6


@dataclass(frozen=True)
class Result:
    """A finished run: its folder, its summary, and the live models."""

    out: Path
    summary: dict[str, Any]
    run: Run | None = None


def train(
    recipe: Recipe | str, model: str | Policy | None = None, task: Task | str = "arithmetic", *,
    steps: int | None = None, budget: int | None = None, start: int = 0, seed: int = 0, out: Path | str | None = None,
    device: str = "auto", dtype: str = "auto", max_new: int | None = None, eval_every: int = 10, eval_problems: int = 200,
    checkpoint_every: int = 10, micro_tokens: int | None = None, lora_rank: int | None = None, method: str | None = None,
    settings: Mapping[str, Any] | None = None, track: str | Sequence[str] = (),
) -> Result:  # fmt: skip
    """Train a policy by a recipe (or a method's name) and write everything into a run folder.

    model: None is the small policy that the task is played with.  steps: 100, or as many as the budget allows.  budget: tokens
    generated and scored by all models at which training ends.  start: position in the training data to begin at.  micro_tokens: as
    many as memory holds if None; they change no gradient.  track: trackers that are sent configuration and metrics.
    """
    tracked = trackers(track)
    recipe, task = _recipe(recipe, settings), _task(task)
    model = task.model if model is None else model
    if recipe.study is not None:
        raise RewardlabError(f"{recipe.name} is a study and trains no policy; run it with: rewardlab study {recipe.name}")
    method = method or recipe.name or "recipe"
    given = Settings(
        steps=steps or (ENDLESS if budget else Settings.steps), seed=seed, eval_every=eval_every, eval_problems=eval_problems,
        checkpoint_every=checkpoint_every, record_every=eval_every, budget=budget, start=start,
    )  # fmt: skip
    distributed.init()
    folder = distributed.on_rank_zero(lambda: _new_run_folder(out, f"{method}-{task.name}-s{seed}"))
    try:
        policy = load_policy(model, device, dtype, lora_rank, task) if isinstance(model, str) else model
        given = replace(given, micro_tokens=micro_tokens or distributed.on_rank_zero(lambda: fitting_tokens(policy)))
        run = _start(recipe, policy, task, given, max_new)
        config = {
            "name": folder.name, "method": method, "model": absolute_name(model) if isinstance(model, str) else "given",
            "device": device, "dtype": dtype, "lora_rank": lora_rank, "track": tracked, **_config_of(recipe, run, task, given),
        }  # fmt: skip
        if distributed.is_rank_zero():
            write_json(folder / "config.json", config)
    finally:
        # a run that could not begin leaves no folder behind
        with contextlib.suppress(OSError):
            folder.rmdir()
    return _run(recipe, run, task, given, folder, config, resume=False)


def resume(out: Path | str, task: Task | None = None, model: Policy | None = None) -> Result:
    """Go on with a run as if it had never stopped. A finished run is left as it is.

    task, model: only for runs that were begun in Python with objects that have no name to load them by again.
    """
    distributed.init()
    folder = Path(out)
    config = _config(folder)
    if config.get("engine", "embedded") != "embedded":
        engine = config["engine"].upper()
        raise RewardlabError(f"{folder} was trained through {engine} and cannot be resumed; begin anew from {folder / 'model'}")
    if (folder / "summary.json").exists():
        if not (folder / "report.html").exists():
            sweep(folder)
            write_report(folder)
        return Result(folder, json.loads((folder / "summary.json").read_text()))
    recipe, given = registry.load_recipe(config["recipe"]), Settings(**config["settings"])
    if task is None and not config["source"]:
        raise RewardlabError(f"{folder} was trained on a task made in Python; resume it with rewardlab.resume(folder, task=...)")
    if model is None and config["model"] == "given":
        raise RewardlabError(f"{folder} began from a model made in Python; resume it with rewardlab.resume(folder, model=...)")
    task = _task(task) if task else registry.task(config["source"]["name"], **config["source"]["options"])
    policy = model or load_policy(config["model"], config["device"], config["dtype"], config["lora_rank"], task)
    run = _start(recipe, policy, task, given, config["max_new"])
    return _run(recipe, run, task, given, folder, config, resume=any((folder / "checkpoints").glob("step-*")))


def plan(recipe: Recipe | str, model: str | None = None, task: Task | str = "arithmetic", **rest: Any) -> dict[str, Any]:
    """What `train` with these arguments would compute and need, without training."""
    recipe, task = _recipe(recipe, rest.get("settings")), _task(task)
    policy = load_policy(
        model or task.model, rest.get("device") or "auto", rest.get("dtype") or "auto", rest.get("lora_rank"), task
    )
    rows = recipe.update.problems * recipe.rows_per_problem
    sample = [task.train[i] for i in range(50)]
    asked = policy.read([Trajectory(p) for p in sample], [p.prompt for p in sample])
    prompt = sum(len(t) for t in asked) / len(asked)
    tokens = int(rows * (prompt + (rest.get("max_new") or task.max_new)))
    weights = sum(p.numel() for p in policy.parameters())
    trained = (recipe.objective is not None) + len(recipe.also)
    kept = 1 + len(recipe.also) + ("ref" in recipe.needs)
    activations = policy.activation_bytes(min(tokens, rest.get("micro_tokens") or fitting_tokens(policy)))
    return {
        "formula": str(recipe), "columns": [*task.columns, *recipe.needs], "tokens_per_step": tokens, "rows_per_step": rows,
        "memory_bytes": 4 * weights * (kept + 3 * trained) + activations, "parameters": weights,
    }  # fmt: skip


def evaluate(
    model: str | Policy, task: Task | str, *, k: Sequence[int] = (1, 8), problems: int = 200, temperature: float = 1.0,
    seed: int = 0, device: str = "auto", max_new: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """pass@k on held-out problems, with 95% intervals over problems."""
    task = _task(task)
    policy = load_policy(model, device, task=task) if isinstance(model, str) else model
    run = _start(Recipe(), policy, task, Settings(seed=seed), max_new)
    asked, n = _held_out(task, problems), max(k)
    right = [sum(row) for few in in_batches("evaluating", asked) for row in count_right(few, run, n, temperature)]
    found = {f"pass@{i}": _measured([pass_at(i, n, r) for r in right]) for i in k}
    return {"model": str(model) if isinstance(model, str) else policy.name, "task": task.name, "n": len(asked), **found}


def answer(
    recipe: Recipe | str, model: str | Policy | None = None, task: Task | str | None = None, prompt: str | None = None, *,
    problems: int = 100, seed: int = 0, device: str = "auto", max_new: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Answer one prompt, or a task's held-out problems, by a method's rollout, reward and selection."""
    recipe = _recipe(recipe)
    if recipe.select is None or recipe.rollout is None:
        raise RewardlabError(
            f"{recipe.name or 'this recipe'} trains a policy and selects no answer; best_of_n and majority_vote do"
        )
    if task is None and prompt is None:
        raise RewardlabError("nothing to answer: give a task or a prompt")
    one = Task("prompt", (), (ask(prompt or ""),), "exact_match")
    task = _task(task) if task is not None else one
    model = task.model if model is None else model
    policy = load_policy(model, device, task=task) if isinstance(model, str) else model
    run = _start(recipe, policy, task, Settings(seed=seed), max_new)
    asked, before = _held_out(task, problems), run.token_count.total
    groups, chosen = [], []
    for few in in_batches("answering", asked):
        found = recipe.rollout(few, run)
        scores = recipe.reward(found, run) if recipe.reward else [[Score(None)] * len(g) for g in found]
        groups += found
        chosen += [recipe.select(g, s, run) for g, s in zip(found, scores, strict=True)]
    tokens = run.token_count.total - before
    about = {"method": recipe.name, "model": model if isinstance(model, str) else policy.name, "replies": len(groups[0])}
    if prompt is not None:
        return {**about, "prompt": prompt, "answer": chosen[0].reply}
    verdicts = run.verify([[t] for t in chosen], run)
    single = [sum(s.value or 0.0 for s in row) / len(row) for row in run.verify(groups, run)]
    right = [float(row[0].value or 0.0) for row in verdicts]
    measured = {"accuracy": _measured(right), "pass@1": _measured(single), "tokens": tokens}
    return {**about, "task": task.name, "n": len(asked), **measured}


def export(run: Path | str, out: Path | str, last: bool = False) -> dict[str, Any]:
    """Write a run's policy as an ordinary Hugging Face checkpoint: the best by held-out measure, or the last."""
    folder = Path(run)
    _config(folder)
    source = folder / "best" if (folder / "best").is_dir() and not last else folder / "model"
    if not source.is_dir():
        raise RewardlabError(f"{folder} holds no {source.name} model yet; resume the run with: rewardlab train --resume {folder}")
    if Path(out).exists() and any(Path(out).iterdir()):
        raise RewardlabError(f"{out} exists and is not empty; choose a new folder")
    with new_folder(Path(out)) as new:
        shutil.copytree(source, new, dirs_exist_ok=True)
    return {"run": str(folder), "which": "best" if source.name == "best" else "last", "out": str(out)}


# ---- within ----------------------------------------------------------------------------------------------------------


def _config_of(recipe: Recipe, run: Run, task: Task, given: Settings) -> dict[str, Any]:
    return {
        "task": task.name, "seed": given.seed, "steps": given.steps, "max_new": run.max_new,
        "params": sum(p.numel() for p in run.policy.parameters()), "formula": str(recipe), "recipe": recipe.to_json(),
        "source": task.source and dict(task.source), "settings": asdict(given), "versions": versions(),
    }  # fmt: skip


def _recipe(recipe: Recipe | str, settings: Mapping[str, Any] | None = None) -> Recipe:
    return registry.build(recipe, settings or {}) if isinstance(recipe, str) else recipe


def _task(task: Task | str) -> Task:
    """A task by name; the problems of one that was made of a plain list come round in an order of their own every time."""
    task = registry.task(task) if isinstance(task, str) else task
    if isinstance(task.train, list | tuple):
        if not task.train:
            raise RewardlabError(f"the task {task.name} holds no problem to train on")
        task = replace(task, train=Shuffled(task.train))
    return task


def _held_out(task: Task, n: int) -> list[Problem]:
    if not task.test:
        raise RewardlabError(f"the task {task.name} holds no problems to measure on")
    return list(task.test[:n])


def _start(recipe: Recipe, policy: Policy, task: Task, given: Settings, max_new: int | None) -> Run:
    run = Run(policy, steps=given.steps, budget=given.budget, seed=given.seed, max_new=max_new or task.max_new)
    run.verify = registry.part("reward", task.verifier)
    if any(need == "ref" or need.startswith("reference.") for need in recipe.needs):
        run.reference = policy.copy("reference")
    for learner in recipe.also:
        run.models[learner.name] = learner_model(learner, policy)
    return run


def _run(recipe: Recipe, run: Run, task: Task, given: Settings, folder: Path, config: dict[str, Any], resume: bool) -> Result:
    recipe = recipe if recipe.measure else recipe.but(measure=accuracy())
    about = {k: config[k] for k in ("method", "model", "task", "seed")}
    tracked = config.get("track", ()) if distributed.is_rank_zero() else ()
    try:
        with tracking(tracked, folder, config, resumed=(folder / "track.json").exists()) as track:
            return Result(folder, run_training(recipe, run, task, given, folder, about, resume, track), run)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(str(folder)) from None


def _new_run_folder(out: Path | str | None, name: str) -> Path:
    """`out`, or runs/NAME with the first free number behind it."""
    if out is not None:
        folder = Path(out)
        if (folder / "config.json").exists():
            raise RewardlabError(f"{folder} already holds a run; go on with it by --resume {folder}, or choose another --out")
    else:
        tries = (Path("runs") / (name if i == 1 else f"{name}-{i}") for i in range(1, 10_000))
        folder = next(f for f in tries if not f.exists())
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text())
    except (OSError, json.JSONDecodeError) as e:
        raise RewardlabError(f"{folder} is not a run folder: {e}") from e
    if "recipe" not in config:
        raise RewardlabError(f"{folder} is a model checkpoint, not a run folder")
    return config


def versions() -> dict[str, str]:
    """What a result depends on."""
    packages = ("rewardlab", "torch", "transformers", "tokenizers", "numpy")
    return {"python": platform.python_version(), **{p: metadata.version(p) for p in packages}}


def _measured(values: Sequence[float]) -> dict[str, Any]:
    low, high = mean_interval(values)
    return {"value": sum(values) / len(values), "ci95": [low, high]}
