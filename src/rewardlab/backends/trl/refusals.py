"""What TRL cannot run, and why."""

from __future__ import annotations

from typing import Any

from rewardlab.core import Recipe
from rewardlab.engine.distributed import is_rank_zero
from rewardlab.errors import RewardlabError
from rewardlab.util.progress import console


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


def warn_no_refill(recipe: Recipe) -> None:
    """Say so where a rollout that would sample further problems cannot: its steps are smaller than with the embedded engine."""
    refilling = [p for p in recipe.rollout.walk() if p.settings.get("attempts", 1) > 1] if recipe.rollout else []
    if refilling and is_rank_zero():
        console.print(
            f"TRL fixes the problems of a step before training: {refilling[0].name} does not sample further ones (attempts=1), "
            "and a step learns from the groups that are left",
            highlight=False,
        )


def refuse(recipe: Recipe, why: str) -> RewardlabError:
    return RewardlabError(f"TRL cannot carry {recipe.name or 'this recipe'}: {why}; use the embedded engine (--engine embedded)")
