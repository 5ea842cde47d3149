"""Several processes that were started together, by torchrun or accelerate, before they know of each other."""

from __future__ import annotations

import os


def is_first() -> bool:
    """Whether this process is the first of those started together, or the only one. `engine.distributed` asks the process group."""
    return os.environ.get("RANK", "0") == "0" or "WORLD_SIZE" not in os.environ
