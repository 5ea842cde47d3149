"""LoRA adapters on disk, in PEFT's format: adapter_config.json names the base model, adapter_model.safetensors holds the matrices.

Both text policies write it, and read what PEFT has written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import safe_open

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


@dataclass(frozen=True)
class Base:
    """The model that an adapter belongs to: a folder, or a name on the hub with its commit.

    weights: a hash of its weights, to notice that the folder holds others by now. It is kept in the metadata of the adapter's
    weights, since PEFT warns of entries in adapter_config.json that it does not know. Empty: unknown, as PEFT saves none.
    """

    name: str
    revision: str | None = None
    weights: str = ""

    @classmethod
    def of(cls, adapter: Path) -> Base:
        """The base that an adapter names, which may be empty."""
        config, weights = config_of(adapter), ""
        if (adapter / WEIGHTS).is_file():
            with safe_open(adapter / WEIGHTS, "pt") as file:
                weights = (file.metadata() or {}).get("base_weights", "")
        return cls(config.get("base_model_name_or_path") or "", config.get("revision"), weights)

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of a file with weights of an adapter."""
        return {"format": "pt", "base_weights": self.weights}


def config_of(adapter: Path) -> dict[str, Any]:
    """The contents of an adapter's adapter_config.json."""
    return json.loads((adapter / CONFIG).read_text("utf-8"))


def beyond_lora(config: dict[str, Any]) -> str:
    """What an adapter has besides the matrices A and B, in words; empty for plain LoRA, W + scale B A."""
    if config.get("peft_type") != "LORA":
        return f"type {config.get('peft_type')}"
    if config.get("task_type") not in (None, "CAUSAL_LM"):
        return f"task type {config['task_type']}"
    kinds = ("use_dora", "use_qalora", "lora_bias", "modules_to_save", "trainable_token_indices", "layer_replication")
    extras = [kind for kind in (*kinds, "target_parameters", "alora_invocation_tokens") if config.get(kind)]
    if config.get("bias", "none") != "none":
        extras.append(f"bias={config['bias']}")
    return ", ".join(extras)
