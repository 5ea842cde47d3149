"""What `rewardlab show` shows of a method or a stack. The method is imported and its recipe built, so this needs torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from rewardlab.core import Recipe, Update
from rewardlab.core.recipe import SLOTS
from rewardlab.errors import RewardlabError
from rewardlab.registry import build
from rewardlab.registry.catalogue import data_of, row
from rewardlab.registry.describe import COMPUTED, baseline
from rewardlab.registry.find import claim_of, module_of, names_in, parameters
from rewardlab.registry.names import PLAYED
from rewardlab.registry.playing import samples_replies
from rewardlab.registry.settings import Parameter


def details(name: str) -> dict[str, Any]:
    """The row of a method, with its formula, its parameters, and how each slot differs from the baseline's.

    A stack (`grpo+hapo`) is compared with the first of its methods, and its `methods` are their details.
    """
    return _stack_details(name) if "+" in name else _method_details(name)


def changes(before: Recipe, after: Recipe) -> dict[str, list[str | None]]:
    """Slot by slot, then field by field of the update, what differs: [before, after], None where there is nothing."""
    old, new = _slots(before), _slots(after)
    return {k: [old.get(k), new.get(k)] for k in old | new if old.get(k) != new.get(k)}


def _method_details(name: str) -> dict[str, Any]:
    entry = row(name)
    recipe, module = build(name), module_of(name)
    if entry["claim"] == COMPUTED:
        # the module is imported here anyway, so a computed claim can be read
        claim = claim_of(name)
        entry["claim"] = claim.says
        entry["baseline"] = baseline(entry["name"], vars(module), claim.versus, entry["baseline"])
    baseline_recipe = _baseline(entry)
    return {
        **entry,
        **_rows_of(name, recipe),
        "formula": str(recipe),
        "changes": changes(baseline_recipe, recipe) if baseline_recipe else {},
        "parameters": plain_parameters(parameters(name)),
        "episodes": _episodes(name, recipe),
    }


def _episodes(name: str, recipe: Recipe) -> dict[str, str]:
    """Flags by which an environment answers the replies, and what each is; none where the method plays none."""
    own = {p.flag for p in parameters(name)}
    told = {f"--{setting}": says for setting, says in PLAYED.items()}
    if "--env" in own:
        # how long its episodes are, it says itself
        return {flag: says for flag, says in told.items() if flag != "--turns"}
    return told if recipe.rollout is not None and samples_replies(recipe.rollout) else {}


def _rows_of(name: str, recipe: Recipe) -> dict[str, Any]:
    """The rows that it reads, and the command that runs it on them."""
    data = data_of(name)
    return (
        {"data": data.to_json(), "command": data.command(name, "train" if recipe.learns else "answer")} if data else {"data": None}
    )


def _baseline(entry: Mapping[str, Any]) -> Recipe | None:
    """The recipe that a method is compared with. Raises RewardlabError, naming the method's file, for one that does not exist."""
    if not entry["baseline"]:
        return None
    try:
        return build(entry["baseline"])
    except RewardlabError as e:
        raise RewardlabError(f"{entry['path']}, the claim's versus or the baseline: {e}") from e


def _stack_details(name: str) -> dict[str, Any]:
    methods = [_method_details(part) for part in names_in(name)]
    recipe, first = build(name), methods[0]["name"]
    return {
        "name": recipe.name,
        "kind": "stack",
        "idea": "\n".join(f"{method['name']}: {method['idea']}" for method in methods),
        "baseline": first,
        **_rows_of(name, recipe),
        "formula": str(recipe),
        "changes": changes(build(first), recipe),
        "parameters": plain_parameters(parameters(name)),
        "episodes": _episodes(name, recipe),
        "methods": methods,
    }


def plain_parameters(parameters: Sequence[Parameter]) -> list[list[Any]]:
    """Parameters as JSON holds them."""
    scalar = (str, int, float, bool)
    return [
        [p.flag, p.type, p.default if isinstance(p.default, scalar) else str(p.default), p.method, p.values] for p in parameters
    ]


def _slots(recipe: Recipe) -> dict[str, str | None]:
    filled = {slot: str(part) for slot, part in recipe.parts().items()}
    empty: dict[str, str | None] = dict.fromkeys(SLOTS)
    update = {f.name: _of_update(recipe.update, f.name) for f in fields(Update) if f.name != "loss_kind"}
    return empty | filled | update | {f"also {learner.name}": str(learner.recipe) for learner in recipe.also}


def _of_update(update: Update, name: str) -> str:
    """A field of the update, in words where it has no number yet."""
    value = getattr(update, name)
    if value is None:
        return f"what suits the model, for {update.loss_kind}" if name == "lr" else ""
    return f"{value:g}"
