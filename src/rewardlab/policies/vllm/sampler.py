"""vLLM samples a policy's replies, with the weights that the policy has now.

    ids, log-probs = engine.sample(prompts, ...)      after engine.load(weights), where the weights have changed

An engine is vLLM in this process (`engine.py`) or on a server (`server.py`). Log-probs are recorded as the sampler's: they differ
from the trainer's by rounding, as another engine's must, and the trainer computes its own before an update (`old_logprobs.py`).
What vLLM cannot do (sums of models, vectors for tokens, a stop condition in Python) the policy samples by itself.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Sampling, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.policies.replies import seeds_of
from rewardlab.policies.vllm.exchange import Asked, Engine, Said
from rewardlab.settings.sampling import read
from rewardlab.util.extras import require
from rewardlab.util.progress import console
from rewardlab.util.ranks import started_together

LOOKED_AT = 64
"""Entries of each matrix that are compared to see that it has changed."""


class VLLMSampler:
    """Samples in place of the policy that it belongs to."""

    def __init__(self, start: Callable[[], Engine]):
        self._start = start
        self._loaded: tuple[list[Tensor], list[int], Tensor] | None = None
        self._told: set[str] = set()

    def extend(
        self, policy: Any, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator
    ) -> list[Trajectory] | None:
        """A reply for each trajectory; None where the policy has to sample by itself, which is said once."""
        if why := reason_against(policy, trajectories, sampling):
            self._tell(why)
            return None
        if not trajectories:
            return []
        for t in trajectories:
            policy.check_fits(t, sampling.max_new)
        self._follow(policy)
        seeds = seeds_of(len(trajectories), sampling, rng)
        rows = [Asked(t.ids.tolist(), seed) for t, seed in zip(trajectories, seeds, strict=True)]
        said = self.engine.sample(rows, sampling, sorted(policy.ends))
        policy.count_generated(sum(len(one.ids) for one in said))
        texts = policy.decode_all([one.ids for one in said])
        return [
            t.plus(_turn(policy, one, text, sampling), one.stop) for t, one, text in zip(trajectories, said, texts, strict=True)
        ]

    @functools.cached_property
    def engine(self) -> Engine:
        return self._start()

    def _follow(self, policy: Any) -> None:
        """Hand over the weights if they are not those that were handed over last."""
        parameters = list(policy.parameters())
        versions, sample = [p._version for p in parameters], _some_of(parameters)
        if self._loaded is not None:
            before, known, seen = self._loaded
            same = len(before) == len(parameters) and all(a is b for a, b in zip(before, parameters, strict=True))
            if same and known == versions and torch.equal(seen, sample):
                return
        self.engine.load(policy)
        # the parameters themselves are kept: a new one in the place of a freed one must not be taken for it
        self._loaded = parameters, versions, sample

    def _tell(self, why: str) -> None:
        if why not in self._told:
            self._told.add(why)
            console.print(f"vLLM does not sample here: {why}; the policy does it", highlight=False, markup=False, soft_wrap=True)


def sampler_of(name: str, policy: Any) -> VLLMSampler:
    """The sampler of a policy; vLLM starts when it is first asked. Raises RewardlabError where it cannot run the policy, or is
    missing."""
    from rewardlab.policies.text import TextPolicy

    asked = read(name)
    if not isinstance(policy, TextPolicy) or policy.has_value_head or getattr(policy, "sees", False):
        raise RewardlabError(f"the sampler vllm is for language models; this policy is a {type(policy).__name__}")
    if policy.packed:
        raise RewardlabError(
            "the sampler vllm takes weights over, and those below the adapters are in 4 bits (nf4:): leave out one of both"
        )
    if started_together() > 1:
        raise RewardlabError("the sampler vllm is for a single process; train without torchrun, or through TRL with its own vLLM")
    if asked.url:
        from rewardlab.policies.vllm.server import Server

        return VLLMSampler(lambda: Server(asked.url, asked.settings, policy))
    from rewardlab.policies.vllm.engine import InProcess

    require("vllm", "vllm", what="the sampler vllm")
    return VLLMSampler(lambda: InProcess(asked.settings, policy))


def reason_against(policy: Any, trajectories: Sequence[Trajectory], sampling: Sampling) -> str:
    """Why vLLM cannot sample this; empty where it can."""
    if policy._joined:
        return "several models decide together"
    if policy._inserted is not None:
        return "the model is changed between its layers"
    if policy._prefix is not None or any(turn.vectors is not None for t in trajectories for turn in t.turns):
        return "vectors stand in place of tokens"
    if sampling.stop_when is not None:
        return "a function decides where a reply ends"
    if not math.isinf(sampling.max_entropy):
        return "replies pause where the model is unsure"
    return "the first rows that finish end the others" if sampling.enough is not None else ""


def _turn(policy: Any, said: Said, text: str, sampling: Sampling) -> Turn:
    # vLLM tells one log-prob: that of the distribution sampled from, which is the raw policy's where nothing changes it
    sampled = np.zeros_like(said.logprobs) if sampling.temperature == 0 else said.logprobs
    return Turn(policy.name, said.ids, said.logprobs if sampling.raw else None, sampled, text, step=policy.step)


@torch.no_grad()
def _some_of(tensors: Sequence[Tensor]) -> Tensor:
    """Entries of all tensors: the optimiser changes weights in a way that PyTorch's own count of changes does not see."""
    flat = [t.reshape(-1) for t in tensors]
    return torch.cat([x[:: max(1, len(x) // LOOKED_AT)][: 2 * LOOKED_AT].float() for x in flat])
