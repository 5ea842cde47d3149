"""The run that a path, or the name of a model, means: its config.json, or an error that says what is there instead."""

from __future__ import annotations

import glob
import json
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import NAME
from rewardlab.util.files import folders_like

OF_TASKS = ("embedded:", "smollm2:")
"""What stands before a task in the name of a model, which may have brackets: embedded:arithmetic:difficulty=[2,4]."""


def config_of_run(model: Any) -> dict[str, Any] | None:
    """The config.json of the run that a model's name means; None for every other model."""
    if isinstance(model, str):
        NAME.check("model", model)
    file = Path(model) / "config.json" if isinstance(model, str | Path) else None
    if file is None or not file.is_file():
        return None
    document = json.loads(file.read_text("utf-8"))
    # a checkpoint has a config.json too, but no recipe
    return document if "recipe" in document else None


def not_a_run(folder: Path) -> RewardlabError:
    """The error for a path that is no run: what it is, or which runs have names like it."""
    if (folder / "plan.json").is_file():
        return RewardlabError(
            f"{folder} is not a run folder but a comparison: complete it with rewardlab compare --resume {folder}; its runs are in "
            f"{folder / 'runs'}"
        )
    if folder.is_dir():
        return RewardlabError(f"{folder} is not a run folder: it has no config.json")
    run = next((parent for parent in folder.parents if config_of_run(parent)), None)
    if folder.exists():
        return RewardlabError(f"{folder} is a file{f' of the run {run}: give {run}' if run else ', not the folder of a run'}")
    if glob.has_magic(str(folder)):
        return RewardlabError(f"there is no folder {folder}, and * and ? stand for nothing here: give one folder")
    near = " or ".join(folders_like(folder))
    return RewardlabError(f"there is no folder {folder}" + (f"; did you mean {near}?" if near else ""))


def refuse_missing(model: Any) -> None:
    """Raise RewardlabError for a model's name that is a path to nothing: a run or folder with a mistake in it, or a file.

    A name whose first folder is here, or is `runs`, is meant as a path, and not as ORG/NAME of the hub.
    """
    if not isinstance(model, str) or model.startswith(("hf:", "nf4:", "int8:", "openai:", *OF_TASKS)) or "@" in model:
        return
    # of a reward model more may be said: runs/rm?principle=Be brief.
    place = Path(model.removeprefix("model:").partition("?")[0]).expanduser()
    path = place if place.is_dir() else Path(model).expanduser()
    first = path.parts[0] if len(path.parts) > 1 else ""
    if path.is_file() or (not path.exists() and (first == "runs" or glob.has_magic(model) or (first and Path(first).exists()))):
        raise not_a_run(path)


def read_config(folder: Path) -> dict[str, Any]:
    """The config.json of a run folder. Raises RewardlabError where there is none, and for a model checkpoint."""
    if not (folder / "config.json").is_file():
        raise not_a_run(folder)
    try:
        document = json.loads((folder / "config.json").read_text("utf-8"))
    except json.JSONDecodeError as e:
        raise RewardlabError(f"{folder} is not a run folder: its config.json is broken: {e}") from e
    if "recipe" not in document:
        raise RewardlabError(f"{folder} is a model checkpoint, not a run folder")
    return document
