"""TorchScript for small operations on CPUs."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch


@functools.cache
def scripted(function: Callable[..., Any], device_type: str) -> Callable[..., Any]:
    """The function as TorchScript on CPUs; on GPUs unchanged: there the fuser would recompile for every new cache length.

    An operation of a small model takes a few microseconds, no longer than Python takes to call it. TorchScript calls them without
    Python, and without its global lock, so that several threads can sample at once.
    """
    if device_type != "cpu":
        return function
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(function)
