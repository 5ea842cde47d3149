"""Second models that a run does not change, such as a judge: a checkpoint holds which they are, and not their weights.

One that was loaded from a checkpoint, a run or a name is loaded from there again; one that was made from the policy as it began is
written once, beside the checkpoints. Either way the weights must be those of before, which a hash says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from rewardlab.engine.learner import LearnerState, sums
from rewardlab.errors import RewardlabError
from rewardlab.util.files import new_folder

FOLDER, FILE = "frozen-{name}", "model.safetensors"


def is_frozen(learner: LearnerState) -> bool:
    """Whether a second model has the weights that it began with, and its recipe never changes them."""
    return learner.began is not None and learner.updates == 0 and learner.began == sums(learner.model)


def note(folder: Path, learner: LearnerState) -> dict[str, str]:
    """What a checkpoint in `folder` holds of a frozen model: what it was made from, and a hash of its weights."""
    state = learner.model.state()
    place = folder / FOLDER.format(name=learner.name)
    if from_policy(learner.init) and not place.is_dir():
        with new_folder(place) as new:
            save_file(contiguous(state), new / FILE)
    learner.digest = learner.digest or digest(state)
    return {"init": learner.init, "hash": learner.digest}


def restore(folder: Path, learner: LearnerState, noted: Mapping[str, str]) -> None:
    """Make sure that a frozen model is the one that was noted. Raises RewardlabError where it is another one now."""
    file = folder / FOLDER.format(name=learner.name) / FILE
    if file.exists():
        learner.model.load_state(load_file(file))
        learner.begin()
    learner.digest = digest(learner.model.state())
    if learner.digest != noted["hash"]:
        raise RewardlabError(
            f"the model {learner.name!r} of this run is {noted['init']}, which holds other weights now than when the run began, "
            "and checkpoints hold no copy of them: put the former ones back there, or begin another run"
        )


def from_policy(init: str) -> bool:
    """Whether a second model is made from the policy, and so from weights that nobody else may keep."""
    return init.startswith(("copy:", "value-head", "heads:", "prefix:", "energy:value-head", "energy:copy:")) or (
        init.startswith("attributes:") and init.rpartition("value-head")[1] == "value-head"
    )


def digest(state: Mapping[str, torch.Tensor]) -> str:
    """A hash of weights, by their names, shapes and bytes."""
    found = hashlib.blake2b(digest_size=16)
    for name in sorted(state):
        x = state[name].detach().cpu().contiguous()
        found.update(f"{name} {tuple(x.shape)} {x.dtype} ".encode())
        found.update(x.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def contiguous(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors as safetensors takes them: it refuses any that share memory, as views of one matrix or tied weights do."""
    return {k: v.detach().cpu().contiguous().clone() for k, v in state.items()}
