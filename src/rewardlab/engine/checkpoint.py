"""Checkpoints: everything a run needs to go on as if nothing had happened.

    checkpoints/step-000010/state.json          step, data position, memory
                            arrays.safetensors  tensors in the memory
                            NAME.safetensors    weights of the policy and of each learner
                            NAME.optimiser.safetensors
    checkpoints/reference.safetensors           written once

A checkpoint folder appears whole or not at all. Random streams need no saving: they are keyed by seed, purpose and step.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from rewardlab.core import Run
from rewardlab.errors import RewardlabError
from rewardlab.util.files import new_folder
from rewardlab.util.serialize import pack, unpack

from .update import Learning

KEEP = 2


def save(folder: Path, run: Run, learnings: dict[str, Learning], position: int) -> Path:
    """Write checkpoints/step-N and drop the oldest ones."""
    tensors: dict[str, torch.Tensor] = {}
    state = {"step": run.step, "position": position, "updates": {k: v.updates for k, v in learnings.items()}}
    state["memory"] = pack(run.memory, tensors)
    with new_folder(folder / f"step-{run.step:06d}") as new:
        (new / "state.json").write_text(json.dumps(state))
        save_file(tensors, new / "arrays.safetensors")
        for name, learning in learnings.items():
            save_file(_contiguous(learning.model.state()), new / f"{name}.safetensors")
            save_file(_optimiser_state(learning.optimiser), new / f"{name}.optimiser.safetensors")
    for old in checkpoints(folder)[:-KEEP]:
        shutil.rmtree(old, ignore_errors=True)
    return folder / f"step-{run.step:06d}"


def load(folder: Path, run: Run, learnings: dict[str, Learning]) -> int:
    """Restore the newest checkpoint into `run` and `learnings`; returns the data position."""
    found = checkpoints(folder)
    if not found:
        raise RewardlabError(f"{folder} holds no checkpoint to resume from")
    newest = found[-1]
    state = json.loads((newest / "state.json").read_text())
    run.step = state["step"]
    run.memory = unpack(state["memory"], load_file(newest / "arrays.safetensors"), run.policy.device)
    for name, learning in learnings.items():
        learning.model.load_state(load_file(newest / f"{name}.safetensors"))
        _restore_optimiser(learning.optimiser, load_file(newest / f"{name}.optimiser.safetensors"))
        learning.updates = state["updates"][name]
    return state["position"]


def save_reference(folder: Path, reference: Any) -> None:
    with new_folder(folder / "reference") as new:
        save_file(_contiguous(reference.state()), new / "model.safetensors")


def load_reference(folder: Path, reference: Any) -> None:
    reference.load_state(load_file(folder / "reference" / "model.safetensors"))


def checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted(folder.glob("step-*"), key=lambda path: int(path.name.removeprefix("step-"))) if folder.is_dir() else []


def _contiguous(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {k: v.detach().cpu().contiguous().clone() for k, v in state.items()}


def _optimiser_state(optimiser: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    state = optimiser.state_dict()["state"]
    return _contiguous({f"{i}.{k}": torch.as_tensor(v) for i, entry in state.items() for k, v in entry.items()})


def _restore_optimiser(optimiser: torch.optim.Optimizer, saved: dict[str, torch.Tensor]) -> None:
    full = optimiser.state_dict()
    full["state"] = {}
    for key, value in saved.items():
        i, name = key.split(".", 1)
        full["state"].setdefault(int(i), {})[name] = value
    optimiser.load_state_dict(full)
