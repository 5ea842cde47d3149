"""Load policies by name, and the models of second learners."""

from __future__ import annotations

import importlib
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from rewardlab.clients.endpoint import is_served
from rewardlab.core import Learner, Task
from rewardlab.engine.distributed import is_rank_zero
from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import NAMES, Checkpoint, find, loading, parted
from rewardlab.models.formats import stored_dtype
from rewardlab.models.reads import reads_of, words
from rewardlab.policies.attributes import read_attributes
from rewardlab.policies.hf.sight import FAMILIES
from rewardlab.policies.llama.int8 import CANNOT_TRAIN, in_int8
from rewardlab.policies.llama.int8 import PREFIX as INT8
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


HEADS = "heads:"
"""A learner's init, and names that commas part: a vocabulary head for each on the policy's trunk (`policies/heads.py`)."""
PREFIX = "prefix:"
"""A learner's init, and settings NAME=VALUE that commas part, or the folder of a trained one: an assistant that writes latents
before the policy's replies (`policies/assistant.py`)."""
SURPRISED = "value-head:surprise"
"""A learner's init: a value head whose trunk also reads how surprised the first policy was (`policies/llama/surprise.py`)."""
ENERGY = "energy:"
"""A learner's init, and one that gives a reward model: the same with an energy head on it (`policies/energy.py`)."""
RATED = "attributes:"
"""A learner's init, NAME=WEIGHT that commas part, a colon, and an init that gives a reward model: the same with an output for each
of these attributes (`policies/attributes.py`)."""
WORDS = "value-head:words="
"""Before two words that a comma parts: a learner's init, a value head that starts as log P(first) - log P(second)."""
MADE = ("copy:", "value-head", HEADS, PREFIX, "prm:", "model:")
"""Beginnings of a learner's init that is no model's name: what is made from the policy, and scorers of steps."""
JUDGE = ":judge"


def load_policy(
    name: str, device: str = "auto", dtype: str = "auto", lora_rank: int | None = None, task: Task | None = None
) -> Policy:
    """Load a policy by name.

    embedded: the small warmed-up text policy for the task; embedded:TASK: that of another one.  embedded:TASK:judge: the same,
    made deeper and taught to judge its solutions, for judges to start from (`models/judge.py`).  embedded#3: the fourth start, the
    same warm-up with other weights, problems and mistakes (`models/starts.py`).  smollm2: SmolLM2-135M-Instruct.
    recorded: replies that stand in the problems' column `replies` (`policies/recorded.py`), which cannot be trained.
    flow, actor, vision: the small policies of tasks that are not text.  untrained: a tiny policy with random weights, of the
    task's kind.  A folder: a Hugging Face checkpoint, a PEFT adapter, or a run (its best model).  ORG/NAME or ORG/NAME@REVISION: a
    model of the Hugging Face hub, from the local cache or else downloaded.  With `hf:` before it, transformers runs it; otherwise
    the lean policy does, where it can, and transformers where it cannot. With `nf4:` before it, transformers runs it with the
    matrices of its layers kept in 4 bits (NF4, by bitsandbytes) below adapters, which must train. With `int8:` before it, the lean
    policy samples with weights in 8 bits (`policies/llama/int8.py`), which cannot be trained. openai:URL#NAME: a model behind
    an OpenAI-compatible address (`policies/served.py`), which cannot be trained; options may follow (`clients/endpoint.py`).

    lora_rank: train adapters of this rank instead of the weights; language models only. An adapter of that rank as `name` trains
    on. Without lora_rank, adapters are merged into the weights, which train.

    Raises RewardlabError for an unknown name, for one that needs a task if none is passed, for a folder or hub that cannot be
    reached, for an architecture that nothing here runs, and for a model that cannot have adapters.
    """
    from rewardlab import registry

    if is_served(name):
        return _served(name, lora_rank)
    if name == "recorded":
        return _recorded(lora_rank)
    device_of(device)
    with _loading:
        # warmed up on the endless task, so that tasks of every size share one cached policy
        return _by_name(name, device, dtype, lora_rank, registry.endless(task) if task else None)


def _served(name: str, lora_rank: int | None) -> Policy:
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
    if kind in NAMES and parted(name)[1] != "smollm2":
        policy = starts.start(task, number, device, dtype) if number else _small(name, kind, device, dtype, task, judge)
        return _adapted(policy, name, lora_rank) if lora_rank else policy
    return _from_checkpoint(name, find(name), device, dtype, lora_rank)


def _of_task(name: str, task: Task | None) -> tuple[str, Task | None, bool]:
    """`embedded:TASK` or `embedded:TASK:judge` as the kind of model, its task, and whether it is a judge; other names unchanged."""
    kind, _, of = name.partition(":")
    if kind not in NAMES or not of:
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
    if lora_rank and found.rank and lora_rank != found.rank:
        raise RewardlabError(
            f"the adapter {found.adapter} has rank {found.rank}: train it on with --lora-rank {found.rank}, or export it merged "
            f"and begin a new one of rank {lora_rank} on that"
        )
    with loading(found.folder):
        policy = _loaded(name, found, device, dtype, lora_rank)
    policy.loaded_dtype = stored_dtype(found.folder)
    return policy


def _loaded(name: str, found: Checkpoint, device: str, dtype: str, lora_rank: int | None) -> Policy:
    kind, (prefix, _) = found.config.get("model_type"), parted(name)
    _check_prefix(name, kind, lora_rank)
    if kind in OWN:
        if found.adapter:
            raise RewardlabError(f"the adapter {found.adapter} is on a {kind} model, and adapters are for language models only")
        module, cls = OWN[kind]
        # the small policies of other kinds compute in float32 alone
        how = (device, dtype) if kind in FAMILIES else (device,)
        policy = getattr(importlib.import_module(f"rewardlab.policies.{module}"), cls).load(found.folder, *how)
        return _adapted(policy, name, lora_rank, found) if lora_rank else policy

    from rewardlab.policies.hf.policy import HFPolicy
    from rewardlab.policies.llama.surprise import KIND
    from rewardlab.policies.llama.unsupported import Unsupported

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


def _check_prefix(name: str, kind: str | None, lora_rank: int | None) -> None:
    """Raise RewardlabError where what stands before a model's name asks for what cannot be."""
    prefix, _ = parted(name)
    if prefix == "nf4:" and not lora_rank:
        raise RewardlabError(
            f"{name}: what is kept in 4 bits cannot train: train adapters on it (--lora-rank 32), or leave out nf4:"
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


def learner_model(learner: Learner, policy: Policy) -> Policy:
    """The model that a learner starts from (`Learner.init`). Raises RewardlabError where this policy cannot make it."""
    _check_reads(learner)
    if learner.every and in_int8(learner.init):
        raise RewardlabError(f"the learner {learner.name!r} starts from {learner.init}: {CANNOT_TRAIN}")
    if is_served(learner.init):
        return _served_beside(learner)
    model = _initial(learner, policy)
    # turns and checkpoints carry the learner's name, whatever checkpoint it was loaded from
    model.name, model.reads = learner.name, learner.reads
    if hasattr(model, "recomputes"):
        model.recomputes = getattr(policy, "recomputes", False)
    return model


def named_start(init: str) -> str | None:
    """The checkpoint, run or small policy that a learner's init names, behind an energy head or attributes too; None for others."""
    name = init.removeprefix(RATED).partition(":")[2] if init.startswith(RATED) else init.removeprefix(ENERGY)
    return None if name.startswith(MADE) else name


def _served_beside(learner: Learner) -> Policy:
    """A second model that is served: it is asked, and does not learn."""
    from rewardlab.policies.served import CANNOT_TRAIN

    if learner.every:
        raise RewardlabError(f"the learner {learner.name!r} starts from {learner.init}, and learns: {CANNOT_TRAIN}")
    model: Any = _served(learner.init, None)
    model.name, model.beside = learner.name, True
    return model


def _check_reads(learner: Learner) -> None:
    """Refuse a reward model that was taught to read more than this learner is shown."""
    place = learner.init.removeprefix(ENERGY)
    if not Path(parted(place)[1]).expanduser().is_dir() or place.startswith((*NAMES, "prm:", PREFIX)):
        return
    if (reads := reads_of(find(place))) and reads != learner.reads:
        raise RewardlabError(
            f"the learner {learner.name!r} starts from {place}, a reward model that reads {words(reads)}, and it would be shown "
            f"{words(learner.reads) or 'prompt and reply alone'}: start from one that was taught to read that"
        )


def _initial(learner: Learner, policy: Policy) -> Policy:
    if learner.init == "copy:policy":
        return policy.copy(learner.name)
    if learner.init == "value-head":
        return policy.copy(learner.name, value_head=True)
    if learner.init == SURPRISED:
        if not hasattr(policy, "read_surprise"):
            raise RewardlabError(
                f"the learner {learner.name!r} starts from {SURPRISED!r}, which the lean text policy alone can make "
                f"(this policy is a {type(policy).__name__}): use 'value-head', or a model that the lean policy runs"
            )
        return policy.copy(learner.name, value_head=True).read_surprise(policy)
    if learner.init.startswith(ENERGY):
        return _with_energy(learner, policy)
    if learner.init.startswith(RATED):
        return _rated(learner, policy)
    if learner.init.startswith(WORDS):
        return _by_words(learner, policy)
    if learner.init.startswith("prm:"):
        from rewardlab.prm import load_scorer

        return load_scorer(learner.init, str(policy.device))
    if learner.init.startswith(PREFIX):
        return _assistant(learner, policy)
    if learner.init.startswith(HEADS):
        return _heads(learner, policy)
    # computed in the policy's own format, which the user may have chosen
    dtype = str(getattr(policy, "dtype", "auto")).removeprefix("torch.")
    model = load_policy(learner.init, str(policy.device), dtype)
    objective = learner.recipe.objective
    # a language model that is to learn values gets a new head; one that has a head keeps it
    return model.copy(learner.name, value_head=True) if objective and "value" in objective.wants else model


def _with_energy(learner: Learner, policy: Policy) -> Any:
    from rewardlab.policies.energy import WithEnergy

    scorer = _initial(replace(learner, init=learner.init.removeprefix(ENERGY)), policy)
    if not getattr(scorer, "has_value_head", False):
        raise RewardlabError(f"the learner {learner.name!r} is an energy head on a reward model, and {learner.init!r} names none")
    return WithEnergy(scorer)


def _rated(learner: Learner, policy: Policy) -> Any:
    told, _, init = learner.init.removeprefix(RATED).partition(":")
    scorer = _initial(replace(learner, init=init), policy)
    if not getattr(scorer, "has_value_head", False) or not hasattr(scorer, "rate"):
        raise RewardlabError(f"the learner {learner.name!r} rates by attributes, for which {init!r} gives no reward model of text")
    return scorer.rate(read_attributes(told))


def _by_words(learner: Learner, policy: Policy) -> Any:
    """A value head that is the difference of two rows of the vocabulary head, so that the value is that of two log-probs."""
    from rewardlab.policies.text import TextPolicy

    words = learner.init.removeprefix(WORDS).split(",")
    if not isinstance(policy, TextPolicy) or len(words) != 2 or not all(words):
        raise RewardlabError(
            f"the learner {learner.name!r} starts from {learner.init!r}: name two words, {WORDS}Yes,No, and a language model"
        )
    speaker: Any = policy
    first, second = (speaker.tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in words)
    if first == second:
        raise RewardlabError(f"{words[0]!r} and {words[1]!r} begin with the same token, which cannot tell them apart")
    model = speaker.copy(learner.name, value_head=True)
    head = model.model.value_head if hasattr(model.model, "value_head") else model.value_head
    weight = speaker.vocabulary_head().detach()[[first, second]].float()
    # the last column of a head with a bias is that bias, which a value head does not have
    head.data.copy_((weight[0] - weight[1])[None, : head.shape[1]])
    return model


def _heads(learner: Learner, policy: Policy) -> Any:
    from rewardlab.policies.heads import Heads
    from rewardlab.policies.text import TextPolicy

    if not isinstance(policy, TextPolicy):
        raise RewardlabError(f"the learner {learner.name!r} is vocabulary heads, and a {type(policy).__name__} writes no text")
    return Heads(policy, learner.init.removeprefix(HEADS).split(","), learner.name)


def _assistant(learner: Learner, policy: Policy) -> Any:
    from rewardlab.policies.assistant import Assistant

    if not hasattr(policy, "prefixed"):
        raise RewardlabError(
            f"the learner {learner.name!r} writes vectors before replies, which a language model with weights here reads, and a "
            f"{type(policy).__name__} does not"
        )
    told = learner.init.removeprefix(PREFIX)
    if "=" not in told:
        return Assistant.load(told, policy, learner.name)
    settings = {k: json.loads(v) for k, _, v in (part.partition("=") for part in told.split(","))}
    return Assistant(policy, name=learner.name, **settings)
