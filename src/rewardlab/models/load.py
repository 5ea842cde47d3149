"""Load policies by name."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from typing import Any

from rewardlab.clients.endpoint import is_served
from rewardlab.core import Task
from rewardlab.engine.distributed import is_rank_zero
from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import NAMES, Checkpoint, find, is_packaged, loading, parted
from rewardlab.models.formats import stored_dtype
from rewardlab.policies.hf.sight import FAMILIES
from rewardlab.policies.llama.int8 import CANNOT_TRAIN
from rewardlab.policies.llama.int8 import PREFIX as INT8
from rewardlab.policies.template_kwargs import with_template_of
from rewardlab.util.device import device_of
from rewardlab.util.progress import console

Policy = Any
"""Any object with the methods of `core.Policy`."""

_loading = threading.RLock()
"""One policy is loaded at a time: transformers imports its modules when they are first used, which threads must not do together."""

OWN = {
    "rewardlab_denoiser": ("diffusion.denoiser", "Denoiser"), "rewardlab_actor": ("control.actor", "Actor"),
    **dict.fromkeys(FAMILIES, ("hf.vision", "VisionPolicy")),
}  # fmt: skip
"""Model types of checkpoints that neither text policy can load: the module in `policies`, and its class."""

JUDGE = ":judge"


def load_policy(
    name: str, device: str = "auto", dtype: str = "auto", lora_rank: int | None = None, task: Task | None = None
) -> Policy:
    """Load a policy by name.

    embedded: the small warmed-up text policy for the task; embedded:TASK: that of another one.  embedded:TASK:judge: the same,
    made deeper and taught to judge its solutions, for judges to start from (`models/judge.py`).  embedded#3: the fourth start, the
    same warm-up with other weights, problems and mistakes (`models/starts.py`).  smollm2: SmolLM2-135M-Instruct; smollm2:TASK:
    taught the solutions of that task (`models/taught.py`).
    minilm: all-MiniLM-L6-v2, an encoder; from it, as from the folder of any other, reward models alone start
    (`policies/hf/encoder.py`).
    recorded: replies that stand in the problems' column `replies` (`policies/recorded.py`), which cannot be trained.
    flow, actor, vision: the small policies of tasks that are not text.  untrained: a tiny policy with random weights, of the
    task's kind.  A folder: a Hugging Face checkpoint, a PEFT adapter, or a run (its best model).  ORG/NAME or ORG/NAME@REVISION: a
    model of the Hugging Face hub, from the local cache or else downloaded.  With `hf:` before it, transformers runs it; otherwise
    the lean policy does, where it can, and transformers where it cannot. With `nf4:` before it, transformers runs it with the
    matrices of its layers kept in 4 bits (NF4, by bitsandbytes) below adapters, which must train. With `int8:` before it, the lean
    policy samples with weights in 8 bits (`policies/llama/int8.py`), which cannot be trained. openai:URL#NAME: a model behind
    an OpenAI-compatible address (`policies/served.py`), which cannot be trained; options may follow (`clients/endpoint.py`).

    lora_rank: train adapters of this rank instead of the weights; language models, and what is one in a vision-language model.
    An adapter of that rank as `name` trains on. Without lora_rank, adapters are merged into the weights, which train.

    Raises RewardlabError for an unknown name, for one that needs a task if none is passed, for a folder or hub that cannot be
    reached, for an architecture that nothing here runs, and for a model that cannot have adapters.
    """
    from rewardlab import registry

    if is_served(name):
        return served(name, lora_rank)
    if name == "recorded":
        return _recorded(lora_rank)
    device_of(device)
    with _loading:
        # warmed up on the endless task, so that tasks of every size share one cached policy
        return _by_name(name, device, dtype, lora_rank, registry.endless(task) if task else None)


def served(name: str, lora_rank: int | None) -> Policy:
    from rewardlab.clients.endpoint import endpoint_of
    from rewardlab.policies.served import CANNOT_TRAIN, ServedPolicy
    from rewardlab.policies.served_ids import ServedIds

    if lora_rank:
        raise RewardlabError(CANNOT_TRAIN)
    return (ServedIds if endpoint_of(name).settings.ids else ServedPolicy).load(name)


def _recorded(lora_rank: int | None) -> Policy:
    from rewardlab.policies.recorded import CANNOT_TRAIN, RecordedPolicy

    if lora_rank:
        raise RewardlabError(CANNOT_TRAIN)
    return RecordedPolicy()


def _by_name(name: str, device: str, dtype: str, lora_rank: int | None, task: Task | None) -> Policy:
    from rewardlab.models import starts

    name, number = starts.parted(name) if name.startswith("embedded#") else (name, 0)
    name, task, judge = _of_task(name, task)
    kind = task.model if name == "untrained" and task else name
    if kind in NAMES and not is_packaged(name):
        policy = starts.start(task, number, device, dtype) if number else _small(name, kind, device, dtype, task, judge)
        return _adapted(policy, name, lora_rank) if lora_rank else policy
    return _from_checkpoint(name, find(name), device, dtype, lora_rank)


def _of_task(name: str, task: Task | None) -> tuple[str, Task | None, bool]:
    """`embedded:TASK` or `embedded:TASK:judge` as the kind of model, its task, and whether it is a judge; other names unchanged."""
    kind, _, of = name.partition(":")
    if kind not in NAMES or not of or is_packaged(name):
        return name, task, False
    from rewardlab import registry

    judge = of.endswith(JUDGE)
    if judge and kind not in ("embedded", "untrained"):
        raise RewardlabError(f"{name!r}: only the embedded policy of a task has a judge; write embedded:{of}")
    return kind, registry.endless(registry.task(of.removesuffix(JUDGE))), judge


def _small(name: str, kind: str, device: str, dtype: str, task: Task | None, judge: bool = False) -> Policy:
    """One of the small policies that are made here."""
    if judge and task and name == "embedded":
        from rewardlab.models.judge import judge_trunk

        return judge_trunk(task, device, dtype)
    if kind in ("embedded", "untrained"):
        from rewardlab.models.embedded import embedded, untrained

        return embedded(device, dtype, task) if name == "embedded" else untrained(task=task)
    small = importlib.import_module(f"rewardlab.models.{kind}")
    if task is None:
        raise RewardlabError(f"the model {name!r} is made for a task: name one with --task")
    return small.untrained(task) if name == "untrained" else small.warmed(task)


def _adapted(policy: Policy, name: str, lora_rank: int, found: Checkpoint | None = None) -> Policy:
    if not hasattr(policy, "adapt"):
        raise RewardlabError(f"--lora-rank is for language models; {name!r} is not one")
    return policy.adapt(lora_rank, found and found.base)


def _from_checkpoint(name: str, found: Checkpoint, device: str, dtype: str, lora_rank: int | None) -> Policy:
    with loading(found.folder):
        check_asked(name, found, lora_rank)
        policy = _loaded(name, found, device, dtype, lora_rank)
    policy.loaded_dtype = stored_dtype(found.folder)
    use_template_of(policy, found.adapter)
    return policy


def use_template_of(policy: Policy, adapter: Path | None) -> None:
    """Render messages by the chat template that stands beside an adapter, where that is another than its base's."""
    if adapter and (words := with_template_of(policy.tokenizer, adapter)) is not None:
        policy.use_tokenizer(words)


def _loaded(name: str, found: Checkpoint, device: str, dtype: str, lora_rank: int | None) -> Policy:
    kind, (prefix, _) = found.config.get("model_type"), parted(name)
    if kind in OWN:
        return _of_own_kind(name, found, device, dtype, lora_rank)

    from rewardlab.policies.hf.encoder import is_encoder
    from rewardlab.policies.hf.policy import HFPolicy
    from rewardlab.policies.llama.surprise import KIND
    from rewardlab.policies.llama.unsupported import Unsupported

    if is_encoder(found.config):
        return _encoder(name, found, device, dtype, lora_rank)

    if kind == KIND and (prefix or found.adapter):
        raise RewardlabError(
            f"{name}: a value head that reads surprise is run by the lean policy alone: leave out {prefix or 'hf:'} and adapters"
        )
    why = f"as {prefix} asks"
    if prefix in ("", INT8):
        try:
            policy = _lean(found, device, dtype, lora_rank)
            if prefix:
                policy.sample_in_int8()
            _say(f"{name}: {kind}, run by the lean policy{', sampled with weights in 8 bits' if prefix else ''}")
            return policy
        except Unsupported as reason:
            if prefix:
                raise RewardlabError(f"{name}: only the lean policy samples with weights in 8 bits: {reason}") from None
            why = str(reason)
    nf4 = prefix == "nf4:"
    policy = HFPolicy.load(found.folder, device, dtype, lora_rank=lora_rank, adapter=found.adapter, base=found.base, nf4=nf4)
    _say(f"{name}: {kind}, run by transformers ({why})")
    return policy


def _of_own_kind(name: str, found: Checkpoint, device: str, dtype: str, lora_rank: int | None) -> Policy:
    kind = found.config["model_type"]
    module, name_of = OWN[kind]
    cls = getattr(importlib.import_module(f"rewardlab.policies.{module}"), name_of)
    if kind in FAMILIES:
        return cls.load(found.folder, device, dtype, lora_rank, found.adapter, found.base)
    if found.adapter:
        raise RewardlabError(f"the adapter {found.adapter} is on a {kind} model, and adapters are for language models only")
    # the small policies of other kinds compute in float32 alone
    policy = cls.load(found.folder, device)
    return _adapted(policy, name, lora_rank, found) if lora_rank else policy


def _encoder(name: str, found: Checkpoint, device: str, dtype: str, lora_rank: int | None) -> Policy:
    from rewardlab.policies.hf.encoder import EncoderPolicy

    check_encoder(name, found, lora_rank)
    policy = EncoderPolicy.load(found.folder, device, dtype)
    _say(f"{name}: {found.config['model_type']}, an encoder that scores replies, run by transformers")
    return policy


def check_encoder(name: str, found: Checkpoint, lora_rank: int | None) -> None:
    """Raise RewardlabError where an encoder is asked to train otherwise than by all its weights."""
    if lora_rank or found.adapter or parted(name)[0] not in ("", "hf:"):
        raise RewardlabError(f"{name} is an encoder, all of whose weights train: leave out adapters (--lora-rank), nf4: and int8:")


def check_asked(name: str, found: Checkpoint, lora_rank: int | None) -> None:
    """Raise RewardlabError where the rank of the adapters, or what stands before a model's name, asks for what cannot be."""
    if lora_rank and found.rank and lora_rank != found.rank:
        raise RewardlabError(
            f"the adapter {found.adapter} has rank {found.rank}: train it on with --lora-rank {found.rank}, or export it merged "
            f"and begin a new one of rank {lora_rank} on that"
        )
    prefix, kind = parted(name)[0], found.config.get("model_type")
    if prefix == "nf4:" and not lora_rank:
        raise RewardlabError(
            f"{name}: what is kept in 4 bits cannot train: train adapters on it (--lora-rank 32), or leave out nf4:"
        )
    if prefix == "nf4:" and kind in FAMILIES:
        raise RewardlabError(
            f"{name}: vision-language models are not kept in 4 bits: leave out nf4:, and train adapters on it as it is"
        )
    if prefix == INT8 and (lora_rank or kind in OWN):
        why = CANNOT_TRAIN if lora_rank else f"weights in 8 bits are for language models, and this is a {kind}"
        raise RewardlabError(f"{name}: {why}")


def _lean(found: Checkpoint, device: str, dtype: str, lora_rank: int | None) -> Policy:
    """The lean policy of a checkpoint. Raises Unsupported if it cannot run it."""
    from rewardlab.policies.llama.lora import check_adapter
    from rewardlab.policies.llama.policy import LlamaPolicy

    if found.adapter:
        # before gigabytes of weights are read
        check_adapter(found.adapter)
    policy = LlamaPolicy.load(found.folder, device, dtype, frozen=bool(lora_rank))
    if found.adapter:
        return policy.load_adapter(found.adapter, found.base, trains=bool(lora_rank))
    return policy.adapt(lora_rank, found.base) if lora_rank else policy


def _say(text: str) -> None:
    if is_rank_zero():
        console.print(text, highlight=False, soft_wrap=True)
