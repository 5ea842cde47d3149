"""Sequence classifiers as transformers loads them: their configurations, tokenizers and weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import Checkpoint
from rewardlab.policies.hf.adapters import with_saved_adapter
from rewardlab.policies.llama.surprise import KIND as SURPRISED


def reads_surprise(found: Checkpoint) -> bool:
    return bool(found.config.get("model_type") == SURPRISED)


def config_of(found: Checkpoint) -> Any:
    """The configuration of a checkpoint; of one that reads surprise, which transformers does not know, that of its trunk."""
    from transformers import AutoConfig

    if not reads_surprise(found):
        return AutoConfig.from_pretrained(str(found.folder), trust_remote_code=False)
    known = {name: x for name, x in found.config.items() if name not in ("model_type", "trunk_type")}
    return AutoConfig.for_model(found.config["trunk_type"], **known)


def tokenizer_of(found: Checkpoint, config: Any) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(found.folder), config=config, trust_remote_code=False)


def classifier(found: Checkpoint, dtype: torch.dtype) -> Any:
    """The model. Raises RewardlabError for a checkpoint that lacks a weight, and for one that reads surprise."""
    from transformers import AutoModelForSequenceClassification

    if reads_surprise(found):
        raise RewardlabError(f"{found.folder}: a head that reads surprise has one label, and no adapter below it")
    kind: Any = AutoModelForSequenceClassification
    model, told = kind.from_pretrained(str(found.folder), dtype=dtype, trust_remote_code=False, output_loading_info=True)
    if missing := told["missing_keys"]:
        # transformers would fill them with random numbers
        raise RewardlabError(f"{found.folder}: the checkpoint lacks the weight {min(missing)}: it is no reward model")
    if found.adapter:
        model = with_saved_adapter(model, found.adapter, trains=False)
    if isinstance(head := getattr(model, "score", None), nn.Linear):
        # in bfloat16 a score near 4 would be a multiple of 1/32, and close replies would tie
        head.float()
    return model
