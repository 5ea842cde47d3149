"""Checkpoints: everything that a run needs to resume bit for bit.

    checkpoints/step-000010/state.json          step, data position, memory
                            arrays.safetensors  tensors in the memory
                            NAME.safetensors    weights of each learner, the policy first
                            NAME.optimiser.safetensors
                            (a second model that never learns is named in state.json, with a hash; `engine/frozen.py`)
    checkpoints/reference/model.safetensors     written once; reference-000010, where a method has renewed it by step 10, takes
                                                its place when no checkpoint needs the one before

A checkpoint folder is written under a temporary name and then renamed, so one that exists is complete. Random streams need no
saving: they are keyed by seed, purpose and step.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from rewardlab.core import Run
from rewardlab.engine.frozen import contiguous, is_frozen, note, restore
from rewardlab.engine.learner import LearnerState
from rewardlab.errors import RewardlabError
from rewardlab.util.files import new_folder
from rewardlab.util.serialize import pack, unpack
from rewardlab.util.sharded import is_divided, part_of

KEEP = 2
"""Checkpoints that are kept: the newest, and the one before it to fall back on by hand."""


def save(folder: Path, run: Run, learners: dict[str, LearnerState], position: int) -> Path:
    """Write checkpoints/step-N and drop the oldest ones."""
    tensors: dict[str, torch.Tensor] = {}
    trained = _trained(learners)
    state = {"step": run.step, "position": position, "updates": {k: v.updates for k, v, _ in trained}}
    # pack also fills `tensors`, so it must come before they are written
    state["memory"] = pack(run.memory, tensors)
    frozen = {name: note(folder, learner) for name, learner, _ in trained if is_frozen(learner)}
    state |= {"frozen": frozen} if frozen else {}
    with new_folder(folder / name_of(run.step)) as new:
        (new / "state.json").write_text(json.dumps(state))
        save_file(tensors, new / "arrays.safetensors")
        for name, learner, _ in trained:
            if name in frozen:
                continue
            save_file(contiguous(learner.model.state()), new / f"{name}.safetensors")
            save_file(contiguous(learner.optimiser_state()), new / f"{name}.optimiser.safetensors")
    # only now that the new one is complete: a run killed in between keeps its older checkpoints
    for old in checkpoints(folder)[:-KEEP]:
        shutil.rmtree(old, ignore_errors=True)
    _drop_references(folder)
    return folder / name_of(run.step)


def name_of(step: int) -> str:
    """The name of a checkpoint's folder."""
    return f"step-{step:06d}"


def load(folder: Path, run: Run, learners: dict[str, LearnerState]) -> int:
    """Restore the newest checkpoint into `run` and `learners`; returns the data position."""
    complete = checkpoints(folder)
    if not complete:
        raise RewardlabError(f"{folder} holds no checkpoint to resume from")
    newest = complete[-1]
    state = json.loads((newest / "state.json").read_text())
    run.step = state["step"]
    run.memory = unpack(state["memory"], load_file(newest / "arrays.safetensors"), run.policy.device)
    for name, learner, optimiser in _trained(learners):
        if name in state.get("frozen", {}):
            restore(folder, learner, state["frozen"][name])
        else:
            learner.model.load_state(load_file(newest / f"{name}.safetensors"))
            _restore_optimiser(optimiser, load_file(newest / f"{name}.optimiser.safetensors"))
        learner.updates = state["updates"][name]
    return state["position"]


def load_weights(folder: Path, learners: dict[str, LearnerState]) -> None:
    """Give the learners the weights of the newest checkpoint, to measure them: they could not be trained on from these."""
    newest = checkpoints(folder)[-1]
    frozen = json.loads((newest / "state.json").read_text()).get("frozen", {})
    for name, learner, _ in _trained(learners):
        if name in frozen:
            restore(folder, learner, frozen[name])
        else:
            learner.model.load_state(load_file(newest / f"{name}.safetensors"))


def load_memory(folder: Path, run: Run, step: int | None = None) -> None:
    """Give the run what its method remembered at the newest checkpoint, to measure it.

    step: at the checkpoint of this step instead, where it is still kept.
    """
    *_, newest = kept = checkpoints(folder)
    at = next((one for one in kept if step is not None and one.name == name_of(step)), newest)
    state = json.loads((at / "state.json").read_text())
    run.memory = unpack(state["memory"], load_file(at / "arrays.safetensors"), run.policy.device)


def keep_weights(folder: Path) -> None:
    """Remove all that `load_weights` does not need: older checkpoints, and the optimisers, twice as large as the weights."""
    *older, newest = checkpoints(folder)
    for old in older:
        shutil.rmtree(old, ignore_errors=True)
    for file in newest.glob("*.optimiser.safetensors"):
        file.unlink()


def _trained(learners: dict[str, LearnerState]) -> list[tuple[str, LearnerState, torch.optim.Optimizer]]:
    """(name, learner, optimiser) of the learners that train. A model that does not is loaded again from its own checkpoint."""
    return [(name, learner, learner.optimiser) for name, learner in learners.items() if learner.optimiser is not None]


def save_reference(folder: Path, reference: Any, step: int) -> None:
    """Write the reference model's weights. They seldom change, so they are not part of each checkpoint."""
    # beside an older one, which stays: a folder cannot be replaced in one go
    with new_folder(folder / (f"reference-{step:06d}" if step else "reference")) as new:
        save_file(contiguous(reference.state()), new / "model.safetensors")


def load_reference(folder: Path, reference: Any, step: int) -> None:
    """Load the reference that a checkpoint of this step was made with.

    A later one may be there: a run that renewed it, and was killed before its checkpoint was in place.
    """
    saved = _references(folder)
    newest = saved[max(at for at in saved if at <= step)]
    reference.load_state(load_file(newest / "model.safetensors"))


def drop_later_references(folder: Path, step: int) -> None:
    """Drop references that were made after the step from which a run goes on: this time it may renew its own at other steps."""
    for at, path in _references(folder).items():
        if at > step:
            shutil.rmtree(path)


def _drop_references(folder: Path) -> None:
    """Drop the references that no checkpoint needs: all before the newest that is no later than the oldest checkpoint."""
    saved, oldest = _references(folder), _step_of(checkpoints(folder)[0])
    needed = max((at for at in saved if at <= oldest), default=0)
    for at, path in saved.items():
        if at < needed:
            shutil.rmtree(path, ignore_errors=True)


def _references(folder: Path) -> dict[int, Path]:
    """The saved references, by the step of the first checkpoint that was made with each."""
    return {int(path.name.partition("-")[2] or 0): path for path in folder.glob("reference*") if path.is_dir()}


def checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted(folder.glob("step-*"), key=_step_of) if folder.is_dir() else []


def _step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))


def _restore_optimiser(optimiser: torch.optim.Optimizer, saved: dict[str, torch.Tensor]) -> None:
    full, trained = optimiser.state_dict(), [p for group in optimiser.param_groups for p in group["params"]]
    full["state"] = {}
    for key, value in saved.items():
        i, name = key.split(".", 1)
        # AdamW numbers parameters in the order of `model.parameters()`, which resuming reproduces
        p = trained[int(i)]
        # the moments of divided weights are divided as these are; the count of steps is not
        own = part_of(value, p) if is_divided(p) and value.shape == p.shape else value
        full["state"].setdefault(int(i), {})[name] = own
    optimiser.load_state_dict(full)
