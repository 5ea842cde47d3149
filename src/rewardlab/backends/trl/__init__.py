"""rewardlab on TRL: a recipe as a GRPOTrainer.

    from rewardlab.backends import trl
    trl.trainer(build("grpo"), "Qwen/folder", problems, verify=verifier, steps=100, per_device_train_batch_size=8).train()

TRL does weights, processes and adapters (accelerate), generation, the optimiser and its schedule, gradient accumulation, logging,
checkpoints and callbacks. Rollout, reward, credit, objective, weighting and second models run in rewardlab's code, so the
mathematics is that of the embedded engine.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from rewardlab.backends.trl.refusals import cannot_carry, not_text
from rewardlab.core import Problem, Recipe, Task
from rewardlab.errors import RewardlabError

__all__ = ["cannot_carry", "not_text", "require", "train", "trainer", "versions"]

PACKAGES = ("trl", "accelerate", "datasets")


def trainer(recipe: Recipe, model: Any, problems: Task | Sequence[Problem], **settings: Any) -> Any:
    """A trainer of TRL that runs `recipe`; see `training.make` for the settings. Call its `train()`."""
    require()
    from rewardlab.backends.trl.training import make

    return make(recipe, model, problems, **settings)


def train(*args: Any, **settings: Any) -> Any:
    """Train through TRL and write a run folder; see `folder.train`."""
    require()
    from rewardlab.backends.trl.folder import train as into_folder

    return into_folder(*args, **settings)


def versions() -> dict[str, str]:
    """The versions of the packages that results depend on besides rewardlab's own."""
    require()
    return {name: metadata.version(name) for name in PACKAGES}


def require() -> None:
    """Raise RewardlabError, with the command to install them, if packages are missing."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise RewardlabError(f"the TRL engine needs {', '.join(missing)}: pip install 'rewardlab[trl]'")
