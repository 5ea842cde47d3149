"""LoRA on transformers models, by peft: put on, saved, merged."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from rewardlab.errors import RewardlabError
from rewardlab.policies.adapter import WEIGHTS, Base, beyond_lora, config_of

PEFT = "base_model.model."
"""Before the names of a model's weights in a PeftModel."""
ALL_LINEAR = "all-linear"
"""What peft calls all linear layers but the vocabulary head."""
BELOW = re.compile(r"\.(base_layer\.)+")
"""Within the names of weights that have adapters."""


@torch.no_grad()
def keep_frozen(model: Any, dtype: torch.dtype) -> None:
    """Keep the matrices that are only read in a number format, and all other frozen weights in float32.

    A format that computes takes no copies of them then. Vectors (norms, biases) are few, and are added and multiplied in float32.
    Tables of experts are multiplied in the format that they are kept in; other products are so under autocast anyway.
    """
    from transformers.pytorch_utils import Conv1D

    modules = list(model.modules())
    # not an embedding that scales what it has looked up, which would be computed in that format. Experts of a layer are one table
    small = {
        id(p) for m in modules for p in m.parameters(recurse=False)
        if (p.dim() == 2 and (isinstance(m, nn.Linear | Conv1D) or type(m) is nn.Embedding))
        or (p.dim() > 2 and not isinstance(m, nn.modules.conv._ConvNd))
    } - {
        id(p) for m in modules if isinstance(m, nn.Embedding) and type(m) is not nn.Embedding for p in m.parameters(recurse=False)
    }  # fmt: skip
    for p in model.parameters():
        if not p.requires_grad and p.is_floating_point():
            p.data = p.data.to(dtype if id(p) in small else torch.float32)
    for module in modules:
        # the sums that layers add to are float32, also where the table is not
        if type(module) is nn.Embedding and in_float32 not in module._forward_hooks.values():
            module.register_forward_hook(in_float32)


def in_float32(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
    return output.float()


def adapted(model: Any) -> bool:
    """Whether this is a PeftModel."""
    return hasattr(model, "merge_and_unload")


def linear_in_text(model: Any) -> str:
    """What names, to peft, the linear layers of a vision-language model's language model: a regular expression."""
    decoder = model.get_decoder()
    where = next(name for name, module in model.named_modules() if module is decoder)
    kinds = {name.rpartition(".")[2] for name, module in decoder.named_modules() if isinstance(module, nn.Linear)}
    return rf"{re.escape(where)}\..*\.({'|'.join(sorted(kinds))})"


def with_adapters(model: Any, rank: int, targets: str = ALL_LINEAR) -> Any:
    """LoRA on all linear layers, or on those whose names match `targets`. Their random half has a fixed seed: loading twice gives
    the same model."""
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as e:
        raise RewardlabError("LoRA needs peft: pip install 'rewardlab[lora]'") from e
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=targets)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        try:
            with _quiet():
                # of a model without numbers, neither do adapters get any
                return get_peft_model(model, config, low_cpu_mem_usage=model.device.type == "meta")
        except ValueError as e:
            raise RewardlabError(f"{type(model).__name__} cannot have LoRA on all linear layers: {e}") from e


@contextmanager
def _quiet() -> Iterator[None]:
    """A context without warnings of peft of which nothing follows for who trains."""
    with warnings.catch_warnings():
        # it looks for tables of experts among modules, and says of those that it adapts that they are not there
        warnings.filterwarnings("ignore", message="The following (rank|alpha)_pattern keys")
        # it asks transformers by an older name, and sets what it says of GPT-2's layers by itself
        warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated")
        warnings.filterwarnings("ignore", message="fan_in_fan_out is set to False")
        yield


def with_saved_adapter(model: Any, folder: Path, trains: bool) -> Any:
    """The model with the adapter in a folder: a PeftModel if it trains, else merged into the weights."""
    # tables of experts, which peft names apart, have matrices A and B as others do
    if extras := beyond_lora(config_of(folder) | {"target_parameters": None}):
        raise RewardlabError(f"the adapter {folder} is more than LoRA on weights ({extras}); merge it with peft and use that")
    try:
        from peft import PeftModel
    except ImportError as e:
        raise RewardlabError("LoRA needs peft: pip install 'rewardlab[lora]'") from e
    try:
        with _quiet():
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


def merged_copy(model: Any) -> Any:
    """A PeftModel's model in float32, the adapters added to its weights."""
    return copy.deepcopy(model).float().merge_and_unload()


def checkpoint_weights(whole: Any, model: Any) -> Iterator[tuple[str, Tensor]]:
    """The weights of a model, without the adapters on it, by their names in a checkpoint.

    whole: the PeftModel around `model`, or `model` itself. Raises RewardlabError where they are packed into 4 bits.
    """
    from transformers.core_model_loading import revert_weight_conversion

    if getattr(model, "is_loaded_in_4bit", False):
        raise RewardlabError("the weights below the adapters are in 4 bits (nf4:), which nothing else here can take over")
    # several tables of one module have adapters within adapters
    state = {BELOW.sub(".", name.removeprefix(PEFT)): tensor for name, tensor in whole.state_dict().items() if ".lora_" not in name}
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
            weights[id(p)] = nn.Parameter(merged.pop(id(p), p).to(dtype), requires_grad=False)
    # of modules of other kinds (tables of experts, what chooses among these), which compute in the format that they are kept in
    weights |= {place: nn.Parameter(sum_, requires_grad=False) for place, sum_ in merged.items()}
    # deepcopy's memo: each weight maps to itself or to its cast version, so nothing else is copied
    copied = copy.deepcopy(model, weights).unload()
    head = copied.get_output_embeddings()
    if head is not None and id(head.weight) in embeddings:
        head.weight = nn.Parameter(head.weight.to(dtype), requires_grad=False)
    return copied


def tables(model: Any) -> list[Tensor]:
    """The weights below adapters that are of no linear layer: tables of experts, and what chooses among these."""
    return [weight for layer, weight in _below(model.modules()) if not isinstance(layer.get_base_layer(), _linear())]


def _merged(modules: list[nn.Module]) -> dict[int, Tensor]:
    """id(weight) to the weight with its adapters added, for each weight that has some."""
    return {
        id(weight): weight + sum(layer.get_delta_weight(name) for name in layer.active_adapters)
        for layer, weight in _below(modules)
    }


def _below(modules: Iterable[nn.Module]) -> Iterator[tuple[Any, Tensor]]:
    """The adapters among modules, each with the weight below it."""
    from peft.tuners.lora import LoraLayer

    for module in modules:
        if isinstance(module, LoraLayer):
            layer: Any = module
            # several tables of one module have adapters one within the other, which name the table
            yield layer, getattr(layer.get_base_layer(), getattr(layer, "parameter_name", "weight"))


def _linear() -> tuple[type[nn.Module], ...]:
    from transformers.pytorch_utils import Conv1D

    return nn.Linear, Conv1D
