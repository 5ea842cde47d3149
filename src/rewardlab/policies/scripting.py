"""TorchScript, on CPUs."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch


@functools.cache
def scripted(function: Callable[..., Any], device_type: str) -> Callable[..., Any]:
    """The function as TorchScript on CPUs; on GPUs as it is, since there the fuser would compile anew for every length of a cache.

    An operation of a small model takes some microseconds, no more than Python needs to call it, and Python's lock makes threads
    wait for each other.
    """
    if device_type != "cpu":
        return function
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(function)
