"""Generation for the lean policy: which steps sample, how many rows at a time, in how many threads, and what if memory runs out.

On CPUs small models are sampled by one thread per core, each with rows of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Protocol

import numpy as np
import torch
from torch import nn

from rewardlab.core import Sampling, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.policies.kept import Kept
from rewardlab.policies.llama.decode_step import fold
from rewardlab.policies.llama.decoder import Decoder
from rewardlab.policies.llama.linear import packed_formats
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.llama.native.decoding import ROWS, STRIDE
from rewardlab.policies.llama.native.library import HEAD_SIZES, library
from rewardlab.policies.llama.native_steps import FewRows, Int8Steps, NativeSteps, torch_threads
from rewardlab.policies.llama.steps import ChangedSteps, Inserted, JointSteps, Steps, Values
from rewardlab.policies.replies import Replies, Writes
from rewardlab.policies.room import halved, ran_out
from rewardlab.policies.vectors import below, numbered

MAX_ROWS = {"cpu": 256, "cuda": 1024}
"""Replies sampled at a time: the cache of keys and values holds so many."""
SMALL_BYTES = 64 << 20
"""Bytes of weights that stay in the processor's cache."""
FEW_ROWS = {"quick": 4, "slow": 256}
"""The most rows of a large model that C++ samples: where PyTorch has quick products in the policy's format, and where not."""
WORKER_ROWS = {"small": 16, "large": 32}
"""The fewest rows worth a thread. Threads that sample rows of their own never wait for each other; sharing the operations of a
small model, they would wait most of the time. Every thread reads a large model's weights from memory, which pays only with many
rows."""


class Generator(Writes, Protocol):
    """What generation needs from a policy."""

    model: Llama
    dtype: torch.dtype
    device: torch.device
    most_rows: int
    int8: SimpleNamespace | None
    _inserted: Inserted | None
    _nucleus: float | None

    def parameters(self) -> list[nn.Parameter]: ...

    def check_fits(self, trajectory: Trajectory, max_new: int) -> None: ...

    def rows_at_once(self, rows: int, prompt: int, reply: int, free: int) -> int: ...

    def free_memory(self) -> int: ...


@torch.no_grad()
def generate(
    policy: Generator, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator,
    joined: Sequence[tuple[float, Generator]] = (), candidates: int = 20, kept: Kept | None = None,
) -> list[Trajectory]:  # fmt: skip
    """One reply for each trajectory, in order.  joined: models whose logits, times a weight, are added to the policy's; those with
    a value head add their values of the `candidates` most likely tokens.  kept: of earlier calls, and of this one for the next.
    """
    if not trajectories:
        return []
    for t in trajectories:
        for model in (policy, *(other for _, other in joined)):
            model.check_fits(t, sampling.max_new)
    replies = Replies(policy, len(trajectories), sampling, rng, policy.model.shape.vocab)
    prompts, vectors = numbered(trajectories, policy.model.shape.vocab, joined)
    # what changes between calls, such as vectors that are numbered anew, makes other keys and values of the same ids
    kept = None if joined or vectors is not None or policy._inserted is not None else kept
    if kept is not None:
        kept.begin(policy.parameters())
    with torch.inference_mode():
        make = _joint_maker(policy, joined, candidates) if joined else _maker(policy, vectors, len(prompts))
        shares = np.array_split(np.arange(len(prompts)), workers(policy, len(prompts), sampling))
        while tried := _run(policy, make, prompts, replies, shares, kept):
            if kept is not None and kept.forget():
                # what can be computed anew makes room first, and this call keeps nothing
                kept = None
            else:
                policy.most_rows = halved(tried)
            shares = [share[[replies.stops[row] is None for row in share]] for share in shares]
            replies.forget(np.concatenate(shares))
    return replies.added_to(trajectories)


def _run(
    policy: Generator, make: Callable[[int], Steps | JointSteps], prompts: list[np.ndarray], replies: Replies,
    shares: Sequence[np.ndarray], kept: Kept | None,
) -> int:  # fmt: skip
    """Sample the rows of each share in a thread; returns how many at a time there was no memory for, 0 where there was."""
    shares, max_new = [share for share in shares if len(share)], replies.sampling.max_new
    if not shares:
        return 0
    longest = max(map(len, prompts))
    slots = _slots(policy, shares, longest, max_new, kept)
    room = kept.room // len(shares) if kept is not None else 0
    try:
        decoders = [Decoder(make(n), n, prompts, replies, share, kept, room) for n, share in zip(slots, shares, strict=True)]
        if len(decoders) == 1:
            # beside steps in C++, PyTorch only samples: its threads would wait for one another for longer than that takes
            with torch_threads(1) if isinstance(decoders[0].steps, FewRows) else nullcontext():
                decoders[0].run()
        else:
            _side_by_side(decoders)
    except RuntimeError as e:
        if not ran_out(e):
            raise
        return max(slots)
    return 0


def _slots(policy: Generator, shares: Sequence[np.ndarray], longest: int, max_new: int, kept: Kept | None) -> list[int]:
    """How many rows of each share are sampled at a time: what is kept takes no memory that they need, but makes room."""

    def with_free(free: int) -> list[int]:
        return [min(policy.most_rows, policy.rows_at_once(len(share), longest, max_new, free // len(shares))) for share in shares]

    most = with_free(1 << 62)
    while (slots := with_free(policy.free_memory())) != most and kept is not None and kept.drop_oldest():
        pass
    return slots


def _maker(policy: Generator, vectors: np.ndarray | None = None, rows: int | None = None) -> Callable[[int], Steps]:
    """Slots -> the forward passes of a policy for so many; its weights are made ready once.  vectors: read as further tokens.

    rows: all that will be sampled; None: not known.
    """
    inserted, valued = policy._inserted, policy.model.value_head is not None
    if policy.model.surprise is not None:
        raise RewardlabError("a value head that reads surprise cannot say what next tokens are worth: use value-head")
    if policy.int8 is not None:
        return _in_int8(policy, policy.int8, vectors)
    kind: type[Steps] = Values if valued else Steps
    if not valued and inserted is None:
        kind = NativeSteps if runs_in_cpp(policy) else FewRows if few_in_cpp(policy, rows) else Steps
    weights = kind.prepared(fold(policy.model, policy.dtype))
    weights.embed = below(weights.embed, vectors)
    if inserted is not None and not valued:
        return lambda slots: ChangedSteps(policy.model, weights, slots, inserted)
    return lambda slots: kind(policy.model, weights, slots)


def _in_int8(policy: Generator, prepared: SimpleNamespace, vectors: np.ndarray | None) -> Callable[[int], Steps]:
    """The same of a model with weights in 8 bits, which are made ready when it is loaded."""
    if policy._inserted is not None:
        raise RewardlabError("nothing can be inserted between the layers of a model with weights in 8 bits: leave out int8:")
    weights = SimpleNamespace(**vars(prepared) | {"embed": below(prepared.embed, vectors)})
    return lambda slots: Int8Steps(policy.model, weights, slots)


def _joint_maker(policy: Generator, joined: Sequence[tuple[float, Generator]], candidates: int) -> Callable[[int], JointSteps]:
    makers = [(1.0, _maker(policy)), *((weight, _maker(other)) for weight, other in joined)]
    inside = None if policy._nucleus is None else (policy._nucleus, sorted(policy.ends))
    return lambda slots: JointSteps([(weight, make(slots)) for weight, make in makers], candidates, inside)


def workers(policy: Generator, rows: int, sampling: Sampling) -> int:
    """How many threads sample, each its own rows."""
    # if sampling stops after the first `enough` rows, which rows those are must not depend on how fast a thread runs
    # and C++ that shares its products among all threads has no use for more
    shared = policy.int8 is not None or (not runs_in_cpp(policy) and few_in_cpp(policy, rows))
    if policy.device.type != "cpu" or sampling.enough or shared:
        return 1
    least = WORKER_ROWS["small" if is_small(policy) else "large"]
    return max(1, min(torch.get_num_threads(), rows // least))


def runs_in_cpp(policy: Generator) -> bool:
    """Whether C++ does the work: for a small model in float32, whose operations take PyTorch no longer than starting them."""
    fits = policy.device.type == "cpu" and policy.dtype == torch.float32 and policy.model.shape.head_dim in HEAD_SIZES
    return fits and is_small(policy) and library() is not None


def few_in_cpp(policy: Generator, rows: int | None) -> bool:
    """Whether C++ samples so few rows of a large model: until products take longer than reading their matrices."""
    shape, formats = policy.model.shape, packed_formats()
    most = FEW_ROWS["quick" if policy.dtype in formats else "slow"]
    widths = (shape.hidden, shape.mlp, shape.heads * shape.head_dim)
    fits = policy.device.type == "cpu" and policy.dtype in ROWS and shape.head_dim in HEAD_SIZES
    return fits and rows is not None and rows <= most and not any(w % STRIDE for w in widths) and library() is not None


def is_small(policy: Generator) -> bool:
    """Whether its weights stay in the processor's cache."""
    size = sum(p.numel() for p in policy.parameters()) * torch.empty(0, dtype=policy.dtype).element_size()
    return size <= SMALL_BYTES


def _side_by_side(decoders: list[Decoder]) -> None:
    """Run each decoder in its own thread, whose operations use one core."""
    previous = torch.get_num_threads()

    def run(decoder: Decoder) -> None:
        torch.set_num_threads(1)
        with torch.inference_mode():
            decoder.run()

    try:
        with ThreadPoolExecutor(len(decoders)) as pool:
            # list() waits for all of them, and raises what a thread raised
            list(pool.map(run, decoders))
    finally:
        # set_num_threads also holds for threads that start later: put it back for training
        torch.set_num_threads(previous)
