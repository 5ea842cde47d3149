"""The machine's capabilities: devices, number formats, memory."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path

import numpy as np
import torch

from rewardlab.errors import RewardlabError

from .ranks import local_rank

SHARED_BY = "REWARDLAB_RUNS_ON_DEVICE"
"""The environment variable that says how many processes of ours work side by side on the device of this one."""


def device_of(name: str = "auto") -> torch.device:
    """`auto` is the GPU if there is one, else the CPU; of processes that were started together, each gets a GPU of its own.

    Raises RewardlabError for a device that is not there.
    """
    if name in ("auto", "cuda") and torch.cuda.is_available():
        check_ranks()
        # with its number: "cuda" alone means that of the current thread, and equals the device of no tensor
        return torch.device("cuda", local_rank())
    if name == "auto":
        return torch.device("cpu")
    if name == "cuda":
        raise RewardlabError("--device cuda: this machine has no usable CUDA device; use --device cpu or auto")
    if name.startswith("cuda:") and int(name[5:]) >= torch.cuda.device_count():
        there = f"there are {torch.cuda.device_count()} CUDA devices, counted from 0"
        raise RewardlabError(f"--device {name}: this machine has no such device ({there}); use --device cpu or auto")
    if name not in ("cpu", "cuda") and not name.startswith("cuda:"):
        raise RewardlabError(f"unknown device {name!r}; known: auto, cpu, cuda")
    return torch.device(name)


def moved(x: np.ndarray | torch.Tensor, device: torch.device) -> torch.Tensor:
    """A CPU array or tensor on the device; on the CPU itself, without a copy.

    A GPU takes it when it comes to it, and nobody waits: a plain `.to` would wait for all that the GPU has to do before.
    """
    tensor = torch.from_numpy(x) if isinstance(x, np.ndarray) else x
    if device.type == "cuda" and tensor.device.type == "cpu":
        # only from pinned memory; PyTorch keeps it until the GPU has read it
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def fetched(*tensors: torch.Tensor) -> list[np.ndarray]:
    """Tensors of one shape as arrays, each of its own format, with one wait for a GPU, where integers beyond 2^53 are rounded."""
    if tensors[0].device.type == "cpu":
        return [x.numpy() for x in tensors]
    table = torch.stack([x.double() for x in tensors]).cpu()
    return [row.to(x.dtype).numpy() for row, x in zip(table, tensors, strict=True)]


def check_ranks() -> None:
    """Raise RewardlabError if more processes were started on this machine than it has GPUs."""
    if local_rank() >= (there := torch.cuda.device_count()):
        raise RewardlabError(
            f"this is process {local_rank() + 1} of those on this machine, which has {there} GPU{'s' * (there != 1)}: start one "
            "process per GPU, or hide them with CUDA_VISIBLE_DEVICES= to train on CPUs"
        )


@functools.cache
def has_bf16_matrix_units(device_type: str) -> bool:
    """Whether the hardware has bf16 matrix products (AMX or AVX512-BF16 on CPUs, Ampere and later on GPUs)."""
    if device_type == "cuda":
        # emulated bf16 is slower than float32
        return torch.cuda.is_bf16_supported(including_emulation=False)
    try:
        with open("/proc/cpuinfo") as f:
            flags = f.read()
    except OSError:
        return False
    return "amx_bf16" in flags or "avx512_bf16" in flags


def dtype_of(name: str, device: torch.device) -> torch.dtype:
    """The number format of computation; `auto` is bfloat16 if the hardware has it. Weights and optimiser state stay float32."""
    if name == "auto":
        return torch.bfloat16 if has_bf16_matrix_units(device.type) else torch.float32
    dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    if name not in dtypes:
        raise RewardlabError(f"unknown dtype {name!r}; known: auto, float32, bfloat16")
    return dtypes[name]


def memory_of(device: torch.device) -> int:
    """Bytes that this process may use there: its share of the GPU's memory, or of the machine's (or of its control group's)."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory // processes_on_device()
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(path).read_text()))
        except (OSError, ValueError):  # not there, or "max"
            continue
    return min(limits) // max(_ranks_here(), processes_on_device())


def free_memory(device: torch.device) -> int:
    """Bytes that are free there now for this process: its share of what is free on a GPU, with what PyTorch keeps for later, or on
    the machine, or in its control group."""
    if device.type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) // processes_on_device() + kept
    limits = [_numbers_in("/proc/meminfo").get("MemAvailable", memory_of(torch.device("cpu")) >> 10) << 10]
    group = Path("/sys/fs/cgroup")
    try:
        # files that were read long ago are given up when memory is short
        used = int((group / "memory.current").read_text()) - _numbers_in(str(group / "memory.stat")).get("inactive_file", 0)
        limits.append(int((group / "memory.max").read_text()) - used)
    except (OSError, ValueError):  # no such group, or no limit
        pass
    return max(0, min(limits)) // max(_ranks_here(), processes_on_device())


def processes_on_device() -> int:
    """How many processes of ours, this one among them, work on the device of this one (`checks/workers.py`)."""
    return int(os.environ.get(SHARED_BY, "1"))


def _ranks_here() -> int:
    """How many of torchrun's processes are on this machine, and share its memory."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def _numbers_in(file: str) -> dict[str, int]:
    """The numbers of a file of lines NAME NUMBER; none where it is not there."""
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return {}
    return {words[0].rstrip(":"): int(words[1]) for line in lines if len(words := line.split()) > 1 and words[1].isdigit()}


@functools.cache
def keep_freed_memory() -> None:
    """Tell glibc to reuse large blocks instead of returning them to the kernel.

    Otherwise every large activation causes its page faults again at each step.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        libc = ctypes.CDLL("libc.so.6")
        mmap_threshold, trim_threshold, gigabyte = -3, -1, 1 << 30  # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of malloc.h
        libc.mallopt(mmap_threshold, gigabyte)
        libc.mallopt(trim_threshold, gigabyte)
    # another C library (musl): only speed is lost
    except (OSError, AttributeError):
        return
