"""Reading the checkpoint of a language model by transformers, and saying why one cannot be read."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rewardlab.errors import RewardlabError
from rewardlab.policies.hf.adapters import ALL_LINEAR, keep_frozen, linear_in_text, with_adapters, with_saved_adapter
from rewardlab.policies.hf.model import take_value_head
from rewardlab.policies.hf.sight import FAMILIES
from rewardlab.util.extras import require


def load_model(
    folder: Path,
    lora_rank: int | None,
    adapter: Path | None = None,
    nf4: torch.device | None = None,
    computes: torch.dtype = torch.float32,
    sees: bool = False,
) -> tuple[Any, Tensor | None]:
    """A causal model and None, or a sequence classifier's trunk and its scalar head (1, hidden).

    adapter: the folder of an adapter to put on the model.  lora_rank: adapters train, this one or else fresh ones on all linear
    layers; without it, the adapter is merged into the weights.  nf4: the device on which the matrices of the layers are kept
    in 4 bits, each 64 weights in a row with a scale of their own; None: they are float32.  computes: where that is another format
    and adapters train, what they are on is read in the checkpoint's own format (`adapters.keep_frozen`).  sees: whether it is a
    vision-language model, whose adapters are on the language model alone.
    """

    packed = in_nf4(nf4) if nf4 else {}
    as_stored = bool(lora_rank) and not nf4 and computes != torch.float32
    try:
        _, kind, scores = _kind_of(folder, sees)
        model, told = kind.from_pretrained(
            str(folder), dtype="auto" if as_stored else torch.float32, trust_remote_code=False, output_loading_info=True, **packed
        )
    except (OSError, ValueError, KeyError) as e:
        raise _not_loaded(folder, e) from e
    if missing := told["missing_keys"]:
        # transformers would fill them with random numbers
        raise RewardlabError(f"{folder}: the checkpoint lacks the weight {min(missing)}")
    head = take_value_head(model) if scores else None
    if adapter:
        model = with_saved_adapter(model, adapter, bool(lora_rank))
    elif lora_rank:
        model = with_adapters(model, lora_rank, linear_in_text(model) if sees else ALL_LINEAR)
    if lora_rank:
        keep_frozen(model, computes)
    return model, head


def _kind_of(folder: Path, sees: bool = False) -> tuple[Any, Any, bool]:
    """The configuration in a folder, the class of transformers for it, and whether that is a classifier, not a causal model."""
    import transformers

    # never code that came with a checkpoint
    config = transformers.AutoConfig.from_pretrained(str(folder), trust_remote_code=False)
    scores = str((config.architectures or [""])[0]).endswith("ForSequenceClassification")
    writes = transformers.AutoModelForImageTextToText if sees else transformers.AutoModelForCausalLM
    return config, transformers.AutoModelForSequenceClassification if scores else writes, scores


def without_weights(folder: Path, sees: bool = False) -> tuple[Any, Tensor | None]:
    """What `load_model` returns, from config.json alone: on the meta device, where tensors have shapes and no numbers."""

    try:
        config, kind, scores = _kind_of(folder, sees)
        with torch.device("meta"):
            model = kind.from_config(config, dtype=torch.float32, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as e:
        raise _not_loaded(folder, e) from e
    return model, take_value_head(model) if scores else None


@contextmanager
def quiet() -> Iterator[None]:
    """A context in which transformers does not report weights that a checkpoint has or lacks: the caller looks at them itself."""
    logger = logging.getLogger("transformers.modeling_utils")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def in_nf4(device: torch.device) -> dict[str, Any]:
    """What transformers is told so that it keeps the matrices of a model in NF4 (Dettmers et al. 2023, arXiv:2305.14314)."""
    require("nf4", "bitsandbytes", "accelerate", what="a model in 4 bits (nf4:)")
    from transformers import BitsAndBytesConfig

    # products are computed in float32, or in the format that autocast asks for
    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float32)
    return {"quantization_config": config, "device_map": {"": device}}


def without_dropout(model: Any) -> Any:
    """The model in evaluation mode, with what it keeps in 4 bits still in a form that has a gradient.

    In evaluation mode bitsandbytes (from 0.49) packs such matrices anew on processors that multiply in bfloat16, for good, for a
    kernel without a gradient: what was sampled from could no longer be trained.
    """
    model.eval()
    for module in model.modules():
        if getattr(getattr(module, "weight", None), "quant_state", None) is not None:
            module.train()
    return model


def _not_loaded(folder: Path, problem: Exception) -> RewardlabError:
    """The error for a checkpoint that transformers does not run as a language model; it names the architecture."""
    import transformers

    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        config = {}
    what = (config.get("architectures") or [config.get("model_type") or "it"])[0]
    own_code = " (its code comes with the checkpoint, and is not run)" if config.get("auto_map") else ""
    return RewardlabError(
        f"transformers {transformers.__version__} cannot load {folder} as a language model: {what}{own_code}: "
        f"{(str(problem).splitlines() or [type(problem).__name__])[0]}{_of_pictures(config)}"
    )


def _of_pictures(config: Mapping[str, Any]) -> str:
    """What a user of a vision-language model is told that cannot be loaded."""
    if "vision_config" not in config:
        return ""
    return f"; of models that see, {', '.join(FAMILIES)} are run here; serve another one and write openai:URL#NAME"
