"""rewardlab on TRL: a recipe as a GRPOTrainer.

    from rewardlab.engines import trl
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

from rewardlab.core import Problem, Recipe, Task
from rewardlab.errors import RewardlabError

PACKAGES = ("trl", "accelerate", "datasets")


def trainer(recipe: Recipe, model: Any, problems: Task | Sequence[Problem], **settings: Any) -> Any:
    """A trainer of TRL that runs `recipe`; see `training.make` for the settings. Call its `train()`."""
    require()
    from .training import make

    return make(recipe, model, problems, **settings)


def train(*args: Any, **settings: Any) -> Any:
    """Train through TRL and write a run folder; see `folder.train`."""
    require()
    from .folder import train as into_folder

    return into_folder(*args, **settings)


def versions() -> dict[str, str]:
    """The versions of the packages that results depend on besides rewardlab's own."""
    require()
    return {name: metadata.version(name) for name in PACKAGES}


def cannot_carry(recipe: Recipe) -> str:
    """Why TRL cannot run this recipe; empty if it can."""
    if recipe.loop is not None:
        return f"it has a training loop of its own ({recipe.loop.name}), and so has TRL's trainer"
    if recipe.objective is None:
        return "its policy does not learn (it has no objective), and TRL's trainer trains the policy"
    if recipe.rollout is None:
        return "it has no rollout to learn from"
    return ""


def not_text(policy: Any) -> str:
    """Why TRL cannot train this policy of ours; empty if it can."""
    from rewardlab.policies.hf.policy import HFPolicy
    from rewardlab.policies.llama.policy import LlamaPolicy

    return "" if type(policy) in (HFPolicy, LlamaPolicy) else f"its policy ({type(policy).__name__}) is not a causal language model"


def refuse(recipe: Recipe, why: str) -> RewardlabError:
    return RewardlabError(f"TRL cannot carry {recipe.name or 'this recipe'}: {why}; use the embedded engine (--engine embedded)")


def require() -> None:
    """Raise RewardlabError, with the command to install them, if packages are missing."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise RewardlabError(f"the TRL engine needs {', '.join(missing)}: pip install 'rewardlab[trl]'")
