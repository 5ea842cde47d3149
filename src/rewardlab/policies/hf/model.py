"""Where transformers models differ: the vocabulary head, scalar heads, embeddings, decoder layers, limits."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from rewardlab.errors import RewardlabError
from rewardlab.policies.attributes import KEY, Attributes, attributes_in, labels_of
from rewardlab.policies.perturbed import Place
from rewardlab.policies.vectors import below

BOUNDLESS = 1 << 20
"""Tokens of context where neither model nor tokenizer sets a limit: tokenizers then name a number like 10^30."""


def take_value_head(model: Any) -> Tensor:
    """Remove the head (k, hidden) of a sequence classifier and return it; the classifier then returns hidden states.

    k is 1, or the number of its attributes (`policies/attributes.py`).
    """
    score, outputs = getattr(model, "score", None), max(1, len(attributes_in(model.config.to_dict())))
    if score is None or tuple(score.weight.shape[:1]) != (outputs,) or getattr(score, "bias", None) is not None:
        raise RewardlabError(f"{type(model).__name__} has no scalar head to read values from: it needs num_labels = 1")
    model.score = nn.Identity()
    return score.weight.detach().float().clone()


def classifier(model: Any, value_head: Tensor, tokenizer: Any, attributes: Attributes) -> Any:
    """A sequence classifier of the same trunk and a value head, to be saved only."""
    from transformers import AutoModelForSequenceClassification

    config = copy.deepcopy(model.config)
    told = labels_of(attributes)
    config.id2label, config.label2id = {int(i): name for i, name in told["id2label"].items()}, told["label2id"]
    config.rewardlab = told[KEY]
    config.pad_token_id = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    # on the meta device nothing is allocated: `assign` puts the real weights in, and buffers stay empty
    with torch.device("meta"):
        reward_model = AutoModelForSequenceClassification.from_config(config)
    reward_model.base_model.load_state_dict(model.base_model.state_dict(), assign=True)
    reward_model.score.weight = nn.Parameter(value_head.detach())
    return reward_model


def vocabulary(model: Any) -> tuple[Tensor, Tensor | None]:
    """Weight (V, hidden) and bias (V,) of the vocabulary head."""
    head = model.get_output_embeddings()
    if head is None or getattr(head, "weight", None) is None:
        raise RewardlabError(f"{type(model).__name__} names no output embeddings: rewardlab cannot read log-probs from it")
    return head.weight, getattr(head, "bias", None)


def untied(model: Any) -> tuple[nn.Parameter, nn.Parameter | None]:
    """Weight and bias of the vocabulary head, from now on in float32, and a matrix of its own if it was that of the embeddings."""
    weight, bias = vocabulary(model)
    if weight is model.get_input_embeddings().weight:
        own = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device=weight.device)
        own.load_state_dict(model.get_output_embeddings().state_dict())
        model.set_output_embeddings(own)
        # a saved checkpoint must not be tied again when it is loaded
        for config in (model.config, model.config.get_text_config()):
            config.tie_word_embeddings = False
    head = model.get_output_embeddings().float()
    return head.weight, getattr(head, "bias", None)


@contextmanager
def reading(model: Any, vectors: np.ndarray | None) -> Iterator[None]:
    """A context in which the model reads these vectors (k, d) where ids go on beyond those that it has embeddings for."""
    if vectors is None:
        yield
        return
    table = model.get_input_embeddings()
    plain, known = table.forward, len(table.weight)
    further = below(table.weight[:0].float(), vectors)

    def forward(ids: Tensor) -> Tensor:
        # the model's own embeddings by its own code, which may scale them
        own = plain(ids.clamp(max=known - 1))
        return torch.where((ids >= known)[..., None], F.embedding((ids - known).clamp(min=0), further), own.float())

    table.forward = forward
    try:
        yield
    finally:
        table.forward = plain


@contextmanager
def recomputing(model: Any) -> Iterator[None]:
    """A context in which a decoder layer keeps for the backward pass only what it read, and is computed again there.

    Transformers' own switch works in training mode alone, which would turn dropout on.
    """
    layers = list(decoder_layers(model))
    for layer in layers:
        # nothing in a layer is random. Its forward pass, not the whole call: hooks that gather divided weights run outside of it
        layer.forward = partial(
            checkpoint, layer.forward, use_reentrant=False, preserve_rng_state=False, early_stop=False
        )  # fmt: skip
    try:
        yield
    finally:
        for layer in layers:
            # that of its class comes back
            del layer.forward


def layer_matrices(model: Any) -> list[Tensor]:
    """The matrices that LoRA adapts and that 4 bits pack: of all linear layers but the vocabulary head."""
    from transformers.pytorch_utils import Conv1D

    head = vocabulary(model)[0]
    kept = [m.weight for k, m in model.named_modules() if isinstance(m, nn.Linear | Conv1D) and "lora_" not in k]
    return [weight for weight in kept if weight is not head]


def cached_numbers(config: Any) -> tuple[int, int]:
    """Numbers of keys, and of values, that a text model caches for each token; of sliding windows as if they had no end."""
    kinds = getattr(config, "layer_types", None) or ["full_attention"] * config.num_hidden_layers
    layers = sum(kind.endswith("attention") and not kind.startswith("linear") for kind in kinds)
    heads = getattr(config, "num_attention_heads", 0)
    if getattr(config, "kv_lora_rank", None):
        # latent attention is cached as the keys and values of all heads
        return layers * heads * (config.qk_nope_head_dim + config.qk_rope_head_dim), layers * heads * config.v_head_dim
    width = getattr(config, "head_dim", None) or (config.hidden_size // heads if heads else 0)
    each = layers * (getattr(config, "num_key_value_heads", None) or heads) * width
    return each, each


def reading_bytes(config: Any, dtype: torch.dtype, tokens: int) -> int:
    """Roughly the bytes that a pass without gradient over so many tokens takes at a time."""
    c, size = config.get_text_config(), torch.empty(0, dtype=dtype).element_size()
    return tokens * (8 * c.hidden_size + 3 * (getattr(c, "intermediate_size", None) or 4 * c.hidden_size)) * size


def decoder_layers(model: Any) -> nn.ModuleList:
    """The decoder layers of a causal language model, whatever its family calls them."""
    depth = model.config.get_text_config().num_hidden_layers
    # a vision encoder may be as deep
    lists = [m for m in (model.get_decoder() or model).modules() if isinstance(m, nn.ModuleList) and len(m) == depth]
    if not lists:
        raise RewardlabError(f"{type(model).__name__} has no list of its {depth} decoder layers: nothing can be put between them")
    return lists[0]


def layer_norms(model: Any) -> list[Place]:
    """The scales of the norms of whole hidden states in the decoder layers, in order; not of single heads, nor of the last norm."""
    hidden = model.config.get_text_config().hidden_size
    found = [
        (norm, "weight") for layer in decoder_layers(model) for norm in layer.children()
        if isinstance(weight := getattr(norm, "weight", None), Tensor) and tuple(weight.shape) == (hidden,)
    ]  # fmt: skip
    if not found:
        raise RewardlabError(f"{type(model).__name__} has no norms with scales in its layers: there is nothing to put noise on")
    return found


@torch.no_grad()
def check_head(model: Any, device: torch.device) -> None:
    """Refuse a model whose logits are not its vocabulary head applied to its trunk's hidden states."""
    weight, bias = vocabulary(model)
    # four tokens are enough to see any scaling of the logits; a soft cap may be too weak to show, so it is looked up
    capped = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
    if device.type == "meta" and not capped:
        # a model without numbers shows none
        return
    ids = torch.arange(4, device=device)[None] % weight.shape[0]
    formats = {p.dtype for p in model.parameters() if p.is_floating_point()}
    # matrices that are kept in another format than vectors are multiplied in it
    with torch.autocast(device.type, min(formats, key=lambda x: x.itemsize), enabled=len(formats) > 1):
        logits = model(input_ids=ids, use_cache=False).logits
        plain = F.linear(model.base_model(input_ids=ids, use_cache=False).last_hidden_state, weight, bias)
    if capped or logits.shape != plain.shape or float((logits - plain).abs().max()) > 1e-3 * float(logits.abs().max()):
        raise RewardlabError(
            f"{type(model).__name__} scales or soft-caps its logits, which rewardlab does not; use a checkpoint of another family"
        )


def context_of(model: Any, tokenizer: Any) -> int:
    """The longest text in tokens. A recurrent model sets no limit; its tokenizer's is used."""
    return getattr(model.config.get_text_config(), "max_position_embeddings", None) or min(tokenizer.model_max_length, BOUNDLESS)
