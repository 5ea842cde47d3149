"""A policy of which shapes and formats are known, and no number: what `train --dry-run` plans with.

It is made as `load.py` makes the real one, but on PyTorch's meta device and from config.json alone. So adapters, copies and value
heads are put on it by the same code, its parameters are counted exactly, and a model of any size takes no memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from rewardlab import registry
from rewardlab.clients.endpoint import is_served
from rewardlab.core import Task
from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import NAMES, Checkpoint, find, is_packaged, kind_of, loading, parted
from rewardlab.models.fingerprint import fingerprint as code_fingerprint
from rewardlab.models.formats import stored_dtype
from rewardlab.models.load import OWN, Policy, _of_task, check_asked, check_encoder, load_policy, use_template_of
from rewardlab.policies.hf.sight import FAMILIES
from rewardlab.policies.llama.checkpoint import check_weights
from rewardlab.policies.llama.lora import check_adapter
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.policies.llama.surprise import KIND
from rewardlab.policies.llama.unsupported import Unsupported
from rewardlab.policies.tokenizer import read_tokenizer
from rewardlab.util.files import cache

META = torch.device("meta")
TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json")
"""Files of which a checkpoint with a tokenizer has one."""


def is_checkpoint(name: str) -> bool:
    """Whether a model is a checkpoint of a folder or the hub, and not one of the small policies that are made here."""
    return is_packaged(name) or (kind_of(name) not in NAMES and not is_served(name))


def planned(name: str, device: str, dtype: torch.dtype, lora_rank: int | None = None) -> Policy:
    """The policy of a checkpoint as `load_policy` would make it, without numbers; a small one of another kind is loaded.

    A folder needs no more than its config.json: prompts are then counted by the small policies' tokenizer, which takes more tokens.
    Of a model of the hub, all but the weights is downloaded.
    `policy.packed` says whether its matrices would be kept in 4 bits.  Raises RewardlabError as `load_policy`.
    """
    found = find(name, weights=False)
    with loading(found.folder):
        check_asked(name, found, lora_rank)
        return _unloaded(name, found, device, dtype, lora_rank)


def _unloaded(name: str, found: Checkpoint, device: str, dtype: torch.dtype, lora_rank: int | None) -> Policy:
    from rewardlab.policies.hf.encoder import EncoderPolicy, is_encoder

    kind, (prefix, _) = found.config.get("model_type"), parted(name)
    if kind in (*OWN, KIND) and kind not in FAMILIES:
        return load_policy(name, device, str(dtype).removeprefix("torch."), lora_rank)
    if is_encoder(found.config):
        check_encoder(name, found, lora_rank)
        return EncoderPolicy.without_numbers(found.folder, dtype)
    policy = _seeing(name, found, dtype, lora_rank) if kind in FAMILIES else _planned(prefix, found, dtype, lora_rank)
    policy.packed, policy.loaded_dtype = prefix == "nf4:", stored_dtype(found.folder)
    policy.base = found.base if lora_rank else None
    policy.stop_as_in(found.folder)
    use_template_of(policy, found.adapter)
    return policy


def unmade(name: str, task: Task) -> LlamaPolicy | None:
    """One like the small text policy of this name, with random weights, where that is not in the cache: to make it takes minutes.
    None where it is there, and for any other model."""
    from rewardlab.models import embedded, starts

    kind, number = starts.parted(name) if name.startswith("embedded#") else (name, 0)
    kind, of, judge = _of_task(kind, registry.endless(task))
    own = embedded.with_own_policy(of)
    if kind != "embedded" or judge or (cache() / small_folder(own, number)).exists():
        return None
    return embedded._new(embedded.tokenizer(own), {})


def small_folder(own: Task | None, number: int) -> str:
    """The name in the cache of a small policy and its start.  own: None for the one that tasks share."""
    from rewardlab.models import embedded, starts

    name, made = f"embedded-{own.name}" if own else "embedded", embedded.fingerprint(own)
    return f"{name}-{number}-{code_fingerprint((), starts.MAKERS, (made, number))}" if number else f"{name}-{made}"


def has_tokenizer(folder: Path) -> bool:
    return any((folder / file).is_file() for file in TOKENIZERS)


def weights_in(folder: Path) -> bool:
    """Whether a checkpoint folder holds weights, and not config.json alone."""
    return any(next(folder.glob(pattern), None) for pattern in ("*.safetensors", "*.bin"))


def _planned(prefix: str, found: Checkpoint, dtype: torch.dtype, lora_rank: int | None) -> Policy:
    """As transformers or the lean policy would run it: the same choice as `load_policy` makes."""
    from rewardlab.policies.hf.adapters import keep_frozen, with_adapters
    from rewardlab.policies.hf.loading import without_weights
    from rewardlab.policies.hf.policy import HFPolicy

    tokenizer = _tokenizer(found.folder)
    model, value_head = without_weights(found.folder)
    if not prefix:
        try:
            lean = _lean(found, {name for name, _ in model.named_parameters()}, value_head is not None)
            policy = LlamaPolicy(lean, tokenizer, META, dtype)
            return policy.adapt(lora_rank) if lora_rank else policy
        except Unsupported:
            pass
    if lora_rank:
        keep_frozen(model := with_adapters(model, lora_rank), dtype)
    return HFPolicy(model, tokenizer, META, dtype, value_head=value_head)


def _seeing(name: str, found: Checkpoint, dtype: torch.dtype, lora_rank: int | None) -> Policy:
    """A vision-language model."""
    from rewardlab.policies.hf.adapters import keep_frozen, linear_in_text, with_adapters
    from rewardlab.policies.hf.eyes import eye_of
    from rewardlab.policies.hf.loading import without_weights
    from rewardlab.policies.hf.vision import VisionPolicy

    if not has_tokenizer(found.folder):
        raise RewardlabError(f"{found.folder} has no tokenizer, by which the tokens of its pictures are counted: put it there")
    model, _ = without_weights(found.folder, sees=True)
    if lora_rank:
        keep_frozen(model := with_adapters(model, lora_rank, linear_in_text(model)), dtype)
    policy = VisionPolicy(model, VisionPolicy._tokenizer(found.folder), META, dtype)
    policy.eye = eye_of(found.folder, policy.model.config, policy.tokenizer)
    return policy


def _lean(found: Checkpoint, names: set[str], value_head: bool) -> Llama:
    """The lean model; raises Unsupported where it has no place for one of the weights of these names."""
    if found.adapter:
        check_adapter(found.adapter)
    with META:
        lean = Llama(found.config, value_head=value_head)
    check_weights(lean, names)
    return lean


def _tokenizer(folder: Path) -> Any:
    if has_tokenizer(folder):
        return read_tokenizer(folder)
    from rewardlab.models.embedded import tokenizer

    return tokenizer()
