"""Calls of the package reasoning-gym (an optional extra), which runs in one process of its own: `server.py`."""

from __future__ import annotations

from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.processes.pool import Done, Workers
from rewardlab.processes.supervisor import per_process

PATIENCE = 300.0
"""Seconds for what depends on the package's own code alone: to import it, and to sample a problem."""


class Ended(RewardlabError):
    """The process took too long, or died."""


def ask(do: str, within: float = PATIENCE, **options: Any) -> Any:
    """Call the server's function `do`, with a limit of `within` seconds. Raises Ended, or RewardlabError if the call fails."""
    (result,) = pool().map([(do, options)], within)
    if not isinstance(result, Done):
        if result.kind == "error":
            raise RewardlabError(f"reasoning-gym: {result.why}")
        late = result.kind == "timeout"
        raise Ended(f"took more than {within:g} seconds" if late else "brought the process of reasoning-gym down")
    if "missing" in result.value:
        raise RewardlabError(
            f"this needs the package reasoning-gym: pip install 'rewardlab[gym-tasks]' ({result.value['missing']})"
        )
    return result.value["is"]


@per_process
def pool() -> Workers:
    # a fixed hash seed, since some generators follow the order of sets
    call = "rewardlab.tasks.reasoning_gym.process:call"
    return Workers(call, seconds=PATIENCE, processes=1, patience=PATIENCE, env={"PYTHONHASHSEED": "0"})
