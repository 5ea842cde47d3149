"""Optional dependencies."""

from __future__ import annotations

import importlib.util

from rewardlab.errors import RewardlabError


class MissingExtra(RewardlabError):
    """An optional package is not installed."""


def require(extra: str, *modules: str, what: str = "this") -> None:
    """Raise MissingExtra, which names the extra to install, unless all modules are installed. Does not import them."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise MissingExtra(f"{what} needs {', '.join(missing)}: pip install 'rewardlab[{extra}]'")
