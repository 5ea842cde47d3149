"""LoRA for the lean decoder: frozen matrices, and a small product beside each that trains.

    W' = W + 2 B A,   A (rank, in) random, B (out, rank) zero at first

W' is computed once per forward pass, which costs rank / tokens of the pass itself. So sampling runs at the speed of the full model,
without extra products per token, and training faster: the gradients of A and B come from x and the gradient of W' x directly,
without that of W', which is a third of a pass forward and back. Optimiser state and checkpoints hold A and B alone. As in peft,
which models of transformers use: every matrix of a layer in the checkpoint has its own adapter, of scale 2 (lora_alpha = 2 rank)
where it is new. They are saved in peft's format.

Hu et al. 2021, arXiv:2106.09685
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from rewardlab.errors import RewardlabError
from rewardlab.policies.adapter import CONFIG, WEIGHTS, Base, beyond_lora, config_of
from rewardlab.policies.llama.unsupported import Unsupported

SCALE = 2.0
"""lora_alpha / rank of new adapters."""
MATRICES = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), "out": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"), "down": ("mlp.down_proj",),
}  # fmt: skip
"""Our matrices, and those of the checkpoint that are stacked in each."""


class Adapter(nn.Module):
    """The adapter of a matrix (out, in) in which several matrices of the checkpoint, of `heights` rows each, are stacked."""

    def __init__(self, heights: Sequence[int], width: int, rank: int, generator: torch.Generator, scale: float = SCALE):
        super().__init__()
        self.heights, self.rank, self.scale = tuple(heights), rank, scale
        bound = 1 / math.sqrt(width)  # Kaiming's with a = sqrt(5), as peft has it
        self.A = nn.Parameter(torch.empty(len(self.heights) * rank, width).uniform_(-bound, bound, generator=generator))
        # B = 0: the adapted model starts equal to the original one
        self.B = nn.Parameter(torch.zeros(sum(self.heights), rank))

    def forward(self, weight: Tensor) -> Tensor:
        """W + scale B A."""
        return weight + self.scale * torch.cat([b @ a for a, b in self.pairs()])

    def pairs(self) -> list[tuple[Tensor, Tensor]]:
        """A (rank, in) and B (height, rank) of each matrix of the checkpoint, as views."""
        return list(zip(self.A.split(self.rank), self.B.split(self.heights), strict=True))

    def gradients(self, x: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        """Of A and B, for x (n, in) and the gradient g (n, out) of W' x."""
        x, to_a, to_b = self.scale * x, [], []
        for (a, b), part in zip(self.pairs(), g.split(self.heights, 1), strict=True):
            to_a.append((part @ b.to(g.dtype)).T @ x)
            to_b.append(part.T @ (x @ a.to(x.dtype).T))
        return torch.cat(to_a).to(self.A.dtype), torch.cat(to_b).to(self.B.dtype)


class AdaptedLinear(torch.autograd.Function):
    """x (n, in), W' (out, in), a frozen bias (out,) or None -> (n, out). W' itself gets no gradient: its adapter does."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor | None, adapter: Adapter, *trained: Tensor) -> Tensor:
        ctx.adapter = adapter
        # A and B are kept so that PyTorch notices if they change before the backward pass
        ctx.save_for_backward(x, weight, *trained)
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx, g: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, weight, *_ = ctx.saved_tensors
        return g @ weight, None, None, None, *ctx.adapter.gradients(x, g)


def adapt(
    model: Any, rank: int, generator: torch.Generator, scale: float = SCALE, dtype: torch.dtype = torch.float32
) -> None:  # fmt: skip
    """Freeze all weights of a `model.Llama`, its matrices kept in a number format, and put adapters on those of all layers."""
    s = model.shape
    q, kv = s.heads * s.head_dim, s.kv_heads * s.head_dim
    heights = {"qkv": (q, kv, kv), "out": (s.hidden,), "gate_up": (s.mlp, s.mlp), "down": (s.hidden,)}
    # before adapters are added: they must stay trainable
    model.requires_grad_(False).keep(dtype)
    for layer in model.layers:
        for name, rows in heights.items():
            weight = getattr(layer, name)
            layer.adapters[name] = Adapter(rows, weight.shape[1], rank, generator, scale).to(weight.device)


@torch.no_grad()
def merge(model: Any) -> Any:
    """The model itself, its adapters added to its weights, which are float32 from now on, and removed."""
    model.keep(torch.float32)
    for layer in model.layers:
        for name, adapter in layer.adapters.items():
            weight = getattr(layer, name)
            weight.copy_(adapter(weight))
        layer.adapters.clear()
    return model


def merged(model: Any) -> Any:
    """The same model without adapters: a copy that has added them to its weights, or itself where there are none."""
    return merge(copy.deepcopy(model)) if any(layer.adapters for layer in model.layers) else model


# ---- peft's format ---------------------------------------------------------------------------------------------------


def save_adapter(model: Any, folder: Path, base: Base) -> None:
    """Write the adapters of a model as peft does."""
    folder.mkdir(parents=True, exist_ok=True)
    adapter = model.layers[0].adapters["out"]
    alpha = adapter.scale * adapter.rank
    config = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": base.name, "revision": base.revision,
        "r": adapter.rank, "lora_alpha": int(alpha) if alpha.is_integer() else alpha, "lora_dropout": 0.0, "bias": "none",
        "target_modules": sorted(name.split(".")[-1] for names in MATRICES.values() for name in names), "inference_mode": True,
    }  # fmt: skip
    (folder / CONFIG).write_text(json.dumps(config, indent=2), "utf-8")
    tensors = {name: view.detach().cpu().contiguous().clone() for name, view in _peft_names(model)}
    save_file(tensors, folder / WEIGHTS, metadata=base.metadata)


def check_adapter(folder: Path) -> None:
    """Raise Unsupported unless an adapter is plain LoRA of one rank on all matrices."""
    config = config_of(folder)
    if not (folder / WEIGHTS).is_file():
        raise Unsupported(f"{folder} holds no {WEIGHTS}")
    targets = config.get("target_modules") or ()
    wanted = {name.split(".")[-1] for names in MATRICES.values() for name in names}
    if extras := beyond_lora(config) or ", ".join(
        k for k in ("rank_pattern", "alpha_pattern", "layers_to_transform") if config.get(k)
    ):
        raise Unsupported(f"the lean policy knows plain LoRA only, and the adapter has {extras}")
    if targets != "all-linear" and (isinstance(targets, str) or {t.split(".")[-1] for t in targets} != wanted):
        raise Unsupported("the lean policy has adapters on all linear layers only")


@torch.no_grad()
def load_adapter(model: Any, folder: Path, dtype: torch.dtype) -> None:
    """Freeze all weights of a `model.Llama`, its matrices kept in a number format, and put the adapters in a folder on it."""
    check_adapter(folder)
    config, tensors = config_of(folder), load_file(folder / WEIGHTS)
    rank, alpha = config["r"], config.get("lora_alpha", config["r"])
    scale = alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)
    adapt(model, rank, torch.Generator().manual_seed(0), scale, dtype)
    views = dict(_peft_names(model))
    if views.keys() != tensors.keys():
        raise Unsupported(f"the lean policy has adapters on all linear layers only, unlike {min(views.keys() ^ tensors.keys())}")
    for name, view in views.items():
        if tensors[name].shape != view.shape:
            raise RewardlabError(f"{folder} does not fit its base model: {name} has the shape {tuple(tensors[name].shape)}")
        view.copy_(tensors[name])


def _peft_names(model: Any) -> Iterator[tuple[str, Tensor]]:
    """peft's names with views of our adapters: writing into a view writes into the model."""
    for i, layer in enumerate(model.layers):
        for name, parts in MATRICES.items():
            for part, (a, b) in zip(parts, layer.adapters[name].pairs(), strict=True):
                at = f"base_model.model.model.layers.{i}.{part}"
                yield f"{at}.lora_A.weight", a
                yield f"{at}.lora_B.weight", b
