"""A run's policy as a checkpoint that other software reads."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.runs.config import read_config
from rewardlab.util.files import new_folder

from .choosing import choice


def export(run: Path | str, out: Path | str, last: bool = False) -> dict[str, Any]:
    """Write a run's policy as an ordinary Hugging Face checkpoint: the best by held-out measure, or with `last` the last.

    Returns what was written and why: which step, its measure, and a warning if training never improved on the untrained model.
    Raises RewardlabError if the run has no policy yet, or if `out` is a folder with files in it.
    """
    folder = Path(run)
    read_config(folder)  # raises if the folder is not a run
    # a run without evaluations has no best policy
    source = folder / "best" if (folder / "best").is_dir() and not last else folder / "model"
    if not source.is_dir():
        raise RewardlabError(f"{folder} has no {source.name} yet; resume the run with: rewardlab train --resume {folder}")
    if Path(out).exists() and any(Path(out).iterdir()):
        raise RewardlabError(f"{out} exists and is not empty; choose a new folder")
    # the folder appears under its name only when it is complete
    with new_folder(Path(out)) as new:
        shutil.copytree(source, new, dirs_exist_ok=True)
    which = "best" if source.name == "best" else "last"
    return {"run": str(folder), "which": which, "out": str(out), **choice(folder, source.name)}
