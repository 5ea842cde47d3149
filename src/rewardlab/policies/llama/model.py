"""A lean Llama-family decoder: Llama, Mistral, Qwen2 and Qwen3 checkpoints, with nothing but the mathematics.

Tokens of all rows run as one flat list, so no matrix product ever sees padding; only attention knows about rows. How
it attends (within complete texts, or to a cache) is a function that the caller passes in.

Weights are kept in float32, matrices below adapters in the format of computation, to which all are cast where used. Query, key
and value, and the two halves of the gated MLP, are one matrix each; checkpoints hold them apart (`checkpoint.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from rewardlab.policies.attributes import Attributes
from rewardlab.policies.llama.linear import gated, linear
from rewardlab.policies.llama.lora import AdaptedLinear, Adapter
from rewardlab.policies.llama.surprise import Surprise
from rewardlab.policies.llama.unsupported import Unsupported

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""(layer, q (n, Hq, d), k (n, Hkv, d), v (n, Hkv, d)) -> (n, Hq, d)"""

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")


@dataclass(frozen=True)
class Shape:
    """The shape of the model, from a Hugging Face config."""

    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp: int
    context: int
    eps: float
    tied: bool
    qkv_bias: bool
    qk_norm: bool

    @classmethod
    def of(cls, config: dict[str, Any]) -> Shape:
        family = config.get("model_type")
        if family not in FAMILIES:
            raise Unsupported(f"the lean policy runs {', '.join(FAMILIES)}, not {family!r}")
        if config.get("use_sliding_window") or (family == "mistral" and config.get("sliding_window")):
            raise Unsupported(f"the lean policy has no sliding-window attention, which this {family} needs")
        if config.get("mlp_bias") or config.get("hidden_act", "silu") != "silu":
            raise Unsupported("the lean policy has SiLU MLPs without bias only")
        heads = config["num_attention_heads"]
        return cls(
            vocab=config["vocab_size"],
            hidden=config["hidden_size"],
            layers=config["num_hidden_layers"],
            heads=heads,
            kv_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or config["hidden_size"] // heads,
            mlp=config["intermediate_size"],
            context=config["max_position_embeddings"],
            eps=config.get("rms_norm_eps", 1e-6),
            tied=bool(config.get("tie_word_embeddings", False)),
            qkv_bias=family == "qwen2" or bool(config.get("attention_bias")),
            qk_norm=family == "qwen3",
        )


class Layer(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        width = (s.heads + 2 * s.kv_heads) * s.head_dim
        self.attn_norm = nn.Parameter(torch.ones(s.hidden))
        self.qkv = nn.Parameter(torch.empty(width, s.hidden))
        self.register_parameter("qkv_bias", nn.Parameter(torch.zeros(width)) if s.qkv_bias else None)
        self.register_parameter("q_norm", nn.Parameter(torch.ones(s.head_dim)) if s.qk_norm else None)
        self.register_parameter("k_norm", nn.Parameter(torch.ones(s.head_dim)) if s.qk_norm else None)
        self.out = nn.Parameter(torch.empty(s.hidden, s.heads * s.head_dim))
        self.mlp_norm = nn.Parameter(torch.ones(s.hidden))
        self.gate_up = nn.Parameter(torch.empty(2 * s.mlp, s.hidden))
        self.down = nn.Parameter(torch.empty(s.hidden, s.mlp))
        self.adapters = nn.ModuleDict()

    def cast(self, dtype: torch.dtype) -> SimpleNamespace:
        """The weights in a number format, with adapters added to them; `adapters` are those that get a gradient."""
        weights = dict(self._parameters) | {k: adapter(self._parameters[k]) for k, adapter in self.adapters.items()}
        trained = dict(self.adapters.items()) if torch.is_grad_enabled() else {}
        return SimpleNamespace(**{k: None if w is None else w.to(dtype) for k, w in weights.items()}, adapters=trained)


class Llama(nn.Module):
    """The decoder. `value_head` turns it into a critic or a reward model, whose trunk may also read `surprise`."""

    head: nn.Parameter | None
    value_head: nn.Parameter | None

    def __init__(self, config: dict[str, Any], value_head: bool = False):
        super().__init__()
        self.config = config
        self.shape = s = Shape.of(config)
        self.embed = nn.Parameter(torch.empty(s.vocab, s.hidden))
        self.layers = nn.ModuleList(Layer(s) for _ in range(s.layers))
        self.norm = nn.Parameter(torch.ones(s.hidden))
        self.register_parameter("head", None if s.tied or value_head else nn.Parameter(torch.empty(s.vocab, s.hidden)))
        self.register_parameter("value_head", nn.Parameter(torch.zeros(1, s.hidden)) if value_head else None)
        self.surprise: Surprise | None = None
        self.attributes: Attributes = {}
        # numbers also in a model that is made without any, on the meta device: transformers reads them while it computes these
        with torch.device("cpu"):
            cos, sin = rope_tables(config, s)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def initialise(self, generator: torch.Generator) -> Llama:
        """Random weights: normal, of scale 0.7/sqrt(width), and by 1/sqrt(2 layers) less where they enter the residual stream.

        The customary 0.02 suits widths of thousands; a narrow model starts nearly dead with it, and learns far later.
        """
        std = 0.7 * self.shape.hidden**-0.5
        for name, p in self.named_parameters():
            if p.dim() > 1 and "value_head" not in name:
                scale = (2 * self.shape.layers) ** -0.5 if name.endswith(("out", "down")) else 1.0
                nn.init.normal_(p, 0.0, std * scale, generator=generator)
        return self

    def rate(self, attributes: Attributes) -> None:
        """Give the value head an output, which begins at 0, for each of these attributes; one of the same outputs stays."""
        assert self.value_head is not None
        if attributes and list(attributes) != list(self.attributes):
            self.value_head = nn.Parameter(self.value_head.new_zeros(len(attributes), self.shape.hidden))
        self.attributes = attributes

    def untied(self) -> nn.Parameter:
        """The vocabulary head (V, hidden), from now on in float32, and a matrix of its own if it was that of the embeddings."""
        if self.shape.tied:
            self.head = nn.Parameter(self.embed.detach().clone().float())
            # a saved checkpoint must not be tied again when it is loaded
            self.shape, self.config = replace(self.shape, tied=False), self.config | {"tie_word_embeddings": False}
        assert self.head is not None
        self.head.data = self.head.data.float()
        return self.head

    def keep(self, dtype: torch.dtype) -> None:
        """Keep the matrices of the decoder in a number format; vectors and value heads stay in float32."""
        for module in (self, *self.layers):
            for name, p in module._parameters.items():
                if p is not None and p.dim() > 1 and name != "value_head":
                    p.data = p.data.to(dtype)

    def cast(self, dtype: torch.dtype) -> SimpleNamespace:
        """All weights in a number format; gradients flow through the cast to the float32 weights."""
        weights = self.cast_ends(dtype)
        weights.layers = [layer.cast(dtype) for layer in self.layers]  # type: ignore[operator]
        return weights

    def cast_ends(self, dtype: torch.dtype) -> SimpleNamespace:
        """The same of all weights that are in no layer."""
        weights = SimpleNamespace(**{k: None if p is None else p.to(dtype) for k, p in self._parameters.items()})
        # a tied head is the embedding matrix itself; one of its own is gone where a value head has taken its place
        weights.head = weights.embed if self.shape.tied else weights.head
        weights.cos, weights.sin = self.cos.to(dtype), self.sin.to(dtype)
        return weights

    def trunk(
        self, w: SimpleNamespace, ids: Tensor, positions: Tensor, attend: Attend, layers: Callable[[Tensor], Tensor] | None = None,
        added: Tensor | None = None, after: tuple[int, Callable[[Tensor], Tensor]] | None = None, recomputed: bool = False,
    ) -> Tensor:  # fmt: skip
        """Hidden states (n, hidden) of flat tokens `ids` (n,) at `positions` (n,), after the last norm.

        layers: what computes them from the embedded tokens (n, hidden) instead of this code.  added: (n, hidden) what comes to the
        embeddings.  after: a layer, and what changes the (n, hidden) that it passes on.  recomputed: layers are computed again in
        the backward pass, and no more than what they read is kept until then.
        """
        x = F.embedding(ids, w.embed) if added is None else F.embedding(ids, w.embed) + added
        if layers is not None:
            return layers(x)
        cos, sin = w.cos[positions].unsqueeze(1), w.sin[positions].unsqueeze(1)
        recomputed = recomputed and torch.is_grad_enabled()
        for i, layer in enumerate(w.layers):
            step = partial(self._layer, i, layer, attend=attend, cos=cos, sin=sin)
            # nothing in a layer is random
            x = checkpoint(step, x, use_reentrant=False, preserve_rng_state=False) if recomputed else step(x)
            if after is not None and i == after[0]:
                x = after[1](x)
        return F.rms_norm(x, (self.shape.hidden,), w.norm, self.shape.eps)

    def _layer(self, i: int, layer: SimpleNamespace, x: Tensor, attend: Attend, cos: Tensor, sin: Tensor) -> Tensor:
        """The i-th layer on (n, hidden)."""
        s = self.shape
        h = F.rms_norm(x, (s.hidden,), layer.attn_norm, s.eps)
        qkv = _product(layer, "qkv", h, layer.qkv_bias).view(-1, s.heads + 2 * s.kv_heads, s.head_dim)
        qk, v = qkv[:, : s.heads + s.kv_heads], qkv[:, s.heads + s.kv_heads :]
        if layer.q_norm is not None:
            q = F.rms_norm(qk[:, : s.heads], (s.head_dim,), layer.q_norm, s.eps)
            k = F.rms_norm(qk[:, s.heads :], (s.head_dim,), layer.k_norm, s.eps)
            qk = torch.cat((q, k), 1)
        # queries and keys share one rotation: one product less than rotating each
        qk = rotate(qk, cos, sin)
        a = attend(i, qk[:, : s.heads], qk[:, s.heads :], v)
        x = x + _product(layer, "out", a.reshape(-1, s.heads * s.head_dim))
        return x + _mlp(layer, F.rms_norm(x, (s.hidden,), layer.mlp_norm, s.eps))


def _product(layer: SimpleNamespace, name: str, x: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (n, in) times a matrix of a layer, whose gradient goes to its adapter if it has one."""
    weight, adapter = getattr(layer, name), layer.adapters.get(name)
    if adapter is None:
        return linear(x, weight, bias)
    return AdaptedLinear.apply(x, weight.detach(), bias, adapter, adapter.A, adapter.B)


def _mlp(layer: SimpleNamespace, h: Tensor) -> Tensor:
    """The gated MLP: by the matrix of both halves, or by each half alone if the weights were packed for generation (`fold`)."""
    if layer.gate_up is None:
        return linear(gated(h, layer.gate, layer.up), layer.down)
    adapters = [layer.adapters.get(name) for name in ("gate_up", "down")]
    if None in adapters:
        return GatedMlp.apply(h, layer.gate_up, layer.down, None)
    return GatedMlp.apply(h, layer.gate_up.detach(), layer.down.detach(), adapters, *(p for a in adapters for p in (a.A, a.B)))


class GatedMlp(torch.autograd.Function):
    """(n, hidden) -> (n, hidden): down (silu(gate h) * up h). Backward recomputes the product from gate h and up h.

    adapters: those of both matrices, which get the gradient in place of the matrices; their A and B follow.
    """

    @staticmethod
    def forward(ctx, h: Tensor, gate_up: Tensor, down: Tensor, adapters: list[Adapter] | None, *trained: Tensor) -> Tensor:
        both = F.linear(h, gate_up)
        ctx.adapters = adapters
        ctx.save_for_backward(h, gate_up, down, both, *trained)
        gate, up = both.chunk(2, -1)
        return F.linear(F.silu(gate).mul_(up), down)

    @staticmethod
    def backward(ctx, g: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        h, gate_up, down, both, *_ = ctx.saved_tensors
        gate, up = both.chunk(2, -1)
        silu, g_product = F.silu(gate), g @ down
        g_both = torch.cat((torch.ops.aten.silu_backward(g_product * up, gate), g_product * silu), -1)
        if ctx.adapters is not None:
            of_both, of_down = ctx.adapters
            return g_both @ gate_up, None, None, None, *of_both.gradients(h, g_both), *of_down.gradients(silu * up, g)
        g_down = g.T @ (silu * up) if ctx.needs_input_grad[2] else None
        return g_both @ gate_up, g_both.T @ h if ctx.needs_input_grad[1] else None, g_down, None


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding of x (n, H, d) by tables (n, 1, d); `sin` already carries the sign of its first half."""
    half = x.shape[-1] // 2
    return torch.addcmul(x * cos, torch.cat((x[..., half:], x[..., :half]), -1), sin)


def rope_tables(config: dict[str, Any], s: Shape) -> tuple[Tensor, Tensor]:
    """(context, head_dim) cosines and signed sines. Scaled variants (linear, llama3, yarn ...) come from transformers."""
    rope = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    kind = rope.get("rope_type") or rope.get("type") or "default"
    theta = rope.get("rope_theta") or config.get("rope_theta") or 10000.0
    scale = 1.0
    if kind == "default":
        inverse = 1.0 / theta ** (torch.arange(0, s.head_dim, 2, dtype=torch.float32) / s.head_dim)
    else:
        from transformers import AutoConfig
        from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

        if kind not in ROPE_INIT_FUNCTIONS or kind in ("dynamic", "longrope"):
            raise Unsupported(f"the lean policy does not know RoPE of type {kind!r}")
        # transformers computes the scaled frequencies, and a factor for the attention logits
        full = AutoConfig.for_model(**config)
        inverse, scale = ROPE_INIT_FUNCTIONS[kind](full, torch.device("cpu"))
    # in float32: bfloat16 cannot tell positions above 256 apart
    angles = torch.outer(torch.arange(s.context, dtype=torch.float32), inverse)
    cos, sin = angles.cos() * scale, angles.sin() * scale
    return torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)
