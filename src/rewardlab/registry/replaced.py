"""What is left of a method whose reward is replaced by one of the user's own."""

from __future__ import annotations

from rewardlab.core import Recipe


def changes_reward_alone(recipe: Recipe) -> bool:
    """Whether a recipe differs from one that it was made from by its reward alone: with another reward, nothing of it is left.

    Fields of the update that were set last, as by a user, are settings of both.
    """
    if recipe.reward is None:
        return False
    lineage = list(recipe.lineage())
    made = [i for i, one in enumerate(lineage) if one.but(update=recipe.update, name="") == recipe.but(name="")]
    return any(
        earlier.reward not in (None, recipe.reward) and _plain(earlier, recipe) == _plain(lineage[i], recipe)
        for i in made
        for earlier in lineage[i + 1 :]
    )


def _plain(recipe: Recipe, paid_as: Recipe) -> Recipe:
    """The recipe with the reward of another, and without what trains nothing."""
    assert paid_as.reward is not None
    # a search that scores by the reward takes the other one too
    return recipe.scored_by(paid_as.reward).but(name="", measure=None)


def told_replaced(recipe: Recipe) -> str:
    """In words, what a reward of the user's own takes away from a method, and how it would stay; "" where that is nothing.

    recipe: the method's, with the reward of its own.
    """
    # what a stack lies on stays
    name = recipe.name.rpartition("+")[2]
    if changes_reward_alone(recipe):
        lost = f"{name} changes nothing but the reward, and yours takes its place, so that nothing of {name} is left"
    elif own := _of_methods(recipe):
        lost = f"your reward takes the place of the one of {recipe.name}, and with it of {' and '.join(own)}"
    else:
        return ""
    return f"{lost}. {recipe.name} pays {recipe.reward}: to keep what it adds, write your reward into that formula"


def _of_methods(recipe: Recipe) -> list[str]:
    """The parts of a recipe's reward that are in methods' own files."""
    parts = (part for part in (recipe.reward.walk() if recipe.reward else ()) if hasattr(part, "function"))
    return list(dict.fromkeys(part.name for part in parts if part.function.__module__.split(".")[:2] == ["rewardlab", "methods"]))
