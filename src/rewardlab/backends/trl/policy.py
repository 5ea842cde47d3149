"""The model that a trainer of TRL trains, as a policy of ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.core import Outputs, Sampling, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.vectors import Prefix


class TRLPolicy(HFPolicy):
    """Computes log-probs, with gradient, through TRL's own forward pass, and samples by TRL's generation.

    trainer: the RecipeTrainer that holds it.  wrapped: the model as accelerate has wrapped it. Gradients must pass through it,
    or data-parallel processes would not add theirs up.
    """

    trainer: Any = None
    wrapped: Any = None

    @classmethod
    def of(cls, policy: HFPolicy, device: torch.device, dtype: torch.dtype) -> TRLPolicy:
        """The same model, on this device."""
        same = cls(policy.whole, policy.tokenizer, device, dtype)
        same._as_loaded(policy)
        return same

    def extend(self, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator) -> list[Trajectory]:
        """Sample one reply for each trajectory: by TRL where its generation has these settings, else by transformers."""
        if trajectories and self.trainer is not None and self.trainer.can_sample(sampling):
            return self._through_trl(trajectories, sampling)
        # dropout must be off while sampling
        training = self.whole.training
        self.whole.eval()
        try:
            return super().extend(trajectories, sampling, rng)
        finally:
            self.whole.train(training)

    @contextmanager
    def prefixed(self, write: Prefix) -> Iterator[None]:
        """TRL's generation and its forward pass take ids alone."""
        raise RewardlabError("TRL cannot put vectors before a reply: use the embedded engine")
        yield

    def _through_trl(self, trajectories: Sequence[Trajectory], sampling: Sampling) -> list[Trajectory]:
        """TRL reports no log-probs of the raw policy; where a part needs them, the engine computes them before the update."""
        for t in trajectories:
            self.check_fits(t, sampling.max_new)
        tokens, sampled = self.trainer._generate_single_turn([t.ids.tolist() for t in trajectories], None, {}, 1)
        ids = [np.asarray(row, np.int64) for row in tokens]
        logprobs = [None] * len(ids) if sampled is None else [np.asarray(row, np.float32) for row in sampled]
        return [
            t.plus(Turn(self.name, i, None, s, text, step=self.step), "end" if int(i[-1]) in self.ends else "length")
            for t, i, s, text in zip(trajectories, ids, logprobs, self.decode_all(ids), strict=True)
        ]

    def _forward(self, ids: Tensor, length: Tensor, mask: Tensor, wants: Sequence[str], per_token: Sequence[Any] = ()) -> Outputs:
        if not torch.is_grad_enabled():
            return super()._forward(ids, length, mask, wants, per_token)
        real = torch.arange(ids.shape[1], device=ids.device) < length[:, None]
        trunk: list[Tensor] = []
        hook = self.model.base_model.register_forward_hook(lambda _, __, out: trunk.append(out.last_hidden_state))
        try:
            result = self.wrapped(
                input_ids=ids, attention_mask=real.long(), labels=ids.masked_fill(~mask, -100), fused_lm_head=True
            )  # fmt: skip
        finally:
            hook.remove()
        out = Outputs()
        if per_token or self.temperature != 1.0:
            # TRL's head does not compute what an objective needs of the whole vocabulary, and knows the temperature of its own
            # settings alone, which stays 1
            self._head(out, trunk[0].to(self.dtype), ids, mask, per_token)
        else:
            # TRL's tables start at the second token: (B, T - 1) to (B, T)
            out.logprobs, out.entropy = (F.pad(x.float(), (1, 0)) for x in (result.log_probs, result.entropy))
        if "hidden" in wants:
            out.hidden = trunk[0].float().masked_fill(~real[:, :, None], 0.0)
        return out
