"""A transformers model with weights, gradients and optimiser state sharded over the training processes (FSDP2).

Zhao et al. 2023, arXiv:2304.11277; here `torch.distributed.fsdp.fully_shard`, a group for each decoder layer and one for the rest
(embeddings, last norm, vocabulary head). A pass gathers a layer's weights where it computes, and frees them again; the backward
pass leaves each process its part of the sum of all gradients. So every pass needs all processes, also where one of them alone has
work: they take turns (`util/lockstep.py`).

Each process reads the whole checkpoint into its main memory first; the device holds one layer of it at a time, and its part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from rewardlab.core import Outputs
from rewardlab.errors import RewardlabError
from rewardlab.policies.hf.adapters import adapted
from rewardlab.policies.hf.model import decoder_layers
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.perturbed import Place
from rewardlab.policies.vectors import Prefix
from rewardlab.util.lockstep import LOCKSTEP
from rewardlab.util.sharded import part_of, whole

TORCH = "torch 2.13"
"""The first version whose FSDP2 sums gradients on CPUs too, and takes part in a sum without a gradient of its own."""


class ShardedPolicy(HFPolicy):
    """An HFPolicy of which this process holds a part. What it returns is what an HFPolicy does.

    All weights train. What reads or changes weights outside of a pass (LoRA, value heads, noise, losses of the vocabulary
    head itself) is refused.
    """

    alone = False
    _passing = False

    def __init__(self, policy: HFPolicy, device: torch.device, dtype: torch.dtype, name: str = "policy"):
        """policy: on the CPU, and the same in all processes; it is used up. Raises RewardlabError if it cannot be divided."""
        check(policy)
        super().__init__(policy.model, policy.tokenizer, torch.device("cpu"), dtype, name)
        self._as_loaded(policy)
        self.device = device
        self._kind = type(self.model)
        _divide(self.model, device, dtype)
        # what the hooks of the divided model take for its forward pass
        self.model.rewardlab_pass = self._passed
        torch.distributed.fsdp.register_fsdp_forward_method(self.model, "rewardlab_pass")
        self._pass, self._gather = LOCKSTEP.add(self._join_pass), LOCKSTEP.add(self._join_gather)
        # in sampling, transformers calls the model itself; before the hook that gathers weights
        self.model.register_forward_pre_hook(lambda module, inputs: LOCKSTEP.take_turn(self._pass), prepend=True)

    def copy(self, name: str, value_head: bool = False) -> HFPolicy:
        """A copy that is divided likewise; not one with a value head."""
        if value_head:
            raise _refused(f"the model {name!r}, a copy with a value head")
        copied = self._kind(self.model.config)
        copied.load_state_dict({k: v.cpu() for k, v in self.state().items()}, strict=False)
        plain = HFPolicy(copied, self.tokenizer, torch.device("cpu"), self.dtype, name)
        plain._as_loaded(self)
        divided = ShardedPolicy(plain, self.device, self.dtype, name)
        divided.recomputes = self.recomputes
        return divided

    def save(self, folder: Path | str) -> None:
        """Write an ordinary Hugging Face checkpoint in float32, whole."""
        self.model.save_pretrained(folder, state_dict=self.state())
        self.save_tokenizer(Path(folder))

    def state(self) -> dict[str, Tensor]:
        """The weights that train, whole, on the CPU."""
        LOCKSTEP.take_turn(self._gather)
        return {k: whole(p.detach()).cpu() for k, p in self._trained().items()}

    @torch.no_grad()
    def load_state(self, state: dict[str, Tensor]) -> None:
        for name, p in self._trained().items():
            p.copy_(part_of(state[name], p))

    def _join_gather(self) -> None:
        for p in self._trained().values():
            whole(p.detach())

    # ---- passes ------------------------------------------------------------------------------------------------------

    def _forward(self, ids: Tensor, length: Tensor, mask: Tensor, wants: Sequence[str], per_token: Sequence[Any] = ()) -> Outputs:
        LOCKSTEP.take_turn(self._pass)
        return Outputs.of(self.model.rewardlab_pass(ids, length, mask, wants, per_token))

    def _passed(self, *arguments: Any) -> dict[str, Tensor]:
        """A pass, for which the hooks of the model gather the weights; as a dict, in which they find the outputs."""
        self._passing = True
        try:
            return super()._forward(*arguments).tensors()
        finally:
            self._passing = False

    def _join_pass(self) -> None:
        """The smallest pass there is, backward too where those of the others go so; it adds nothing to any gradient."""
        ids = torch.zeros(1, 2, dtype=torch.long, device=self.device)
        mask, length = torch.ones_like(ids, dtype=torch.bool), torch.full((1,), 2, device=self.device)
        with torch.set_grad_enabled(LOCKSTEP.learning):
            logprobs = self.model.rewardlab_pass(ids, length, mask, ("logprobs",), ())["logprobs"]
        if LOCKSTEP.learning:
            (0.0 * logprobs.sum()).backward()

    def free_memory(self) -> int:
        own = super().free_memory()
        if LOCKSTEP.inside:
            return own
        # all processes do the same work, and must divide it alike
        least = torch.tensor(own)
        dist.all_reduce(least, dist.ReduceOp.MIN)
        return int(least)

    # ---- what needs whole weights --------------------------------------------------------------------------------------

    def vocabulary_head(self) -> Tensor:
        if not self._passing:
            raise _refused("a loss that is computed from the vocabulary head itself")
        return super().vocabulary_head()

    @contextmanager
    def prefixed(self, write: Prefix) -> Iterator[None]:
        raise _refused("vectors in place of token embeddings")
        yield

    @contextmanager
    def inserted(self, layer: int, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
        raise _refused("a change between the layers")
        yield

    @contextmanager
    def joined(self, others: Sequence[Any], candidates: int = 20) -> Iterator[None]:
        if others:
            raise _refused("sampling from several models")
        yield

    def _scales(self) -> list[Place]:
        raise _refused("noise on weights")


def check(policy: Any) -> None:
    """Raise RewardlabError for a policy whose weights cannot be divided, and for a PyTorch that cannot do it."""
    from torch.distributed import fsdp

    if not hasattr(getattr(fsdp, "FSDPModule", None), "set_reduce_scatter_unused_params"):
        raise RewardlabError(f"--shard needs {TORCH} or newer, and this is torch {torch.__version__}")
    if type(policy) is not HFPolicy:
        raise RewardlabError(
            f"--shard divides language models that transformers runs, and this is a {type(policy).__name__}: "
            "write hf: before the model's name (text models only), or leave out --shard"
        )
    if adapted(policy.whole) or getattr(policy.model, "is_loaded_in_4bit", False):
        raise _refused("adapters (--lora-rank) or a model in 4 bits")
    if policy.has_value_head:
        raise _refused("a model with a value head")
    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        raise RewardlabError(
            "--shard divides the weights among processes, and there is only this one: "
            "torchrun --nproc-per-node N -m -- rewardlab train ... --shard"
        )


def _divide(model: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    # a layer is gathered in the format of computation: autocast's own copies of all layers would be kept for the backward pass
    precision = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32, cast_forward_inputs=False)
    # a layer is moved to the device where it is divided: the whole model never is there
    for layer in decoder_layers(model):
        # scales of norms stay float32, as under autocast: rounded, they would move every gradient
        if norms := [module for module in layer.modules() if _is_norm(module)]:
            fully_shard(norms, mesh=mesh)
        fully_shard(layer, mesh=mesh, mp_policy=precision)
    # gathered again for the backward pass, which PyTorch would spare this group: then its parameters would be whole after a pass
    # without one, and an optimiser made at that moment would learn those
    root: Any = fully_shard(model, mesh=mesh, reshard_after_forward=True)
    for module in root.modules():
        if hasattr(module, "set_gradient_divide_factor"):
            # the sum, not the mean: each process has the gradient of its own micro-batches
            module.set_force_sum_reduction_for_comms(True)
            module.set_gradient_divide_factor(1.0)
    # a process that joins in has gradients that others may not have
    root.set_reduce_scatter_unused_params(True)


def _is_norm(module: nn.Module) -> bool:
    own = list(module.parameters(recurse=False))
    return bool(own) and all(p.dim() == 1 for p in own)


def _refused(what: str) -> RewardlabError:
    return RewardlabError(f"{what}: this needs whole weights, which no process has under --shard; train without one of the two")
