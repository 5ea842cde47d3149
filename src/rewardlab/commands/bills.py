"""What a command asked of served models."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

Spent = dict[str, dict[str, Any]]
"""For each served model what this process asked it: the fields of its Usage, and its name under "model"."""


def spent() -> Spent:
    # not imported here: most commands ask none
    client = sys.modules.get("rewardlab.clients.client")
    return {usage["model"]: usage for usage in client.spent()} if client else {}


def since(before: Spent) -> list[dict[str, Any]]:
    """What served models were asked since then, by all processes that train together, each of which calls this."""
    grown = [
        {name: x if name == "model" else x - before.get(model, {}).get(name, 0) for name, x in usage.items()}
        for model, usage in spent().items()
    ]
    asked = [usage for usage in grown if usage["requests"] or usage["cached"]]
    # not imported here: what has not loaded it trains nothing
    distributed = sys.modules.get("rewardlab.engine.distributed")
    return summed(distributed.all_gather(asked)) if distributed else asked


def summed(by_process: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """One entry for each model, from those of each process."""
    total: Spent = {}
    for usage in (usage for asked in by_process for usage in asked):
        so_far = total.setdefault(usage["model"], {name: x if name == "model" else 0 for name, x in usage.items()})
        so_far |= {name: so_far[name] + x for name, x in usage.items() if name != "model"}
    return [*total.values()]


def line(usage: Mapping[str, Any]) -> str:
    from rewardlab.clients.budget import bill

    return bill(usage)
