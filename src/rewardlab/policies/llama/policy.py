"""The lean policy: samples, scores and trains `model.Llama`, on CPUs and GPUs with the same code."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.core import Batch, Outputs, Sampling, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.policies.adapter import Base
from rewardlab.policies.attributes import Attributes, mixed
from rewardlab.policies.head import at_temperature, per_token_losses, token_logprobs
from rewardlab.policies.llama import int8
from rewardlab.policies.llama.checkpoint import config_of, hf_names, load_llama, save_llama
from rewardlab.policies.llama.decode import generate, is_small, runs_in_cpp
from rewardlab.policies.llama.layout import Layout, layout
from rewardlab.policies.llama.lora import adapt, load_adapter, merge, save_adapter
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.llama.native import training
from rewardlab.policies.llama.sizes import Sizes
from rewardlab.policies.llama.surprise import Surprise
from rewardlab.policies.packing import rounded, scatter
from rewardlab.policies.perturbed import Place
from rewardlab.policies.template_kwargs import write_template
from rewardlab.policies.text import TextPolicy
from rewardlab.policies.tokenizer import read_tokenizer
from rewardlab.policies.vectors import below, numbered_table
from rewardlab.policies.weights import HasWeights
from rewardlab.util.device import device_of, dtype_of, keep_freed_memory

KEPT_IN_VAIN = 1 << 29
"""Bytes that a forward pass without gradient may keep for a backward pass."""


class LlamaPolicy(Sizes, HasWeights, TextPolicy):
    """A Llama-family model as a policy, a critic or a reward model (`value_head`).

    dtype: format of computation, in which matrices below adapters are kept; weights that train, gradients and log-probs are
    float32.
    """

    shares_prompts = True
    int8: SimpleNamespace | None = None
    """What samples with weights in 8 bits (`int8.py`), where these weights will not change; a copy has none."""

    def __init__(self, model: Llama, tokenizer: Any, device: torch.device, dtype: torch.dtype, name: str = "policy"):
        super().__init__(tokenizer)
        if device.type == "cpu":
            keep_freed_memory()
        self.model = model.to(device)
        self.device, self.dtype, self.name = device, dtype, name
        self.context, self.depth = model.shape.context, model.shape.layers

    @classmethod
    def load(
        cls, folder: Path | str, device: str = "auto", dtype: str = "auto", value_head: bool = False, frozen: bool = False
    ) -> LlamaPolicy:  # fmt: skip
        """Read a Hugging Face checkpoint folder with its tokenizer.  frozen: adapters will be put on it, which alone train."""
        where = device_of(device)
        tokenizer, computes = read_tokenizer(folder), dtype_of(dtype, where)
        model = load_llama(Path(folder), value_head, computes if frozen else torch.float32)
        policy = cls(model, tokenizer, where, computes)
        policy.stop_as_in(folder)
        return policy

    def adapt(self, rank: int, base: Base | None = None) -> LlamaPolicy:
        """Train LoRA adapters of this rank instead of the weights. Their random half has a fixed seed, whatever the run's.

        base: what the weights were loaded from; then `save` writes the adapters alone.
        """
        adapt(self.model, rank, torch.Generator().manual_seed(0), dtype=self.dtype)
        self.base = base
        return self

    def load_adapter(self, folder: Path, base: Base, trains: bool = True) -> LlamaPolicy:
        """Put the LoRA adapters in a folder of peft's format on the weights, and train them instead; or else merge them."""
        load_adapter(self.model, folder, self.dtype if trains else torch.float32)
        self.base = base
        return self if trains else self.merge()

    def merge(self) -> LlamaPolicy:
        """Add the adapters to the weights, which train from now on."""
        self.model, self.base = merge(self.model).requires_grad_(True), None
        return self

    def sample_in_int8(self) -> LlamaPolicy:
        """Sample with the present weights in 8 bits from now on. Raises RewardlabError where that cannot be."""
        self.int8 = int8.prepared(self.model.requires_grad_(False), self.device, self.dtype)
        return self

    def copy(self, name: str, value_head: bool = False) -> LlamaPolicy:
        """A copy that trains separately (frozen weights are shared); `value_head` replaces its vocabulary head by a scalar one."""
        # deepcopy's memo maps frozen weights to themselves, so they are not copied
        model = copy.deepcopy(self.model, {id(p): p for p in self.model.parameters() if not p.requires_grad})
        if value_head and model.value_head is None:
            model.head = None
            # zeros: a new critic predicts 0 everywhere instead of noise
            model.value_head = torch.nn.Parameter(torch.zeros(1, model.shape.hidden, device=self.device))
        copied = LlamaPolicy(model, self.tokenizer, self.device, self.dtype, name)
        copied._as_loaded(self)
        copied.recomputes = self.recomputes
        return copied

    @property
    def attributes(self) -> Attributes:
        return self.model.attributes

    def rate(self, attributes: Attributes) -> LlamaPolicy:
        """Let the value head have an output for each of these attributes (`policies/attributes.py`)."""
        self.model.rate(attributes)
        return self

    def read_surprise(self, of: LlamaPolicy) -> LlamaPolicy:
        """Let the value head's trunk also read how surprised a frozen copy of the policy `of` is at each token (`surprise.py`)."""
        if of.model.value_head is not None:
            raise RewardlabError(f"the model {of.name!r} has a value head, and only a language model can be surprised by text")
        self.model.surprise = Surprise.by(of.model)
        return self

    def save(self, folder: Path | str) -> None:
        """Write an ordinary Hugging Face checkpoint in float32; of adapters on a known base, the adapters alone, as peft does."""
        if self.base and self.model.value_head is None:
            self.save_adapter(Path(folder))
            return
        save_llama(self.model, Path(folder))
        self.save_tokenizer(Path(folder))

    @property
    def adapter_rank(self) -> int | None:
        adapters = self.model.layers[0].adapters
        return adapters["out"].rank if "out" in adapters else None

    def named_weights(self) -> Iterator[tuple[str, Tensor]]:
        return hf_names(self.model)

    def config_document(self) -> dict[str, Any]:
        return config_of(self.model)

    def save_adapter(self, folder: Path) -> None:
        save_adapter(self.model, folder, self.base or Base(""))
        if self.own_template:
            write_template(self.tokenizer, folder)

    @property
    def has_value_head(self) -> bool:
        return self.model.value_head is not None

    def vocabulary_head(self) -> Tensor:
        head = self.model.embed if self.model.shape.tied else self.model.head
        assert head is not None
        return head

    def token_embeddings(self) -> Tensor:
        return self.model.embed

    def _scales(self) -> list[Place]:
        return [(layer, name) for layer in self.model.layers for name in ("attn_norm", "mlp_norm")]

    def weights(self) -> SimpleNamespace:
        """The weights in the format of computation; cast at each call, since the optimiser changes them in place."""
        return self.model.cast(self.dtype)

    def extend(self, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator) -> list[Trajectory]:
        """Sample one reply for each trajectory. Equal prompts are computed once."""
        if self.model.value_head is not None:
            raise RewardlabError(f"the model {self.name!r} has a value head and cannot generate")
        if (elsewhere := self._sampled_elsewhere(trajectories, sampling, rng)) is not None:
            return elsewhere
        begun = self._begun(trajectories, rng)
        # `logit_ensemble` takes policies of the same kind alone
        extended = generate(self, begun, sampling, rng, self._joined, self._candidates, self._kept)  # type: ignore[arg-type]
        self.count_generated(sum(map(len, extended)) - sum(map(len, begun)))
        return extended

    def _keeps(self) -> bool:
        # a small model's results would differ from those that come with the package, in the last digit
        return not is_small(self)

    def evaluate(self, batch: Batch, wants: Sequence[str] = ("logprobs",), per_token: Sequence[Any] = ()) -> Outputs:
        """Log-probs and entropies where `batch.mask`, values and hidden states everywhere; (B, T), with gradient."""
        if self.model.surprise is not None:
            # the frozen reader of surprise reads every token too
            self.token_count.scored += int(batch.length.sum())
        return super().evaluate(batch, wants, per_token)

    def _forward(self, ids: Tensor, length: Tensor, mask: Tensor, wants: Sequence[str], per_token: Sequence[Any] = ()) -> Outputs:
        w = self.weights()
        read, vectors = numbered_table(ids, self._read, self.model.shape.vocab)
        tokens, w.embed = layout(read, length, mask), below(w.embed, vectors)
        surprise = self.model.surprise
        if surprise is not None and vectors is not None:
            raise RewardlabError(f"the model {self.name!r} reads surprise, and a vector in place of a token surprises nobody")
        added = None if surprise is None else surprise.added(tokens, ids, self.dtype)
        in_cpp = partial(self._layers_in_cpp, w, tokens) if self._layers_run_in_cpp(tokens.real) else None
        hidden = self.model.trunk(
            w, tokens.ids, tokens.positions, tokens.attend, in_cpp, added, self._after(tokens.real), self.recomputes
        )
        out = Outputs()
        if "value" in wants or "values" in wants:
            if self.model.value_head is None:
                raise RewardlabError(f"the model {self.name!r} has no value head")
            # in bfloat16 a score near 4 would be a multiple of 1/32, and close replies would tie
            outputs = F.linear(hidden.float(), w.value_head.float())
            out.value = tokens.table(mixed(outputs, self.model.attributes))
            if "values" in wants:
                out.values = tokens.table(outputs.float())
        if "hidden" in wants:
            out.hidden = tokens.table(hidden.float())
        if "logprobs" in wants or "entropy" in wants or per_token:
            if w.head is None:
                raise RewardlabError(
                    f"the model {self.name!r} has a value head in place of its vocabulary head, which was a matrix of its own: "
                    "it has no log-probs (a model whose embeddings are tied keeps them)"
                )
            self._head(out, w, hidden, tokens, ids, mask, per_token)
        return out

    def _as_table(self, flat: Tensor, batch: Batch) -> Tensor:
        # rows that begin alike share the tokens of their beginning
        ids, _ = numbered_table(batch.ids, [t for t, _ in batch.rows], self.model.shape.vocab)
        return layout(ids, batch.length, batch.mask).table(flat)

    def _after(self, real: int) -> tuple[int, Callable[[Tensor], Tensor]] | None:
        """What is inserted after a layer, for flat tokens of which the first `real` ones are no padding."""
        if self._inserted is None:
            return None
        layer, change = self._inserted
        return layer, lambda x: torch.cat((change(x[:real].float()).to(x.dtype), x[real:]))

    def _layers_run_in_cpp(self, tokens: int) -> bool:
        if self._inserted is not None or (self.recomputes and torch.is_grad_enabled()):
            return False
        # it keeps what a backward pass needs even if there will be none
        affordable = torch.is_grad_enabled() or self.activation_bytes(tokens) <= KEPT_IN_VAIN
        # one thread runs it, which two of PyTorch would overtake
        return affordable and torch.get_num_threads() == 1 and runs_in_cpp(self) and training.supports(self.model)

    def _layers_in_cpp(self, w: SimpleNamespace, tokens: Layout, x: Tensor) -> Tensor:
        n = tokens.real
        return training.layers(self.model, w, x[:n], tokens.positions[:n], tokens.seen())

    def _head(self, out: Outputs, w, hidden: Tensor, tokens: Layout, ids: Tensor, mask: Tensor, per_token) -> None:
        """Fill in the outputs of the vocabulary head, at decided positions only."""
        rows, width = mask.shape
        decided = mask.clone()
        # a token is predicted from the position before it; the first has none
        decided[:, 0] = False
        place = decided.view(-1).nonzero().squeeze(1)
        n = len(place)
        # rounded up, so that the head's products have few sizes; the padding is cut off below
        at, chosen = (F.pad(x, (0, rounded(n) - n)) for x in (tokens.flat_of(place - 1), ids.reshape(-1)[place]))
        h = at_temperature(hidden.index_select(0, at), self.temperature)
        logprobs, entropy = token_logprobs(h, w.head, chosen)
        out.logprobs = scatter(logprobs[:n], place, rows, width)
        out.entropy = scatter(entropy[:n], place, rows, width)
        if per_token:
            extra = per_token_losses(h, w.head, chosen, per_token)
            out.extra = {k: scatter(v[:n], place, rows, width) for k, v in extra.items()}
