"""What a command asked of served models."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

Spent = dict[str, dict[str, Any]]
"""For each served model what this process asked it: the fields of its Usage, and its name under "model"."""


def spent() -> Spent:
    # not imported here: most commands ask none
    client = sys.modules.get("rewardlab.clients.client")
    return {usage["model"]: usage for usage in client.spent()} if client else {}


def since(before: Spent) -> list[dict[str, Any]]:
    """What served models were asked since then."""
    grown = [
        {name: x if name == "model" else x - before.get(model, {}).get(name, 0) for name, x in usage.items()}
        for model, usage in spent().items()
    ]
    return [usage for usage in grown if usage["requests"] or usage["cached"]]


def line(usage: Mapping[str, Any]) -> str:
    from rewardlab.clients.budget import bill

    return bill(usage)
