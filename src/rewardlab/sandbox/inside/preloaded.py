"""Modules that programs often import, loaded once by a lane; those that map large libraries would slow down every start."""

import importlib
import os

NAMES = (
    "abc", "bisect", "collections", "contextlib", "copy", "dataclasses", "datetime", "enum", "functools", "heapq", "io",
    "itertools", "json", "math", "operator", "random", "re", "string", "threading", "types", "typing",
)  # fmt: skip


def load() -> None:
    """Before all else, so that no module is loaded already."""
    register = os.register_at_fork
    # programs start from a process without threads, and with a seed of their own: what modules would do on each fork is in vain
    os.register_at_fork = lambda **_: None  # type: ignore[assignment]
    for name in NAMES:
        importlib.import_module(name)
    os.register_at_fork = register
