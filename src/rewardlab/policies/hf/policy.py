"""Any causal language model of transformers as a policy; all its weights train, or LoRA adapters alone.

The vocabulary head runs in chunks, as for the lean policy, on the hidden states of the trunk. So logits must be a linear map of
those; a model that scales or soft-caps its logits is refused when it is loaded.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rewardlab.core import Outputs
from rewardlab.errors import RewardlabError
from rewardlab.policies.adapter import Base
from rewardlab.policies.attributes import Attributes, attributes_in, check_outputs, mixed
from rewardlab.policies.head import at_temperature, per_token_losses, token_logprobs
from rewardlab.policies.hf.adapters import adapted, checkpoint_weights, merged_copy, save_adapter
from rewardlab.policies.hf.generating import Generating
from rewardlab.policies.hf.loading import load_model, without_dropout
from rewardlab.policies.hf.model import (
    check_head,
    classifier,
    context_of,
    layer_norms,
    reading,
    recomputing,
    vocabulary,
)
from rewardlab.policies.perturbed import Place
from rewardlab.policies.template_kwargs import write_template
from rewardlab.policies.vectors import numbered_table
from rewardlab.util.device import device_of, dtype_of, keep_freed_memory


class HFPolicy(Generating):
    """A transformers model as a policy, a critic or a reward model (`value_head`, (1, hidden)).

    model: a causal model, or the PeftModel around one: then only its adapters train, and copies share the frozen weights.
    dtype: format of computation (autocast), in which `load` keeps matrices below adapters; weights that train, gradients and
    log-probs are float32. Dropout is always off.
    """

    writes = True
    """Whether it has a vocabulary head where it has no value head."""

    def __init__(
        self, model: Any, tokenizer: Any, device: torch.device, dtype: torch.dtype, name: str = "policy",
        value_head: Tensor | None = None,
    ):  # fmt: skip
        super().__init__(tokenizer)
        if device.type == "cpu":
            keep_freed_memory()
        # `whole` may be a PeftModel, whose parameters train; `model` is the transformers model inside, which computes
        self.whole = without_dropout(model.to(device))
        self.model = model.get_base_model() if adapted(model) else model
        self.value_head = None if value_head is None else nn.Parameter(value_head.detach().to(device))
        self.attributes: Attributes = {}
        self.device, self.dtype, self.name = device, dtype, name
        # a cache that grows is copied for every token, which a GPU waits for
        self.static_cache = device.type == "cuda"
        self.context, self.depth = context_of(self.model, tokenizer), self.model.config.get_text_config().num_hidden_layers
        if value_head is None and self.writes:
            check_head(self.model, device)

    @classmethod
    def load(
        cls, folder: Path | str, device: str = "auto", dtype: str = "auto", lora_rank: int | None = None,
        adapter: Path | None = None, base: Base | None = None, nf4: bool = False,
    ) -> HFPolicy:  # fmt: skip
        """Read a Hugging Face checkpoint folder with its tokenizer.

        lora_rank: adapters train instead of the weights: those in the folder `adapter`, or else fresh ones on all linear layers.
        Without it, `adapter` is merged.  base: what `folder` is called; then `save` writes the adapters alone.  nf4: the matrices
        below the adapters are kept in 4 bits.
        """
        where = device_of(device)
        computes = dtype_of(dtype, where)
        model, value_head = load_model(Path(folder), lora_rank, adapter, where if nf4 else None, computes, cls.sees)
        policy = cls(model, cls._tokenizer(Path(folder)), where, computes, value_head=value_head)
        if value_head is not None:
            policy.attributes = attributes_in(policy.model.config.to_dict())
            check_outputs(folder, len(value_head), policy.attributes)
        policy.base, policy.packed = base if lora_rank else None, nf4
        policy.stop_as_in(folder)
        return policy

    @classmethod
    def _tokenizer(cls, folder: Path) -> Any:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)

    def copy(self, name: str, value_head: bool = False) -> HFPolicy:
        """A copy that trains separately (frozen weights are shared); `value_head` replaces the vocabulary head by a scalar one."""
        frozen = {id(p): p for p in self.whole.parameters() if not p.requires_grad}
        whole, head = copy.deepcopy(self.whole, frozen), None if self.value_head is None else self.value_head.clone()
        if value_head and head is None:
            head = torch.zeros(1, self.model.config.get_text_config().hidden_size)
        copied = self._like(whole, name, head)
        copied.attributes = self.attributes
        copied._as_loaded(self)
        copied.packed, copied.recomputes = self.packed, self.recomputes
        return copied

    def _like(self, whole: Any, name: str, head: Tensor | None) -> HFPolicy:
        """A policy of its kind with another model."""
        return HFPolicy(whole, self.tokenizer, self.device, self.dtype, name, head)

    def rate(self, attributes: Attributes) -> HFPolicy:
        """Let the value head have an output for each of these attributes (`policies/attributes.py`)."""
        assert self.value_head is not None
        if list(attributes) != list(self.attributes):
            self.value_head = nn.Parameter(self.value_head.new_zeros(len(attributes), self.value_head.shape[1]))
        self.attributes = attributes
        return self

    def save(self, folder: Path | str) -> None:
        """Write an ordinary Hugging Face checkpoint in float32; of adapters on a known base, the adapters alone, as peft does."""
        if self.base and self.value_head is None:
            self.save_adapter(Path(folder))
            return
        model = merged_copy(self.whole) if adapted(self.whole) else self.model
        if self.value_head is not None:
            model = classifier(model, self.value_head, self.tokenizer, self.attributes)
        model.save_pretrained(folder)
        self.save_tokenizer(Path(folder))

    def parameters(self) -> list[nn.Parameter]:
        return [*self.whole.parameters(), *([] if self.value_head is None else [self.value_head])]

    def state(self) -> dict[str, Tensor]:
        """The weights that train, by name."""
        return {k: p.detach() for k, p in self._trained().items()}

    @torch.no_grad()
    def load_state(self, state: dict[str, Tensor]) -> None:
        for name, p in self._trained().items():
            p.copy_(state[name])

    def _trained(self) -> dict[str, nn.Parameter]:
        trained = {k: p for k, p in self.whole.named_parameters() if p.requires_grad}
        return trained if self.value_head is None else trained | {"value_head": self.value_head}

    # ---- log-probs ---------------------------------------------------------------------------------------------------

    def _forward(self, ids: Tensor, length: Tensor, mask: Tensor, wants: Sequence[str], per_token: Sequence[Any] = ()) -> Outputs:
        real = torch.arange(ids.shape[1], device=ids.device) < length[:, None]
        read, vectors = numbered_table(ids, self._read, self._known)
        with self._changed(lambda x: real, self.whole), reading(self.model, vectors):
            hidden = self._hidden(read)
        out = Outputs()
        if "value" in wants or "values" in wants:
            if self.value_head is None:
                raise RewardlabError(f"the model {self.name!r} has no value head")
            # in bfloat16 a score near 4 would be a multiple of 1/32, and close replies would tie
            outputs = F.linear(hidden.float(), self.value_head.to(self.dtype).float())
            out.value = mixed(outputs, self.attributes).masked_fill(~real, 0.0)
            if "values" in wants:
                out.values = outputs.float().masked_fill(~real[:, :, None], 0.0)
        if "hidden" in wants:
            out.hidden = hidden.float().masked_fill(~real[:, :, None], 0.0)
        if "logprobs" in wants or "entropy" in wants or per_token:
            self._head(out, hidden, ids, mask, per_token)
        return out

    def _hidden(self, ids: Tensor) -> Tensor:
        """(B, T, hidden). Padding is on the right, where causal attention does not look: no mask is needed."""
        again = recomputing(self.model) if self.recomputes and torch.is_grad_enabled() else nullcontext()
        # each matrix is used once: autocast's copy of it need not wait for a second time
        with again, self._autocast(cached=False):
            return self.model.base_model(input_ids=ids, use_cache=False).last_hidden_state.to(self.dtype)

    def _scales(self) -> list[Place]:
        return layer_norms(self.model)

    @property
    def adapter_rank(self) -> int | None:
        return self.whole.peft_config["default"].r if adapted(self.whole) else None

    def named_weights(self) -> Iterator[tuple[str, Tensor]]:
        return checkpoint_weights(self.whole, self.model)

    def config_document(self) -> dict[str, Any]:
        return self.model.config.to_dict() | {"architectures": [type(self.model).__name__]}

    def save_adapter(self, folder: Path) -> None:
        save_adapter(self.whole, folder, self.base or Base(""))
        if self.own_template:
            write_template(self.tokenizer, folder)

    @property
    def has_value_head(self) -> bool:
        return self.value_head is not None

    def vocabulary_head(self) -> Tensor:
        weight, bias = vocabulary(self.model)
        return weight if bias is None else torch.cat((weight, bias[:, None]), 1)

    def token_embeddings(self) -> Tensor:
        # by the model's own code, which may scale them
        return self.model.get_input_embeddings()(torch.arange(self._known, device=self.device))

    def _head(self, out: Outputs, hidden: Tensor, ids: Tensor, mask: Tensor, per_token: Sequence[Any]) -> None:
        """Fill in the outputs of the vocabulary head, at decided positions only."""
        decided = mask.clone()
        # a token is predicted from the position before it; the first has none
        decided[:, 0] = False
        # (n, hidden), (n,): hidden states one position before the tokens they predict
        h, chosen = hidden[decided.roll(-1, 1)], ids[decided]
        weight = self.vocabulary_head().to(self.dtype)
        if weight.shape[1] > h.shape[1]:
            # a bias is a column of the matrix for an input that is always 1: the chunked head knows no bias
            h = F.pad(h, (0, 1), value=1.0)
        h = at_temperature(h, self.temperature)

        def table(x: Tensor) -> Tensor:
            return x.new_zeros(mask.shape).masked_scatter(decided, x)

        out.logprobs, out.entropy = map(table, token_logprobs(h, weight, chosen))
        if per_token:
            out.extra = {k: table(v) for k, v in per_token_losses(h, weight, chosen, per_token).items()}
