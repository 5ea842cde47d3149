"""rewardlab on verl: a recipe as the files and functions that verl 0.9.1 takes.

    rewardlab export-recipe grpo --engine verl --task gsm8k --out DIR
    bash DIR/run.sh actor_rollout_ref.model.path=MODEL trainer.n_gpus_per_node=8

verl does sampling, weights, processes and its own loop. The recipe's reward is a reward manager there, its credit an advantage
estimator, its objective a policy loss; weights of tokens, KL, entropy and a critic are verl's own, by its configuration.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Any

from rewardlab.backends.verl.hooks import register
from rewardlab.backends.verl.refusals import cannot_carry
from rewardlab.backends.verl.rewards import manager
from rewardlab.backends.verl.settings import by_verl
from rewardlab.core import Recipe
from rewardlab.rewards.reward import Reward
from rewardlab.util import extras

__all__ = ["by_verl", "cannot_carry", "install", "require", "versions", "write"]


def install(recipe: Recipe, verify: Reward | None = None, max_new: int = 0) -> type:
    """Register the recipe's credit and loss in verl, in this process; returns the class of its reward manager.

    verify: the task's verifier.  max_new: the most tokens of a reply.
    """
    register(recipe, max_new=max_new)
    return manager(recipe, verify, max_new)


def write(recipe: Recipe, out: Path, **settings: Any) -> dict[str, Any]:
    """Write a recipe as the files that verl takes; see `writing.write`. Needs no verl."""
    from rewardlab.backends.verl.writing import write as into_folder

    return into_folder(recipe, out, **settings)


def require() -> None:
    """Raise RewardlabError, with what to install, if verl is missing."""
    extras.require("verl", "verl", "tensordict", "ray", what="the verl engine")


def versions() -> dict[str, str]:
    """The versions of the packages that results depend on besides rewardlab's own."""
    require()
    return {name: metadata.version(name) for name in ("verl", "tensordict", "ray")}
