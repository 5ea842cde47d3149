"""How a method is made short for tests: one rule for all, by the names of the settings of its parts. What users get stays."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from rewardlab.core import Part, Recipe

MOST = {
    # pairs, problems and steps that second models, filters and selections take before the policy's first step
    **dict.fromkeys(
        ("pairs", "utterances", "pool", "questions", "tests", "graphs", "learning", "negatives", "steps", "sae_steps"), 4
    ),
    # tokens that judges, critics and writers may write, and those of a budget
    **dict.fromkeys(("max_new", "max_critique", "max_validation", "tokens"), 16),
    # models and replies that vote
    "votes": 2,
}
"""Settings that say how much is done, and the most of it that a test needs."""
ALL = ("pairs",)
"""Those of which None means all that there are."""


def shrunk(recipe: Recipe) -> Recipe:
    """The recipe with no more of anything in `MOST`, in all of its parts and in those of its second learners."""
    also = tuple(replace(x, recipe=shrunk(x.recipe), problems=_less(x.problems)) for x in recipe.also)
    return recipe.but(also=also, **{slot: _less(part) for slot, part in recipe.parts().items()})


def _less(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_less, value))
    if isinstance(value, dict):
        return {key: _less(of) for key, of in value.items()}
    if not isinstance(value, Part):
        return value
    found = copy.copy(value)
    # operands of expressions and of operators
    for name in ("_of", "operands"):
        if name in vars(found):
            setattr(found, name, _less(getattr(found, name)))
    settings = {key: _least(key, of) if key in MOST else _less(of) for key, of in value.settings.items()}
    changed = {key: of for key, of in settings.items() if of != value.settings[key]}
    return found.but(**changed) if changed else found


def _least(key: str, of: Any) -> Any:
    return MOST[key] if (of is None and key in ALL) or (isinstance(of, int) and of > MOST[key]) else of
