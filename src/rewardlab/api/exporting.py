"""A run's policy as a checkpoint that other software reads."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from shlex import quote
from typing import Any

from rewardlab.core.domain import PATH, one_of
from rewardlab.errors import RewardlabError
from rewardlab.models.formats import FORMATS, cast, stored_dtype
from rewardlab.policies.adapter import CONFIG
from rewardlab.runs.config import read_config
from rewardlab.util.files import new_folder

from .arguments import run_folder
from .choosing import choice
from .result import Result

DTYPE = one_of("auto", *FORMATS.values())
OWN = ("rewardlab_denoiser", "rewardlab_actor", "rewardlab_surprise")
"""Model types that rewardlab alone reads."""


def export(
    run: Path | str | Result, out: Path | str, last: bool = False, *, adapter: bool = False, dtype: str = "auto"
) -> dict[str, Any]:
    """Write a run's policy as an ordinary Hugging Face checkpoint: the best by held-out measure, or with `last` the last.

    LoRA adapters are merged into their base model; with `adapter` they are copied as they are, in PEFT's format.  dtype: number
    format of the weights. "auto" is that of the model which the run began from; in the run's folder all are float32.

    Returns what was written and why: which step, its measure, and a warning if training never improved on the untrained model.
    Raises RewardlabError if the run has no policy yet, if nothing but rewardlab could read it, or if `out` is a folder with files
    in it.
    """
    DTYPE.check("dtype", dtype)
    folder, out = run_folder(run), PATH.check("out", out)
    document = read_config(folder)  # raises if the folder is not a run
    # a run without evaluations has no best policy
    source = folder / "best" if (folder / "best").is_dir() and not last else folder / "model"
    if not source.is_dir():
        raise RewardlabError(
            f"{folder} has no {source.name} yet; resume the run with: rewardlab train --resume {quote(str(folder))}"
        )
    if Path(out).exists() and any(Path(out).iterdir()):
        raise RewardlabError(f"{out} exists and is not empty; choose a new folder")
    _refuse_own_kind(source)
    # the folder appears under its name only when it is complete
    with new_folder(Path(out)) as new:
        what = _copy(source, new) if adapter else _whole(source, new, document.get("loaded_dtype") if dtype == "auto" else dtype)
    which = "best" if source.name == "best" else "last"
    return {"run": str(folder), "which": which, "out": str(out), **what, **choice(folder, source.name)}


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
    config = json.loads((new / "config.json").read_text("utf-8"))
    classifier = str((config.get("architectures") or [""])[0]).endswith("ForSequenceClassification")
    return {"kind": "reward model: a sequence classifier with one label" if classifier else "model", "dtype": stored_dtype(new)}
