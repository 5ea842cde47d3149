"""The memory that a device needs to train: sums over the models of a run, before there is one.

    kept       weights, gradients, the two moments of Adam, reference, second models
    training   kept + copies of weights in the format of computation + activations of a micro-batch + vocabulary head
    sampling   kept + copies + keys and values + the pass over the prompts or the logits of a step, whichever is larger
    total      the larger of the two

Weights that train, their gradients and moments are float32, whatever format computes, as the embedded engine keeps them; matrices
below adapters are in the format of computation, or in 4 bits. Kept numbers are exact. Activations are an estimate on the large side
(`activation_bytes`), the rest of a pass is rough.
What PyTorch itself takes (1 GiB or less on a GPU, more for blocks between tensors) comes on top.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from rewardlab.core import Learner, Recipe
from rewardlab.engine.learner import fitting_tokens
from rewardlab.errors import RewardlabError
from rewardlab.models.learners import ENERGY, HEADS, PREFIX, WORDS, learner_model, named_start
from rewardlab.models.load import Policy
from rewardlab.policies.head import CHUNK_ELEMENTS
from rewardlab.policies.hf.model import decoder_layers, layer_matrices
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.policies.room import LOGIT_BYTES

FLOAT32, MOMENTS = 4, 2
NF4 = 1 / 2 + FLOAT32 / 64
"""Bytes of a weight in 4 bits, with a float32 scale for each 64 (bitsandbytes, without double quantisation)."""
UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
COPIED = ("copy:policy", "value-head", ENERGY, WORDS, HEADS, PREFIX)
"""How learners begin that are made from the policy itself (`models/learners.py`)."""
LEAST_TOKENS = 512


def bytes_of(text: str) -> int:
    """The bytes of 80GB, 24GiB or 512MB."""
    number, unit = text.strip().rstrip("BbIiKkMmGgTt "), text.strip().upper().lstrip("0123456789. ")
    try:
        return int(float(number) * UNITS[unit])
    except (KeyError, ValueError):
        raise RewardlabError(f"{text!r} is no amount of memory; write 80GB, 24GiB or 512MB") from None


@dataclass(frozen=True)
class Work:
    """What a device does at a time.

    rows: sampled, each of `prompt` and `reply` tokens at most.  tokens: of a training step.  micro: of a micro-batch; None: as
    many as `memory` allows.  least: tokens that are in one micro-batch in any case: of a row, or of a group.
    """

    rows: int
    prompt: int
    reply: int
    tokens: int
    least: int
    memory: int
    micro: int | None = None
    vllm: int = 0

    def micro_tokens(self, policy: Policy) -> int:
        return max(self.least, min(self.tokens, self.micro or fitting_tokens(policy, self.memory)))


@dataclass(frozen=True)
class Layout:
    """A way to keep the policy.  flags: that ask for it.  parts: devices that all weights are divided among (FSDP2)."""

    name: str
    flags: str
    policy: Policy
    parts: int = 1


def sums(recipe: Recipe, layout: Layout, work: Work) -> dict[str, int]:
    """Bytes on a device by what they are for, with `training`, `sampling` and `total`."""
    held = _kept(recipe, layout) | {"vLLM": work.vllm}
    if not isinstance(layout.policy, HFPolicy | LlamaPolicy):
        activations = layout.policy.activation_bytes(work.micro_tokens(layout.policy))
        total = sum(held.values()) + activations
        return held | {"activations": activations, "training": total, "total": total}
    passing = _training(layout, work) if recipe.learns else {}
    kept = sum(held.values())
    # vLLM has room of its own for keys and values
    playing = {} if work.vllm else _sampling(layout, work, kept)
    training, sampling = kept + sum(passing.values()), kept + sum(playing.values())
    # copies are made by both, and shown once
    copies = max(side.get("copies", 0) for side in (passing, playing))
    parts = held | passing | {k: v for k, v in playing.items() if k != "copies"} | {"copies": copies}
    return {k: v for k, v in parts.items() if v} | {"training": training, "sampling": sampling, "total": max(training, sampling)}


# ---- what is always there --------------------------------------------------------------------------------------------


def _kept(recipe: Recipe, layout: Layout) -> dict[str, int]:
    policy, seen = layout.policy, set[int]()
    packed = set(map(_place, layer_matrices(policy.model))) if getattr(policy, "packed", False) else set()
    trained = _numbers(policy) if recipe.objective is not None else 0
    # all at once, so that weights which two of them share are known by their place
    reads_reference = any(need == "ref" or need.startswith("reference.") for need in recipe.needs)
    reference = policy.copy("reference") if reads_reference else None
    seconds = [(learner, _second(learner, policy)) for learner in recipe.also]
    found = {
        "weights": _bytes(policy.parameters(), seen, packed), "gradients": FLOAT32 * trained,
        "optimiser": FLOAT32 * MOMENTS * trained,
    }  # fmt: skip
    if reference is not None:
        found["reference"] = _bytes(reference.parameters(), seen, packed)
    for learner, model in seconds:
        states = FLOAT32 * (1 + MOMENTS) * _numbers(model) if learner.every else 0
        found[learner.name] = _bytes(model.parameters(), seen, packed) + states
    divided = {name: -(-n // layout.parts) for name, n in found.items()}
    return divided | ({"gathered": _gathered(policy)} if layout.parts > 1 else {})


def _second(learner: Learner, policy: Policy) -> Any:
    """The model of a learner; one that is loaded from elsewhere is taken to be as large as the policy, and so is one that is made
    from the numbers of a policy which has none.
    """
    made_of_it = learner.init.startswith(COPIED) and (not learner.init.startswith(ENERGY) or named_start(learner.init) is None)
    unread = learner.init.startswith(PREFIX) and policy.device.type == "meta"
    return learner_model(learner, policy) if made_of_it and not unread else policy.copy(learner.name)


def _numbers(model: Any) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def _bytes(parameters: Iterable[Tensor], seen: set[int], packed: set[int]) -> int:
    """The bytes of the parameters that no model before had."""
    new = {place: p for p in parameters if (place := _place(p)) not in seen}
    seen.update(new)
    return int(sum(p.numel() * (NF4 if i in packed else p.element_size()) for i, p in new.items()))


def _place(p: Tensor) -> int:
    """What tells the storage of a tensor from others, also where nothing is stored; modules may wrap the same one anew."""
    return StorageWeakRef(p.untyped_storage()).cdata


def _gathered(policy: HFPolicy) -> int:
    """The whole weights, and gradients, that a pass of a divided model has at once: two layers, and all that is in no layer."""
    size = torch.empty(0, dtype=policy.dtype).element_size()
    layer = max(sum(p.numel() for p in layer.parameters()) for layer in decoder_layers(policy.model))
    rest = sum(p.numel() for p in policy.parameters()) - sum(p.numel() for p in decoder_layers(policy.model).parameters())
    return 3 * size * layer + 2 * FLOAT32 * rest


# ---- what a pass needs -----------------------------------------------------------------------------------------------


def _training(layout: Layout, work: Work) -> dict[str, int]:
    head, tokens = layout.policy.vocabulary_head(), work.micro_tokens(layout.policy)
    # its gradient is summed over chunks in float32, then rounded
    gradient = (FLOAT32 + _size(layout)) * head.numel() if head.requires_grad else 0
    logits = LOGIT_BYTES * min(CHUNK_ELEMENTS, tokens * len(head))
    return {
        "copies": _copies(layout)[0], "activations": layout.policy.activation_bytes(tokens), "vocabulary head": gradient + logits,
    }  # fmt: skip


def _sampling(layout: Layout, work: Work, kept: int) -> dict[str, int]:
    # as many together as there is memory for
    rows = _rows(layout, work, kept)
    return {"copies": _copies(layout)[1], **layout.policy.sampling_bytes(rows, work.prompt, work.reply)}


def _rows(layout: Layout, work: Work, kept: int) -> int:
    return layout.policy.rows_at_once(work.rows, work.prompt, work.reply, work.memory - kept - _copies(layout)[1])


def rows_sampled(layout: Layout, work: Work, found: Mapping[str, int]) -> int:
    """How many rows are sampled together, of whose memory these are the sums."""
    playing = ("keys and values", "prompts or logits")
    return _rows(layout, work, found["sampling"] - _copies(layout)[1] - sum(found.get(name, 0) for name in playing))


def _copies(layout: Layout) -> tuple[int, int]:
    """Copies of weights in training, and in sampling; of a divided model, that of the vocabulary head alone."""
    if layout.parts > 1:
        head = _size(layout) * layout.policy.vocabulary_head().numel() if layout.policy.dtype != torch.float32 else 0
        return head, head
    return layout.policy.copy_bytes(sampling=False), layout.policy.copy_bytes(sampling=True)


def _size(layout: Layout) -> int:
    return torch.empty(0, dtype=layout.policy.dtype).element_size()


# ---- whether it fits, and what to change -----------------------------------------------------------------------------


def first_change(recipe: Recipe, layouts: Sequence[Layout], work: Work, largest: int = 4096) -> str:
    """What to change first where the first of the layouts does not fit; "" where it does.

    largest: number of devices up to which a division is tried.
    """
    first, found = layouts[0], sums(recipe, layouts[0], work)
    if found["total"] <= work.memory:
        return ""
    small = replace(work, micro=max(LEAST_TOKENS, work.least), rows=1)
    if sums(recipe, first, small)["total"] <= work.memory:
        return _smaller_passes(recipe, first, work)
    # of each way to keep the model first the quicker one, which computes nothing twice
    for other in (form for layout in layouts for form in (layout, recomputed(layout)) if form is not None and form is not first):
        if sums(recipe, other, small)["total"] <= work.memory:
            return f"{other.flags} ({other.name} fits)"
    parts = 2 * max(layout.parts for layout in layouts)
    policy = next((x.policy for x in layouts if isinstance(x.policy, HFPolicy) and _all_train(x.policy)), None)
    while policy is not None and parts <= largest:
        layout = Layout("", f"--shard --devices {parts}", policy, parts)
        for form in (layout, recomputed(layout)):
            if form is not None and sums(recipe, form, small)["total"] <= work.memory:
                return f"more devices: {form.flags} fits"
        parts *= 2
    return "no layout of the embedded engine fits; give devices with more memory, or train by verl (export-recipe)"


def recomputed(layout: Layout) -> Layout | None:
    """The same with gradient checkpointing; None where it has that already, or cannot."""
    if not isinstance(layout.policy, HFPolicy | LlamaPolicy) or layout.policy.recomputes:
        return None
    # it shares all but this with the other
    policy = copy.copy(layout.policy)
    policy.recomputes = True
    return Layout(f"{layout.name}, recomputed", f"{layout.flags} --gradient-checkpointing".strip(), policy, layout.parts)


def _all_train(policy: Policy) -> bool:
    return all(p.requires_grad for p in policy.parameters())


def _smaller_passes(recipe: Recipe, layout: Layout, work: Work) -> str:
    """What to change where the training step of a layout alone is too large: rows are sampled in as many parts as it takes."""
    micro = work.micro_tokens(layout.policy)
    while micro > LEAST_TOKENS and sums(recipe, layout, replace(work, micro=micro, rows=1))["training"] > work.memory:
        micro //= 2
    again = recomputed(layout)
    fits = again is not None and sums(recipe, again, work)["total"] <= work.memory
    return f"--micro-tokens {max(micro, LEAST_TOKENS)}{', or --gradient-checkpointing' if fits else ''}"
