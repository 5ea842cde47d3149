"""Models by name, and the second models that learners ask for."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from rewardlab.core import Learner, Task
from rewardlab.errors import RewardlabError, unknown

Policy = Any
"""Any object with the calls of `core.Policy`."""

NAMES = ("embedded", "smollm2", "flow", "actor", "vision", "untrained")
"""embedded, smollm2, and what is found in `small`."""

OWN = {
    "rewardlab_denoiser": ("diffusion.denoiser", "Denoiser"), "rewardlab_actor": ("control.actor", "Actor"),
    "llava": ("hf.vision", "VisionPolicy"),
}  # fmt: skip
"""Model types of checkpoints that neither text policy reads: the module in `policies`, and its class."""


def load_policy(
    name: str, device: str = "auto", dtype: str = "auto", lora_rank: int | None = None, task: Task | None = None
) -> Policy:
    """A policy by name.

    embedded: the small warmed-up one for the task.  smollm2: SmolLM2-135M-Instruct.  flow, actor, vision: those of tasks that are
    not text.  untrained: a tiny one with random weights, of the kind that the task is played with.  A folder: a Hugging Face
    checkpoint, or a run (its best model).  hf:FOLDER: through transformers, whatever the architecture.  lora_rank: train adapters
    of this rank; on any model of language.
    """
    kind = task.model if name == "untrained" and task else name
    if kind in ("embedded", "untrained"):
        from .embedded import embedded, untrained

        policy = embedded(device, dtype, task) if name == "embedded" else untrained(task=task)
    elif name.removeprefix("hf:") == "smollm2":
        from .smollm2 import checkpoint

        policy = _from_folder(f"{name.removesuffix('smollm2')}{checkpoint()}", device, dtype, lora_rank)
    elif kind in NAMES:
        small = importlib.import_module(f"rewardlab.models.{kind}")
        if task is None:
            raise RewardlabError(f"the model {name!r} is made for a task: name one with --task")
        policy = small.untrained(task) if name == "untrained" else small.warmed(task)
    else:
        policy = _from_folder(name, device, dtype, lora_rank)
    if not lora_rank or name.startswith("hf:"):
        return policy
    if not hasattr(policy, "adapt"):
        raise RewardlabError(f"--lora-rank is for models of language; {name!r} is none")
    return policy.adapt(lora_rank)


def absolute_name(name: str) -> str:
    """The name under which a model is found from any working folder."""
    folder = Path(name.removeprefix("hf:"))
    if name in NAMES or not folder.exists():
        return name
    return f"{'hf:' if name.startswith('hf:') else ''}{folder.resolve()}"


def _from_folder(name: str, device: str, dtype: str, lora_rank: int | None) -> Policy:
    folder = checkpoint_of(Path(name.removeprefix("hf:")), name)
    kind = json.loads((folder / "config.json").read_text()).get("model_type")
    if kind in OWN:
        module, made = OWN[kind]
        return getattr(importlib.import_module(f"rewardlab.policies.{module}"), made).load(folder, device)
    if name.startswith("hf:"):
        from rewardlab.policies.hf.policy import HFPolicy

        return HFPolicy.load(folder, device, dtype, lora_rank=lora_rank)
    from rewardlab.policies.llama.policy import LlamaPolicy

    return LlamaPolicy.load(folder, device, dtype)


def checkpoint_of(folder: Path, name: str) -> Path:
    """The checkpoint folder itself, or the best (else last) model of a run folder."""
    if not folder.exists():
        raise unknown("model", name, NAMES)
    config = folder / "config.json"
    if not config.is_file():
        raise RewardlabError(f"{folder} holds no config.json: it is neither a Hugging Face checkpoint nor a run")
    if "recipe" not in json.loads(config.read_text()):
        return folder
    for which in ("best", "model"):
        if (folder / which / "config.json").exists():
            return folder / which
    raise RewardlabError(f"the run {folder} has saved no model yet")


def learner_model(learner: Learner, policy: Policy) -> Policy:
    """The model a learner starts from."""
    if learner.init == "copy:policy":
        return policy.copy(learner.name)
    if learner.init == "value-head":
        return policy.copy(learner.name, value_head=True)
    kind, _, task = learner.init.partition(":")
    if kind in NAMES and task:
        from rewardlab import registry

        found = load_policy(kind, str(policy.device), task=registry.task(task))
    else:
        found = load_policy(learner.init, str(policy.device))
    found.name = learner.name
    return found
