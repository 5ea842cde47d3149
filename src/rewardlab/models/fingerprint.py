"""The cache key of a small policy: a hash of everything that its training depends on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rewardlab import registry
from rewardlab.registry.code import hash_of, room_of

FOLLOWED = ("tasks", "worlds", "text", "verifiers")
"""Rooms whose code decides which problems and demonstrations a policy is warmed up on."""


def fingerprint(tasks: Iterable[str], makers: Iterable[str], settings: Any = None) -> str:
    """A hash that changes whenever the trained policy would.

    It covers the definitions that the tasks reach in the rooms FOLLOWED; the makers (paths in the package of the modules that train
    the policy); and `settings`. Comments, docstrings, layout, and the files that things are in do not count.
    """
    made_by = {registry.PACKAGE / maker for maker in makers}
    starts = [(registry.task_files()[task], task) for task in tasks]
    return hash_of(
        [*starts, *((path, None) for path in made_by)], settings, lambda path: room_of(path) in FOLLOWED or path in made_by
    )
