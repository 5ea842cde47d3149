"""A GPU that is simulated on the CPU: tensors of the device "gpu" compute there, under a GPU's rules, and what would make the
program wait for it is counted.

    with SimulatedGPU() as gpu:
        policy = LlamaPolicy(model, tokenizer, gpu.device, torch.float32)      ->  computes; gpu.waits, gpu.uploads
        policy.model.embed + torch.ones(8)                                     ->  RuntimeError: gpu:0 and cpu

An operation on tensors of both devices is refused, as CUDA refuses it (a CPU tensor of no dimension is a number, and is taken; so
are CPU indices, which are an upload). What reads a value back (`.item()`, `.cpu()`, `nonzero`, indexing by a mask) is a wait;
what brings one there an upload, which waits too unless it is `non_blocking`. Both are counted by the function of rewardlab that
they come from. Numbers are those of the CPU. A process that simulates must not have used autograd before.
"""

from __future__ import annotations

import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

SRC = str(Path(__file__).parents[2] / "src" / "rewardlab")
WAITS = {
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "unique_consecutive",
    "_unique2",
    "bincount",
    "equal",
    "repeat_interleave",
}
"""Operations whose result, or its size, the program must know before it goes on."""
INDEXES = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put"}


class _Backend(_DummyBackendModule):
    @staticmethod
    def get_amp_supported_dtype() -> list[torch.dtype]:
        return [torch.float32, torch.bfloat16]


class Simulated(torch.Tensor):
    """A tensor of the simulated GPU. inner: the same numbers on the CPU."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Simulated:
        made = torch.Tensor._make_wrapper_subclass(
            cls, inner.size(), strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype,
            device=torch.device("gpu", 0), requires_grad=False,
        )  # fmt: skip
        made.inner = inner
        return made

    def __repr__(self, **options: Any) -> str:
        return f"Simulated({self.inner!r})"

    def tolist(self) -> Any:
        SimulatedGPU.now.waits.update([_place("tolist")])
        return self.inner.tolist()

    def numpy(self, **options: Any) -> Any:
        raise TypeError("cannot convert a tensor of gpu:0 to numpy: Tensor.cpu() copies it to the host first")

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        return SimulatedGPU.now.run(operation, args, kwargs or {})


class SimulatedGPU(TorchDispatchMode):
    """A context in which the device "gpu" can be used.  waits, uploads: how often, by the line of rewardlab."""

    now: SimulatedGPU
    ready = False

    def __init__(self) -> None:
        super().__init__()
        if not SimulatedGPU.ready:
            _setup_privateuseone_for_python_backend("gpu", backend_module=_Backend())
            SimulatedGPU.ready = True
        SimulatedGPU.now = self
        self.device = torch.device("gpu", 0)
        self.waits: Counter[str] = Counter()
        self.uploads: Counter[str] = Counter()

    def __enter__(self) -> SimulatedGPU:
        # torch.tensor(list, device=...) makes a tensor on the CPU and brings it there by an operation that is seen here
        torch._C._set_only_lift_cpu_tensors(True)
        return super().__enter__()

    def __exit__(self, *problem: Any) -> None:
        torch._C._set_only_lift_cpu_tensors(False)
        super().__exit__(*problem)

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        return self.run(operation, args, kwargs or {})

    def run(self, operation: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        tensors = [x for x in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        there = [x for x in tensors if isinstance(x, Simulated)]
        name = operation._schema.name.removeprefix("aten::")
        # in inference mode `.to` comes as it was called, with its device among the arguments
        given = [x for x in (*args, *kwargs.values()) if isinstance(x, torch.device)]
        device = given[0] if given else None
        if name == "to" and device is None and len(tensors) == 2:
            device = tensors[1].device
            args, kwargs = (args[0], device, tensors[1].dtype), {}
            operation = torch.ops.aten.to.device
        to_gpu = bool(there) if device is None else torch.device(device).type == "gpu"
        if not there and not to_gpu:
            return operation(*args, **kwargs)
        # `.to` has it as its fourth argument
        self.waiting = not (kwargs.get("non_blocking") or (name == "to" and len(args) > 3 and args[3]))
        self._check(name, tensors, there, device, kwargs.get("generator"))
        args, kwargs = tree_map(_on_cpu, args), tree_map(_on_cpu, kwargs)
        outer = {id(x.inner): x for x in there}
        result = operation(*tree_map(_inner, args), **tree_map(_inner, kwargs))
        if not to_gpu:
            # to another device: what comes back is no longer there, even if it is the same memory
            return tree_map(lambda x: x.clone() if torch.is_tensor(x) and id(x) in outer else x, result)
        # an operation in place gives back the tensor that it was given
        return tree_map(lambda x: outer[id(x)] if id(x) in outer else Simulated(x) if torch.is_tensor(x) else x, result)

    def _check(self, name: str, tensors: list[Any], there: list[Any], device: Any, generator: Any) -> None:
        elsewhere = [x for x in tensors if not isinstance(x, Simulated) and x.dim()]
        if generator is not None and generator.device.type == "cpu":
            raise RuntimeError(f"{name}: a generator of the device cpu cannot fill a tensor of gpu:0")
        if name == "copy_" or device is not None:
            from_gpu, to_gpu = isinstance(tensors[-1], Simulated) if tensors else True, bool(there and tensors[0] is there[0])
            to_gpu = to_gpu if device is None else torch.device(device).type == "gpu"
            self.waits.update([_place(name)] if from_gpu and not to_gpu else [])
            self.uploads.update([_place(name)] if to_gpu and elsewhere and self.waiting else [])
            return
        if elsewhere and name in INDEXES and isinstance(tensors[0], Simulated):
            numbers = [x for x in elsewhere if not x.is_floating_point()]
            self.uploads.update([_place(name)] * len(numbers))
            elsewhere = [x for x in elsewhere if x.is_floating_point()]
        if elsewhere:
            raise RuntimeError(f"{name}: expected all tensors to be on the same device, but found at least two, gpu:0 and cpu")
        by_mask = name in INDEXES and any(x.dtype == torch.bool for x in tensors[1:])
        if name in WAITS or by_mask:
            self.waits.update([_place(name)])


def _on_cpu(x: Any) -> Any:
    return torch.device("cpu") if isinstance(x, torch.device) else x


def _inner(x: Any) -> Any:
    return x.inner if isinstance(x, Simulated) else x


def _place(name: str) -> str:
    """file:function of the innermost frame of rewardlab, and the operation."""
    for frame in reversed(traceback.extract_stack()):
        if frame.filename.startswith(SRC):
            return f"{frame.filename.removeprefix(SRC + '/')}:{frame.name} {name}"
    return f"elsewhere {name}"
