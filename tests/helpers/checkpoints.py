"""Tiny checkpoints with random weights, in the formats that others publish process reward models in."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

SIZES = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
    "intermediate_size": 24, "max_position_embeddings": 256, "bos_token_id": None, "eos_token_id": 0, "pad_token_id": 2,
    "tie_word_embeddings": False,
}  # fmt: skip


def checkpoint(folder: Path, words, kind: str = "LlamaForCausalLM", added=(), seed: int = 0, **config) -> tuple:
    """A checkpoint of a transformers class with weights large enough that every token matters; the model and its tokenizer."""
    tokenizer = copy.deepcopy(words)
    tokenizer.add_tokens(list(added))
    cls = getattr(transformers, kind)
    torch.manual_seed(seed)
    model = cls(cls.config_class(**SIZES | {"vocab_size": len(tokenizer), **config})).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p) * 0.3 + (p.dim() == 1))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def with_head(folder: Path, architecture: str, weights: dict[str, torch.Tensor]) -> None:
    """Turn a causal checkpoint into one with other weights in place of its vocabulary head."""
    file = folder / "model.safetensors"
    kept = {k: v for k, v in load_file(file).items() if k != "lm_head.weight"}
    save_file(kept | weights, file, metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text()) | {"architectures": [architecture]}
    # what such a repository says of its own code, which must not be run
    config["auto_map"] = {"AutoModel": f"modeling_own.{architecture}"}
    (folder / "config.json").write_text(json.dumps(config))
