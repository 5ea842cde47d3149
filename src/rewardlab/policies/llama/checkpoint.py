"""Checkpoint folders of the lean decoder, in Hugging Face's format.

config.json  model.safetensors       what transformers reads too
surprise/                            of a model that reads surprise: the frozen reader, a checkpoint of its own
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from rewardlab.errors import RewardlabError
from rewardlab.policies.attributes import attributes_in, check_outputs, labels_of
from rewardlab.policies.llama.lora import merged
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.llama.surprise import KIND, Surprise
from rewardlab.policies.llama.unsupported import Unsupported

READER, VECTOR = "surprise", "surprise.weight"


def hf_names(model: Llama) -> Iterator[tuple[str, Tensor]]:
    """Hugging Face names with views of our weights: writing into a view writes into the model."""
    s = model.shape
    q, kv = s.heads * s.head_dim, s.kv_heads * s.head_dim
    yield "model.embed_tokens.weight", model.embed
    yield "model.norm.weight", model.norm
    if model.head is not None:
        yield "lm_head.weight", model.head
    if model.value_head is not None:
        yield "score.weight", model.value_head
    layers: Any = model.layers
    for i, layer in enumerate(layers):
        at, mlp = f"model.layers.{i}.self_attn", f"model.layers.{i}.mlp"
        yield f"model.layers.{i}.input_layernorm.weight", layer.attn_norm
        yield f"model.layers.{i}.post_attention_layernorm.weight", layer.mlp_norm
        for name, part in zip("qkv", layer.qkv.split([q, kv, kv]), strict=True):
            yield f"{at}.{name}_proj.weight", part
        if layer.qkv_bias is not None:
            for name, part in zip("qkv", layer.qkv_bias.split([q, kv, kv]), strict=True):
                yield f"{at}.{name}_proj.bias", part
        if layer.q_norm is not None:
            yield f"{at}.q_norm.weight", layer.q_norm
            yield f"{at}.k_norm.weight", layer.k_norm
        yield f"{at}.o_proj.weight", layer.out
        for name, part in zip(("gate", "up"), layer.gate_up.chunk(2), strict=True):
            yield f"{mlp}.{name}_proj.weight", part
        yield f"{mlp}.down_proj.weight", layer.down


@torch.no_grad()
def load_llama(folder: Path, value_head: bool = False, dtype: torch.dtype = torch.float32) -> Llama:
    """Read a Hugging Face checkpoint folder (one safetensors file or many), or one of ours with a model that reads surprise.

    dtype: format of the matrices, for a model that is to have adapters.
    """
    config = json.loads((folder / "config.json").read_text())
    surprised = config.get("model_type") == KIND
    if surprised:
        config["model_type"] = config.pop("trunk_type")
    files = weight_files(folder)
    if not files:
        raise Unsupported(f"{folder} holds no .safetensors file; save the model with save_pretrained(safe_serialization=True)")
    tensors = {k: v for file in files for k, v in load_file(file).items()}
    vector = tensors.pop(VECTOR) if surprised else None
    scores = tensors.get("score.weight")
    model = Llama(config, value_head=value_head or scores is not None)
    # before there is a number in them
    model.keep(dtype)
    if scores is not None:
        check_outputs(folder, len(scores), attributes := attributes_in(config))
        model.rate(attributes)
    check_weights(model, set(tensors))
    for name, view in hf_names(model):
        # a new critic starts from a checkpoint without a value head, and keeps its zeros
        if name not in tensors and name == "score.weight":
            continue
        if name not in tensors:
            raise RewardlabError(f"{folder}: the checkpoint lacks the weight {name}")
        view.copy_(tensors[name])
    if vector is not None:
        model.surprise = Surprise(load_llama(folder / READER), vector)
    return model


def weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights, as transformers chooses them: one by its name, or those that the index names.

    Others may lie beside them: the same weights by other names (Mistral's consolidated.safetensors), parts of an older checkpoint.
    """
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if whole.is_file():
        return [whole]
    if index.is_file():
        return sorted({folder / name for name in json.loads(index.read_text("utf-8"))["weight_map"].values()})
    return sorted(folder.glob("*.safetensors"))


def check_weights(model: Llama, names: set[str]) -> None:
    """Refuse weights that this model has no place for (a bias, say): without them it would silently compute something else."""
    names = names - {name for name, _ in hf_names(model)}
    # a tied checkpoint may repeat the embedding as lm_head; old ones hold RoPE frequencies, which are computed here
    names = {n for n in names if n != "lm_head.weight" and not n.endswith("inv_freq")}
    if names:
        raise Unsupported(f"the lean policy has no place for the weight {min(names)}")


def config_of(model: Llama) -> dict[str, Any]:
    """The contents of config.json."""
    kind = "ForSequenceClassification" if model.value_head is not None else "ForCausalLM"
    family = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}[model.config["model_type"]]
    # the checkpoint that the model was loaded from may have had another format, and older ones call it torch_dtype
    config = {k: v for k, v in model.config.items() if k not in ("torch_dtype", "rewardlab")}
    config |= {"architectures": [family + kind], "dtype": "float32"}
    if model.value_head is not None:
        config |= labels_of(model.attributes)
    return config


def save_llama(model: Llama, folder: Path) -> None:
    """Write config.json and model.safetensors in float32, readable by transformers; adapters are merged into the weights.

    Transformers has no model that reads surprise: that one gets a model type of its own, since it must not run without.
    """
    # transformers reads plain weights only
    model = merged(model)
    folder.mkdir(parents=True, exist_ok=True)
    config = config_of(model)
    tensors = {name: view.detach().float().cpu().contiguous().clone() for name, view in hf_names(model)}
    if model.surprise is not None:
        config |= {"model_type": KIND, "trunk_type": config["model_type"]}
        tensors[VECTOR] = model.surprise.vector.detach().cpu().clone()
        save_llama(model.surprise.reader, folder / READER)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
