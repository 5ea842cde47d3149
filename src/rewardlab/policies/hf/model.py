"""What checkpoints of transformers differ in: how they load, where their vocabulary head is, adapters, scalar heads."""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rewardlab.errors import RewardlabError

BOUNDLESS = 1 << 20


def load_model(folder: str, lora_rank: int | None) -> tuple[Any, Tensor | None]:
    """A causal model, or a sequence classifier's trunk and its scalar head (1, hidden); adapters on all linear layers if asked."""
    import transformers

    try:
        config = transformers.AutoConfig.from_pretrained(folder)
        scores = str((config.architectures or [""])[0]).endswith("ForSequenceClassification")
        kind: Any = transformers.AutoModelForSequenceClassification if scores else transformers.AutoModelForCausalLM
        model = kind.from_pretrained(folder, dtype=torch.float32)
    except (OSError, ValueError) as e:
        raise RewardlabError(f"transformers cannot load {folder} as a language model: {str(e).splitlines()[0]}") from e
    head = take_value_head(model) if scores else None
    return (with_adapters(model, lora_rank) if lora_rank else model), head


def adapted(model: Any) -> bool:
    """Whether this is a PeftModel."""
    return hasattr(model, "merge_and_unload")


def with_adapters(model: Any, rank: int) -> Any:
    """LoRA on all linear layers. Their random half comes from a seed of its own: loading twice gives the same model."""
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as e:
        raise RewardlabError("LoRA needs peft: pip install 'rewardlab[lora]'") from e
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return get_peft_model(model, config)


@torch.no_grad()
def for_sampling(model: Any, dtype: torch.dtype) -> Any:
    """The model with adapters merged and the matrices of its products cast; itself where it has none.

    Autocast keeps its copy of a matrix that trains, but casts a frozen one anew for every token; and adapters cost two more
    products for each matrix. All other weights are shared with the model.
    """
    if not adapted(model):
        return model
    from transformers.pytorch_utils import Conv1D

    modules, weights = list(model.modules()), {id(p): p for p in model.parameters()}
    merged = _merged(modules)
    looked_up = {id(m.weight) for m in modules if isinstance(m, nn.Embedding)}
    for p in (p for m in modules if isinstance(m, nn.Linear | Conv1D) for p in m.parameters(recurse=False)):
        if id(p) not in looked_up:
            weights[id(p)] = nn.Parameter(merged.get(id(p), p).to(dtype), requires_grad=False)
    other = copy.deepcopy(model, weights).unload()
    head = other.get_output_embeddings()
    if head is not None and id(head.weight) in looked_up:
        head.weight = nn.Parameter(head.weight.to(dtype), requires_grad=False)
    return other


def _merged(modules: list[nn.Module]) -> dict[int, Tensor]:
    """The weights that have adapters, with these added, by the identity of the weight."""
    from peft.tuners.lora import LoraLayer

    weights = {}
    for module in modules:
        if isinstance(module, LoraLayer):
            layer: Any = module
            weight = layer.get_base_layer().weight
            weights[id(weight)] = weight + sum(layer.get_delta_weight(name) for name in layer.active_adapters)
    return weights


def take_value_head(model: Any) -> Tensor:
    """The scalar head of a sequence classifier, which then has none of its own."""
    score = getattr(model, "score", None)
    if score is None or tuple(score.weight.shape[:1]) != (1,) or getattr(score, "bias", None) is not None:
        raise RewardlabError(f"{type(model).__name__} has no scalar head to read values from: it needs num_labels = 1")
    model.score = nn.Identity()
    return score.weight.detach().clone()


def classifier(model: Any, value_head: Tensor, tokenizer: Any) -> Any:
    """The same trunk under a sequence classifier's scalar head, to be saved: only its stored weights are real."""
    from transformers import AutoModelForSequenceClassification

    config = copy.deepcopy(model.config)
    config.num_labels = 1
    config.pad_token_id = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
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


@torch.no_grad()
def check_head(model: Any, device: torch.device) -> None:
    """Refuse a model whose logits are not what its vocabulary head makes of its trunk's hidden states."""
    weight, bias = vocabulary(model)
    ids = torch.arange(4, device=device)[None] % weight.shape[0]
    logits = model(input_ids=ids, use_cache=False).logits
    plain = F.linear(model.base_model(input_ids=ids, use_cache=False).last_hidden_state, weight, bias)
    capped = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
    if capped or logits.shape != plain.shape or float((logits - plain).abs().max()) > 1e-3 * float(logits.abs().max()):
        raise RewardlabError(
            f"{type(model).__name__} scales or soft-caps its logits, which rewardlab does not; use a checkpoint of another family"
        )


def context_of(model: Any, tokenizer: Any) -> int:
    """The longest text; a recurrent model, which names none, is bounded by its tokenizer."""
    return getattr(model.config.get_text_config(), "max_position_embeddings", None) or min(tokenizer.model_max_length, BOUNDLESS)
