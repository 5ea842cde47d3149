"""Methods on top of one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rewardlab.core import Part, Recipe
from rewardlab.errors import RewardlabError


def stack(methods: Sequence[tuple[str, Callable[..., Recipe], dict[str, Any]]]) -> Recipe:
    """Compose methods left to right; a slot that two of them replace is refused by name."""
    base: Recipe | None = None
    replaced: dict[str, str] = {}
    for name, method, settings in methods:
        made = method(base, **settings) if base is not None else method(**settings)
        for slot in _replaced_slots(base, made) if base is not None else ():
            if slot in replaced:
                raise RewardlabError(f"{replaced[slot]} and {name} both replace the {slot}; they cannot be stacked")
            replaced[slot] = name
        for slot in _settled_slots(base, made) if base is not None else ():
            replaced.setdefault(slot, name)
        base = made
    if base is None:
        raise RewardlabError("no method named")
    return base.but(name="+".join(name for name, _, _ in methods))


def _replaced_slots(before: Recipe, after: Recipe) -> list[str]:
    """Slots whose new part does not contain the old one, and learners that are gone or others."""
    old, new = before.parts(), after.parts()
    gone = [s for s, part in old.items() if s in new and new[s] != part and not _keeps(new[s], part)]
    learners = {learner.name: learner for learner in after.also}
    lost = [f"learner {x.name}" for x in before.also if learners.get(x.name) != x]
    return gone + [s for s in old if s not in new] + lost


def _settled_slots(before: Recipe, after: Recipe) -> list[str]:
    """Slots that were extended, or filled for the first time."""
    old, new = before.parts(), after.parts()
    kept = {learner.name for learner in before.also}
    added = [f"learner {x.name}" for x in after.also if x.name not in kept]
    return [s for s, part in new.items() if s not in old or (part != old[s] and _keeps(part, old[s]))] + added


def _keeps(new: Part, old: Part) -> bool:
    """Whether `new` still holds `old`: as a whole, or, for a flattened chain or sum, as its operands in order."""
    if new.contains(old):
        return True
    if type(new) is not type(old) or not old.of:
        return False
    rest = iter(new.of)
    return all(any(part == x for x in rest) for part in old.of)
