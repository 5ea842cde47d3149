"""Models by name, and the second models that learners ask for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .core import Learner, RewardlabError, unknown

Policy = Any
"""Any object with the calls of `core.Policy`."""

NAMES = ("embedded", "untrained")


def load_policy(name: str, device: str = "auto", dtype: str = "auto", lora_rank: int | None = None) -> Policy:
    """A policy by name.

    embedded: the small warmed-up one.  untrained: a tiny one with random weights.  A folder: a Hugging Face checkpoint, or
    a run (its best model).  hf:FOLDER: through transformers, whatever the architecture.
    """
    if name == "embedded":
        from .embedded import embedded

        policy = embedded(device, dtype)
    elif name == "untrained":
        from .embedded import untrained

        policy = untrained()
    else:
        policy = _from_folder(name, device, dtype, lora_rank)
    if lora_rank and not name.startswith("hf:"):
        raise RewardlabError("--lora-rank works on models loaded through transformers: --model hf:FOLDER")
    return policy


def lasting(name: str) -> str:
    """The name under which a model is found from any working folder."""
    folder = Path(name.removeprefix("hf:"))
    if name in NAMES or not folder.exists():
        return name
    return f"{'hf:' if name.startswith('hf:') else ''}{folder.resolve()}"


def _from_folder(name: str, device: str, dtype: str, lora_rank: int | None) -> Policy:
    folder = checkpoint_of(Path(name.removeprefix("hf:")), name)
    if name.startswith("hf:"):
        from .policies.hf import HFPolicy

        return HFPolicy.load(folder, device, dtype, lora_rank=lora_rank)
    from .policies.llama import LlamaPolicy

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
    found = load_policy(learner.init, str(policy.device))
    found.name = learner.name
    return found
