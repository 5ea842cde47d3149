"""Libraries that only some parts need."""

from __future__ import annotations

import importlib.util

from rewardlab.errors import RewardlabError


def require(extra: str, *modules: str) -> None:
    """Raise RewardlabError, naming the extra that brings them, unless all modules are installed. Imports none of them."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise RewardlabError(f"this needs {', '.join(missing)}: pip install 'rewardlab[{extra}]'")
