"""Studies: analyses that train no policy."""

from __future__ import annotations

from rewardlab.core.part import Part, decorator


class Study(Part):
    """(run) -> {name: number}: an analysis that trains no policy. `run` has a seed and random streams but no policy."""

    slot = "study"


study = decorator(Study)
