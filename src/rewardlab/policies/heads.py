"""Several vocabulary heads over one trunk, one per objective; any mixture of them is a head again.

logits_h = W_h s,    sum_h w_h logits_h = (sum_h w_h W_h) s,    s the policy's hidden state
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rewardlab.core import Batch, Outputs, TokenCount
from rewardlab.errors import RewardlabError, unknown
from rewardlab.policies.head import token_logprobs
from rewardlab.policies.text import TextPolicy
from rewardlab.policies.weights import HasWeights

OBJECTIVE = "objective"
"""The column of a problem that names the head of its rows."""


def own_head(policy: TextPolicy) -> tuple[nn.Parameter, nn.Parameter | None]:
    """Weight and bias of a policy's vocabulary head, from now on its own if it was that of its embeddings; it is saved with what
    trains, also where adapters alone did."""
    from rewardlab.policies.hf.model import untied
    from rewardlab.policies.llama.policy import LlamaPolicy

    weight, bias = (policy.model.untied(), None) if isinstance(policy, LlamaPolicy) else untied(policy.model)  # type: ignore[attr-defined]
    for part in (weight, *([] if bias is None else [bias])):
        part.requires_grad_(True)
    # adapters alone would not hold the head
    policy.base = None
    return weight, bias


class Heads(HasWeights):
    """Vocabulary heads (V, hidden) by name, which begin as the policy's own and learn beside it.

    Their log-probs are those of the hidden states in a batch's column "policy.hidden", the policy's before the update: so trunk
    and heads move by gradients at the same place.
    """

    def __init__(self, policy: TextPolicy, names: Sequence[str], name: str = "heads"):
        if not names or len(set(names)) < len(names) or not all(names):
            raise RewardlabError(f"heads need names, each of its own, and these are: {', '.join(names) or 'none'}")
        # the policy is to decide by their mixture, which must not change its embeddings
        own_head(policy)
        head = policy.vocabulary_head().detach().float()
        self.names, self.name = tuple(names), name
        self.model = nn.ParameterList(nn.Parameter(head.clone()) for _ in names)
        self.device, self.dtype, self.token_count = head.device, torch.float32, TokenCount()

    def mixed(self, weights: Mapping[str, float]) -> Tensor:
        """(V, hidden) the mean of the heads by weights that need not sum to 1; heads without one have none."""
        for name in weights:
            if name not in self.names:
                raise unknown("head", name, self.names)
        total = sum(weights.values())
        if total <= 0:
            raise RewardlabError(f"the weights of heads sum to {total:g}: there is nothing to mix")
        parts = [weights.get(name, 0.0) / total * head.detach() for name, head in zip(self.names, self.model, strict=True)]
        return torch.stack(parts).sum(0)

    def decide(self, policy: TextPolicy, weights: Mapping[str, float]) -> None:
        """Let the policy decide by a mixture of the heads from now on: replies are sampled, scored and saved by it."""
        _put(policy, self.mixed(weights))

    @contextmanager
    def deciding(self, policy: TextPolicy, weights: Mapping[str, float]) -> Iterator[None]:
        """A context in which the policy decides by a mixture of the heads."""
        before = policy.vocabulary_head().detach().clone()
        self.decide(policy, weights)
        try:
            yield
        finally:
            _put(policy, before)

    def logprobs(self, hidden: Tensor, batch: Batch, frozen: bool = False) -> Tensor:
        """(B, T) log-probs of the decisions, from hidden states (B, T, d): those of a row by the head that its problem names.

        frozen: without gradient for the heads.
        """
        decided = batch.mask.clone()
        # a token is predicted from the position before it; the first has none
        decided[:, 0] = False
        of_row = torch.tensor([self._number(t) for t, _ in batch.rows], device=decided.device)
        table = hidden.new_zeros(decided.shape)
        for number, head in enumerate(self.model):
            where = decided & (of_row == number)[:, None]
            if bool(where.any()):
                states = hidden[where.roll(-1, 1)]
                # a bias is a column of the matrix for an input that is always 1
                states = F.pad(states, (0, head.shape[1] - states.shape[1]), value=1.0)
                logprobs, _ = token_logprobs(states, head.detach() if frozen else head, batch.ids[where])
                table = table.masked_scatter(where, logprobs)
        return table

    def _number(self, trajectory: Any) -> int:
        named = trajectory.problem.meta.get(OBJECTIVE)
        if named not in self.names:
            raise RewardlabError(
                f"problem {trajectory.problem.question[:60]!r} has {named!r} in the column {OBJECTIVE!r}, and the heads are: "
                f"{', '.join(self.names)}"
            )
        return self.names.index(named)

    def evaluate(self, batch: Batch, wants: Sequence[str] = ("logprobs",), per_token: Sequence[Any] = ()) -> Outputs:
        """Log-probs, with gradient for the heads. The trunk's pass has been counted as the policy's."""
        if tuple(wants) != ("logprobs",) or per_token:
            raise RewardlabError(f"heads give log-probs alone, not {', '.join(wants)}")
        return Outputs(logprobs=self.logprobs(batch.columns["policy.hidden"], batch))


@torch.no_grad()
def _put(policy: TextPolicy, head: Tensor) -> None:
    weight, bias = own_head(policy)
    weight.copy_(head[:, : weight.shape[1]])
    if bias is not None:
        bias.copy_(head[:, -1])
