"""The disk space that a run needs, known before it trains."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab.core import Recipe
from rewardlab.engine.checkpoint import KEEP
from rewardlab.errors import RewardlabError
from rewardlab.models.load import Policy
from rewardlab.runs.config import RunConfig
from rewardlab.util.files import size


def disk_bytes(recipe: Recipe, policy: Policy, models: Mapping[str, Any], config: RunConfig) -> int:
    """The least bytes that the models of a run take on disk: checkpoints with optimiser states, the reference, best/ and model/.

    models: the second learners' by name.  Rollouts, metrics and report come on top, and one checkpoint while it replaces another.
    """
    config = config.settled()
    own = _weights(policy)
    # a policy without an objective does not learn and is in no checkpoint
    trained = [*models.values(), *([policy] if recipe.objective is not None else [])]
    # the checkpoint of step 0 has no optimiser states
    later = math.ceil(config.steps / config.checkpoint_every) if config.checkpoint_every else 1
    checkpoints = KEEP * sum(map(_weights, trained)) + min(KEEP, later) * sum(map(_moments, trained))
    reference = any(need == "ref" or need.startswith("reference.") for need in recipe.needs)
    return checkpoints + own * (1 + reference + (config.eval_problems > 0))


def disk_free(folder: Path) -> int:
    """The free bytes where this folder is, or will be."""
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(existing).free


def check_disk(folder: Path, needed: int) -> None:
    """Raise RewardlabError if so much surely does not fit where the folder is."""
    if needed > (free := disk_free(folder)):
        raise RewardlabError(
            f"{folder} will hold at least {size(needed)} of checkpoints and models, and only {size(free)} are free there; "
            "free some space, or choose another folder (--out)"
        )


def _weights(model: Any) -> int:
    return sum(weight.numel() * weight.element_size() for weight in model.state().values())


def _moments(model: Any) -> int:
    """The bytes of Adam's two moments of every weight that trains."""
    return sum(2 * p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)
