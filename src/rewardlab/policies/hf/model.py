"""Where transformers models differ: loading, the vocabulary head, adapters, scalar heads."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from rewardlab.errors import RewardlabError
from rewardlab.policies.adapter import WEIGHTS, Base, beyond_lora, config_of
from rewardlab.policies.attributes import KEY, Attributes, attributes_in, labels_of
from rewardlab.policies.hf.sight import FAMILIES
from rewardlab.policies.perturbed import Place
from rewardlab.policies.vectors import below
from rewardlab.util.extras import require

PEFT = "base_model.model."
"""Before the names of a model's weights in a PeftModel."""
BOUNDLESS = 1 << 20
"""Tokens of context where neither model nor tokenizer sets a limit: tokenizers then name a number like 10^30."""


def load_model(
    folder: Path, lora_rank: int | None, adapter: Path | None = None, nf4: torch.device | None = None
) -> tuple[Any, Tensor | None]:
    """A causal model and None, or a sequence classifier's trunk and its scalar head (1, hidden).

    adapter: the folder of an adapter to put on the model.  lora_rank: adapters train, this one or else fresh ones on all linear
    layers; without it, the adapter is merged into the weights.  nf4: the device on which the matrices of the layers are kept
    in 4 bits, each 64 weights in a row with a scale of their own; None: they are float32.
    """

    packed = in_nf4(nf4) if nf4 else {}
    try:
        _, kind, scores = _kind_of(folder)
        model, told = kind.from_pretrained(
            str(folder), dtype=torch.float32, trust_remote_code=False, output_loading_info=True, **packed
        )
    except (OSError, ValueError, KeyError) as e:
        raise _not_loaded(folder, e) from e
    if missing := told["missing_keys"]:
        # transformers would fill them with random numbers
        raise RewardlabError(f"{folder}: the checkpoint lacks the weight {min(missing)}")
    head = take_value_head(model) if scores else None
    if adapter:
        return with_saved_adapter(model, adapter, bool(lora_rank)), head
    return (with_adapters(model, lora_rank) if lora_rank else model), head


def _kind_of(folder: Path) -> tuple[Any, Any, bool]:
    """The configuration in a folder, the class of transformers for it, and whether that is a classifier, not a causal model."""
    import transformers

    # never code that came with a checkpoint
    config = transformers.AutoConfig.from_pretrained(str(folder), trust_remote_code=False)
    scores = str((config.architectures or [""])[0]).endswith("ForSequenceClassification")
    return config, transformers.AutoModelForSequenceClassification if scores else transformers.AutoModelForCausalLM, scores


def without_weights(folder: Path) -> tuple[Any, Tensor | None]:
    """What `load_model` returns, from config.json alone: on the meta device, where tensors have shapes and no numbers."""

    try:
        config, kind, scores = _kind_of(folder)
        with torch.device("meta"):
            model = kind.from_config(config, dtype=torch.float32, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as e:
        raise _not_loaded(folder, e) from e
    return model, take_value_head(model) if scores else None


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


def adapted(model: Any) -> bool:
    """Whether this is a PeftModel."""
    return hasattr(model, "merge_and_unload")


def with_adapters(model: Any, rank: int) -> Any:
    """LoRA on all linear layers. Their random half has a fixed seed: loading twice gives the same model."""
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as e:
        raise RewardlabError("LoRA needs peft: pip install 'rewardlab[lora]'") from e
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        try:
            # of a model without numbers, neither do adapters get any
            return get_peft_model(model, config, low_cpu_mem_usage=model.device.type == "meta")
        except ValueError as e:
            raise RewardlabError(f"{type(model).__name__} cannot have LoRA on all linear layers: {e}") from e


def with_saved_adapter(model: Any, folder: Path, trains: bool) -> Any:
    """The model with the adapter in a folder: a PeftModel if it trains, else merged into the weights."""
    if extras := beyond_lora(config_of(folder)):
        raise RewardlabError(f"the adapter {folder} is more than LoRA on weights ({extras}); merge it with peft and use that")
    try:
        from peft import PeftModel
    except ImportError as e:
        raise RewardlabError("LoRA needs peft: pip install 'rewardlab[lora]'") from e
    try:
        whole = PeftModel.from_pretrained(model, str(folder), is_trainable=trains)
    except (RuntimeError, ValueError) as e:
        raise RewardlabError(f"{folder} does not fit its base model: {(str(e).splitlines() or [''])[-1].strip()}") from e
    # log-probs are computed from the head's own matrix; and a matrix that is tied to the head cannot be merged without it
    if any(hasattr(layer, "lora_A") for layer in (model.get_input_embeddings(), model.get_output_embeddings())):
        raise RewardlabError(f"the adapter {folder} is on the vocabulary too; merge it with peft and use that")
    # peft froze the weights
    return whole if trains else whole.merge_and_unload().requires_grad_(True)


def save_adapter(model: Any, folder: Path, base: Base) -> None:
    """Write the adapters of a PeftModel."""
    for config in model.peft_config.values():
        config.base_model_name_or_path, config.revision = base.name, base.revision
    # "auto" would ask the hub whether the base's vocabulary has changed; it never changes here
    model.save_pretrained(str(folder), save_embedding_layers=False)
    save_file(load_file(folder / WEIGHTS), folder / WEIGHTS, metadata=base.metadata)
    # a form to fill in
    (folder / "README.md").unlink(missing_ok=True)


def checkpoint_weights(whole: Any, model: Any) -> Iterator[tuple[str, Tensor]]:
    """The weights of a model, without the adapters on it, by their names in a checkpoint.

    whole: the PeftModel around `model`, or `model` itself. Raises RewardlabError where they are packed into 4 bits.
    """
    from transformers.core_model_loading import revert_weight_conversion

    if getattr(model, "is_loaded_in_4bit", False):
        raise RewardlabError("the weights below the adapters are in 4 bits (nf4:), which nothing else here can take over")
    state = {
        name.removeprefix(PEFT).replace(".base_layer.", "."): tensor
        for name, tensor in whole.state_dict().items()
        if ".lora_" not in name
    }
    # transformers may hold several matrices of a checkpoint in one
    yield from revert_weight_conversion(model, state).items()


@torch.no_grad()
def for_sampling(model: Any, dtype: torch.dtype) -> Any:
    """The model with adapters merged and its linear layers' matrices cast; the model itself if it has no adapters.

    Autocast caches its copy of a matrix that trains, but casts a frozen one again for every token; and adapters cost two more
    products per matrix. All other weights are shared with the model.
    """
    # what is packed into 4 bits cannot have adapters added to it without rounding them too
    if not adapted(model) or getattr(model.get_base_model(), "is_loaded_in_4bit", False):
        return model
    from transformers.pytorch_utils import Conv1D

    modules, weights = list(model.modules()), {id(p): p for p in model.parameters()}
    merged = _merged(modules)
    embeddings = {id(m.weight) for m in modules if isinstance(m, nn.Embedding)}
    for p in (p for m in modules if isinstance(m, nn.Linear | Conv1D) for p in m.parameters(recurse=False)):
        # an embedding tied to the head is looked up in float32; only the head gets a cast copy, below
        if id(p) not in embeddings:
            weights[id(p)] = nn.Parameter(merged.get(id(p), p).to(dtype), requires_grad=False)
    # deepcopy's memo: each weight maps to itself or to its cast version, so nothing else is copied
    copied = copy.deepcopy(model, weights).unload()
    head = copied.get_output_embeddings()
    if head is not None and id(head.weight) in embeddings:
        head.weight = nn.Parameter(head.weight.to(dtype), requires_grad=False)
    return copied


def _merged(modules: list[nn.Module]) -> dict[int, Tensor]:
    """id(weight) to the weight with its adapters added, for each weight that has some."""
    from peft.tuners.lora import LoraLayer

    weights = {}
    for module in modules:
        if isinstance(module, LoraLayer):
            layer: Any = module
            weight = layer.get_base_layer().weight
            weights[id(weight)] = weight + sum(layer.get_delta_weight(name) for name in layer.active_adapters)
    return weights


def take_value_head(model: Any) -> Tensor:
    """Remove the head (k, hidden) of a sequence classifier and return it; the classifier then returns hidden states.

    k is 1, or the number of its attributes (`policies/attributes.py`).
    """
    score, outputs = getattr(model, "score", None), max(1, len(attributes_in(model.config.to_dict())))
    if score is None or tuple(score.weight.shape[:1]) != (outputs,) or getattr(score, "bias", None) is not None:
        raise RewardlabError(f"{type(model).__name__} has no scalar head to read values from: it needs num_labels = 1")
    model.score = nn.Identity()
    return score.weight.detach().clone()


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
    """Weight and bias of the vocabulary head, which from now on is a matrix of its own if it was that of the embeddings."""
    weight, bias = vocabulary(model)
    if weight is model.get_input_embeddings().weight:
        own = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device=weight.device, dtype=weight.dtype)
        own.load_state_dict(model.get_output_embeddings().state_dict())
        model.set_output_embeddings(own)
        # a saved checkpoint must not be tied again when it is loaded
        for config in (model.config, model.config.get_text_config()):
            config.tie_word_embeddings = False
    head = model.get_output_embeddings()
    return head.weight, getattr(head, "bias", None)


@contextmanager
def reading(model: Any, vectors: np.ndarray | None) -> Iterator[None]:
    """A context in which the model reads these vectors (k, d) where ids go on beyond those that it has embeddings for."""
    if vectors is None:
        yield
        return
    table = model.get_input_embeddings()
    plain, known = table.forward, len(table.weight)
    further = below(table.weight[:0], vectors)

    def forward(ids: Tensor) -> Tensor:
        # the model's own embeddings by its own code, which may scale them
        own = plain(ids.clamp(max=known - 1))
        return torch.where((ids >= known)[..., None], F.embedding((ids - known).clamp(min=0), further).to(own.dtype), own)

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
    logits = model(input_ids=ids, use_cache=False).logits
    plain = F.linear(model.base_model(input_ids=ids, use_cache=False).last_hidden_state, weight, bias)
    if capped or logits.shape != plain.shape or float((logits - plain).abs().max()) > 1e-3 * float(logits.abs().max()):
        raise RewardlabError(
            f"{type(model).__name__} scales or soft-caps its logits, which rewardlab does not; use a checkpoint of another family"
        )


def context_of(model: Any, tokenizer: Any) -> int:
    """The longest text in tokens. A recurrent model sets no limit; its tokenizer's is used."""
    return getattr(model.config.get_text_config(), "max_position_embeddings", None) or min(tokenizer.model_max_length, BOUNDLESS)
