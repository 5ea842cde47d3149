"""A context in which a policy keeps what it has computed of texts, to go on from there."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any


def keeping(policy: Any) -> AbstractContextManager[None]:
    """`policy.keeping()`; nothing for a policy that keeps nothing, such as one that is served. Its weights must stay within."""
    return policy.keeping() if hasattr(policy, "keeping") else nullcontext()
