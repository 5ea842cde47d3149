"""Export of a run's policy as a checkpoint, and of a recipe to another engine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from rewardlab import registry
from rewardlab.api.arguments import run_folder
from rewardlab.api.checkpoint_choice import choice
from rewardlab.api.measuring import begun_again
from rewardlab.api.result import Result
from rewardlab.core import Recipe, Task
from rewardlab.engine import checkpoint
from rewardlab.errors import RewardlabError, unknown
from rewardlab.models.exported_scorer import end_where_scored
from rewardlab.models.formats import FORMATS, cast, stored_dtype
from rewardlab.models.layouts import layout_of_run, note_layout
from rewardlab.models.reads import words
from rewardlab.models.writing import FILE as WRITES
from rewardlab.models.writing import WRITER, how_written, names_writer, write_writer
from rewardlab.policies.adapter import CONFIG
from rewardlab.policies.ends import SCORED_AT
from rewardlab.runs.named import read_config
from rewardlab.settings.domain import KWARGS, PATH, POSITIVE, one_of
from rewardlab.text.principles import AFTER, ASKED_AT
from rewardlab.util.files import new_folder
from rewardlab.util.reads import stated_reads, write_reads

DTYPE = one_of("auto", *FORMATS.values())
ENGINES = one_of("verl")
OWN = ("rewardlab_denoiser", "rewardlab_actor", "rewardlab_surprise")
"""Model types that rewardlab alone reads."""


def export(
    run: Path | str | Result, out: Path | str, last: bool = False, *, adapter: bool = False, dtype: str = "auto",
    model: str = "policy",
) -> dict[str, Any]:  # fmt: skip
    """Write a run's policy as an ordinary Hugging Face checkpoint: the best by held-out measure, or with `last` the last.

    model: a model that learned beside the policy, such as "critic", as it was at the newest checkpoint, in float32 unless `dtype`
    says otherwise.

    LoRA adapters are merged into their base model; with `adapter` they are copied as they are, in PEFT's format.  dtype: number
    format of the weights. "auto" is that of the model which the run began from; in the run's folder all are float32.

    Returns what was written and why: which step, its measure, and a warning if training never improved on the untrained model.
    Raises RewardlabError if the run has no policy yet, if nothing but rewardlab could read it, or if `out` is a folder with files
    in it.
    """
    DTYPE.check("dtype", dtype)
    folder, out = run_folder(run), PATH.check("out", out)
    document = read_config(folder)  # raises if the folder is not a run
    # a scorer and the model that writes for it are of one step, the newest, as they are measured
    named = "reward" if model == "policy" and not adapter and names_writer(document.get("recipe")) else model
    if named != "policy":
        return _learner(folder, Path(out), named, dtype, adapter)
    # a run without evaluations has no best policy
    source = folder / "best" if (folder / "best").is_dir() and not last else folder / "model"
    if not source.is_dir():
        raise RewardlabError(
            f"{folder} has no {source.name} yet; resume the run with: rewardlab train --resume {quote(str(folder))}"
        )
    _refuse_files(Path(out))
    _refuse_own_kind(source)
    # the folder appears under its name only when it is complete
    with new_folder(Path(out)) as new:
        what = _copy(source, new) if adapter else _whole(source, new, document.get("loaded_dtype") if dtype == "auto" else dtype)
        if _classifies(new):
            end_where_scored(new)
            _note(new, layout_of_run(folder))
    which = "best" if source.name == "best" else "last"
    return {"run": str(folder), "which": which, "out": str(out), **what, **_needs(Path(out)), **choice(folder, source.name)}


def export_recipe(
    recipe: Recipe, out: Path | str, *, task: Task | None = None, steps: int = 100, max_new: int | None = None, rows: int = 4096,
    engine: str = "verl", check: Sequence[str] | None = None, chat_template_kwargs: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Write a recipe as the files that another engine takes: its configuration, reward, credit, loss, data, and a script.

    task: its problems become the engine's data (`rows` of them if it has no end), and its verifier is the one behind `correct()`.
    max_new: the most tokens of a reply (None: the task's).
    chat_template_kwargs: what the model's chat template is told beside the messages.
    check: arguments of the script, under which the engine's own code validates what was written (None: it is not asked).

    Returns what was written, how to start it, and in what the engine differs; where it cannot carry the recipe, nothing is written
    and `why` says so in a line. Raises RewardlabError for an `out` with files in it, and for problems that are not text.
    """
    from rewardlab.backends import verl

    ENGINES.check("engine", engine)
    POSITIVE.check("rows", rows)
    out = Path(PATH.check("out", out))
    if why := verl.cannot_carry(recipe):
        return {"method": recipe.name, "engine": engine, "why": why, "differs": []}
    if task is None and any(part.name in ("correct", "detail") for part in recipe.reward.walk()):  # type: ignore[union-attr]
        raise RewardlabError(f"the reward of {recipe.name} asks the task's verifier: name the task, or give a reward of your own")
    written = verl.write(
        recipe, out, task=task, steps=steps, max_new=max_new or (task.max_new if task else 1024), rows=rows,
        methods=_own_methods(recipe), told=KWARGS.check("chat_template_kwargs", chat_template_kwargs or {}),
    )  # fmt: skip
    if check is not None:
        verl.require()
        from rewardlab.backends.verl.checking import check as checked

        written["accepted"] = checked(out, check)
    return {**written, "why": "", "start": f"sh {quote(str(out / 'run.sh'))} actor_rollout_ref.model.path=MODEL"}


def _own_methods(recipe: Recipe) -> list[Path]:
    """The files of the user's methods (REWARDLAB_METHODS) whose parts a recipe has."""
    methods = {part.partition(":")[2].partition("/")[0] for part in _names(recipe.to_json()) if "/" in part}
    files = (registry.file_of(name) for name in methods)
    return sorted(path for path in files if registry.PACKAGE not in path.parents)


def _names(saved: Any) -> Iterator[str]:
    """The names of the parts in plain data."""
    if isinstance(saved, dict):
        yield from [saved["part"]] if isinstance(saved.get("part"), str) else []
    for value in saved.values() if isinstance(saved, dict) else saved if isinstance(saved, list) else ():
        yield from _names(value)


def _refuse_files(out: Path) -> None:
    if out.exists() and any(out.iterdir()):
        raise RewardlabError(f"{out} exists and is not empty; choose a new folder")


def _learner(folder: Path, out: Path, name: str, dtype: str, adapter: bool) -> dict[str, Any]:
    """Write a model that learned beside the policy, from the newest checkpoint."""
    if adapter:
        raise RewardlabError(f"--adapter is for the run's policy, which {name!r} is not: leave it out")
    _refuse_files(out)
    ops = begun_again(folder, f"give its model {name!r}")
    trained = [other for other, learner in ops.learners.items() if learner.recipe.objective is not None]
    if name not in trained:
        raise unknown("trained model of this run", name, trained)
    checkpoint.load_weights(folder / "checkpoints", ops.learners)
    with new_folder(out) as new:
        ops.learners[name].model.save(new)
        write_reads(new, getattr(ops.learners[name].model, "reads", ""))
        _refuse_own_kind(new)
        if _classifies(new):
            end_where_scored(new)
            _note(new, layout_of_run(folder) if name == "reward" else "")
        if name == "reward" and (by := how_written(ops.recipe)):
            write_writer(new, by, ops.run, ops.recipe.name or "", out)
        for part in [new, *filter(Path.is_dir, [new / WRITER])] if dtype != "auto" else []:
            cast(part, dtype)
    return {"run": str(folder), "which": name, "out": str(out), "dtype": stored_dtype(out), **_needs(out)}


def _note(new: Path, layout: str) -> None:
    """Write how the input of an exported reward model is written, where that is not prompt and reply alone."""
    asked = stated_reads(new) == AFTER
    if layout or asked:
        note_layout(new, layout, ASKED_AT if asked else SCORED_AT)


def _refuse_own_kind(source: Path) -> None:
    config = source / "config.json"
    kind = json.loads(config.read_text("utf-8")).get("model_type") if config.is_file() else None
    if kind in OWN:
        raise RewardlabError(
            f"{source} is no ordinary language model ({kind}), and only rewardlab reads it: use it from there, by "
            f"--model {source} or rewardlab.load_policy"
        )


def _copy(source: Path, new: Path) -> dict[str, Any]:
    """Copy an adapter."""
    if not (source / CONFIG).is_file():
        raise RewardlabError(f"{source} holds whole weights, no adapter (the run had no --lora-rank): export it without --adapter")
    shutil.copytree(source, new, dirs_exist_ok=True)
    base = json.loads((new / CONFIG).read_text("utf-8"))["base_model_name_or_path"]
    return {"kind": "LoRA adapter", "base": base}


def _whole(source: Path, new: Path, dtype: str | None) -> dict[str, Any]:
    """Write the whole model, in a format (None: the one it is stored in)."""
    if (source / CONFIG).is_file():
        from rewardlab.models.load import load_policy

        # loaded without a rank: the adapters are merged
        policy = load_policy(str(source), "cpu", "float32")
        policy.save(new)
        dtype = dtype or policy.loaded_dtype
    else:
        shutil.copytree(source, new, dirs_exist_ok=True)
    if dtype and dtype != stored_dtype(new):
        cast(new, dtype)
    return {"kind": _kind(new), "dtype": stored_dtype(new)}


def _kind(folder: Path) -> str:
    if not _classifies(folder):
        return "model"
    config = json.loads((folder / "config.json").read_text("utf-8"))
    labels = config.get("id2label") or {"0": "score"}
    said = "one label" if len(labels) == 1 else f"{len(labels)} labels: {', '.join(labels.values())}"
    return f"reward model: a sequence classifier with {said}"


def _needs(folder: Path) -> dict[str, str]:
    """What a reward model reads that others must write for it."""
    reads = stated_reads(folder)
    if reads is None:
        return {}
    said = words(reads)
    if (folder / WRITES).is_file():
        return {
            "reads": f"{said}, which the model in {WRITER}/ writes first where rewardlab scores (scoreboard, eval, --reward "
            "model:DIR); transformers and others load the scoring half alone (README.md)"
        }
    return {"reads": f"{said}: of prompt and reply alone its score says nothing; this folder holds nothing that writes {said}"}


def _classifies(folder: Path) -> bool:
    file = folder / "config.json"
    config = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return str((config.get("architectures") or [""])[0]).endswith("ForSequenceClassification")
