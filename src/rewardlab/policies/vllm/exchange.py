"""What a policy and vLLM tell each other: rows, replies, weights."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Sampling

HEAD, EMBEDDINGS = "lm_head.weight", "embed_tokens.weight"


@dataclass(frozen=True)
class Asked:
    """A row for vLLM.  seed: None where decoding is greedy."""

    ids: list[int]
    seed: int | None


@dataclass(frozen=True)
class Said:
    """A reply of vLLM: ids (n,), log-probs (n,) of the distribution sampled from, and why it ended: "end", "stop" or "length"."""

    ids: np.ndarray
    logprobs: np.ndarray
    stop: str


class Engine(Protocol):
    """vLLM, wherever it runs."""

    def load(self, policy: Any) -> None:
        """Take over the weights that the policy has now."""

    def sample(self, rows: Sequence[Asked], sampling: Sampling, ends: Sequence[int]) -> list[Said]: ...


UNTIED = {"tie_word_embeddings": False}
"""See `untied`."""


def parameters(sampling: Sampling, ends: Sequence[int]) -> dict[str, Any]:
    """vLLM's parameters of all rows of a call. Replies end where the policy ends them, whatever the checkpoint says."""
    return {
        "max_tokens": sampling.max_new, "temperature": sampling.temperature, "top_p": sampling.top_p,
        "top_k": max(0, sampling.top_k), "stop": list(sampling.stop), "include_stop_str_in_output": True,
        "stop_token_ids": list(ends), "ignore_eos": True, "logprobs": 0, "detokenize": bool(sampling.stop),
    }  # fmt: skip


def why(finish: str | None, stop: Any) -> str:
    """Why a reply ended: vLLM names the string, or the number of the token, that stopped it."""
    if finish == "length":
        return "length"
    return "stop" if isinstance(stop, str) else "end"


def cast(tensors: Iterator[tuple[str, Tensor]], dtype: torch.dtype) -> Iterator[tuple[str, Tensor]]:
    return ((name, tensor.detach().to(dtype)) for name, tensor in tensors)


def write_checkpoint(policy: Any, folder: Path, weights: bool) -> None:
    """A policy's configuration and tokenizer in a folder, with its weights below adapters if asked, and a head of their own."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(policy.config_document() | UNTIED, indent=2), "utf-8")
    policy.save_tokenizer(folder)
    if weights:
        named = cast(untied(policy.named_weights()), policy.dtype)
        tensors = {name: tensor.cpu().contiguous().clone() for name, tensor in named}
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def untied(tensors: Iterator[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """A checkpoint's weights with a head of its own, be it that of the embeddings.

    vLLM packs its matrices for its kernels. A head that it shares with the embeddings is packed once, when the model is loaded, and
    would keep the first weights for ever; one of its own is packed again whenever weights are handed over.
    """
    embeddings, head = None, False
    for name, tensor in tensors:
        head |= name == HEAD
        if name.endswith(EMBEDDINGS):
            embeddings = tensor
        yield name, tensor
    if not head and embeddings is not None:
        yield HEAD, embeddings
