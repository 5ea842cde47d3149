"""Modules that programs often import, loaded once by a worker; modules that map large libraries would slow down every fork."""

import importlib
import os

NAMES = (
    "abc", "bisect", "collections", "contextlib", "copy", "dataclasses", "datetime", "enum", "functools", "heapq", "io",
    "itertools", "json", "math", "operator", "random", "re", "string", "threading", "types", "typing",
)  # fmt: skip


def load() -> None:
    """Import them. To be called first, before other imports load some of them."""
    register = os.register_at_fork
    # programs are forked from a process without threads, and seed themselves, so hooks that run on each fork only cost time
    os.register_at_fork = lambda **_: None  # type: ignore[assignment]
    for name in NAMES:
        importlib.import_module(name)
    os.register_at_fork = register
