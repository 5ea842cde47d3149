"""What TRL cannot run, and why."""

from __future__ import annotations

from typing import Any

from rewardlab.core import Recipe
from rewardlab.errors import RewardlabError


def cannot_carry(recipe: Recipe) -> str:
    """Why TRL cannot run this recipe; empty if it can."""
    if recipe.loop is not None:
        return f"its training loop is its own ({recipe.loop.name}), and TRL's trainer is one too"
    if recipe.objective is None:
        return "its policy does not learn (it has no objective), and TRL's trainer trains the policy"
    if recipe.rollout is None:
        return "it has no rollout to learn from"
    if surprised := next((learner.name for learner in recipe.also if learner.init.endswith(":surprise")), None):
        return f"its model {surprised!r} reads surprise, which the lean policy alone computes"
    return ""


def not_text(policy: Any) -> str:
    """Why TRL cannot train this policy of ours; empty if it can."""
    from rewardlab.policies.hf.policy import HFPolicy
    from rewardlab.policies.llama.policy import LlamaPolicy

    return "" if type(policy) in (HFPolicy, LlamaPolicy) else f"its policy ({type(policy).__name__}) is not a causal language model"


def refuse(recipe: Recipe, why: str) -> RewardlabError:
    return RewardlabError(f"TRL cannot carry {recipe.name or 'this recipe'}: {why}; use the embedded engine (--engine embedded)")
