"""Old names of settings: saved ones are read, and errors for written ones give the present name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from rewardlab.errors import RewardlabError, unknown

RENAMED_SETTINGS = {
    "of": ("inner",),
    "inner": ("wraps",),
    "faster": ("sft_lr_scale", "head_lr_scale"),
    "most": (
        "max_n", "max_tokens", "max_steps", "max_calls", "max_masks", "max_roles", "max_words", "max_shapes", "max_groups",
        "max_per_kind", "max_kl", "max_weight", "max_ratio", "max_speedup", "max_score", "max_reward", "max_penalty",
        "max_attribution",
    ),
    "least": ("min_tokens", "min_calls", "min_masks", "min_weight", "min_score"),
}  # fmt: skip
"""Old name of a setting, or of a decorator's option, to its present ones: of these, every function has one."""
FIRST = {now: old for old, names in RENAMED_SETTINGS.items() for now in names}
"""Present name to the first one, by which code and claims are compared with their records."""


def present_name(name: str, known: Collection[str]) -> str:
    """The present name of a setting of a function that has the settings `known`; the name itself if it has no other."""
    if name in known:
        return name
    return next((now for now in RENAMED_SETTINGS.get(name, ()) if now in known), name)


def unknown_setting(kind: str, name: str, known: Iterable[str]) -> RewardlabError:
    """The error for an unknown setting. It tells the present name of one that was renamed, else the nearest names."""
    known = set(known)
    now = present_name(name, known)
    return unknown(kind, name, known) if now == name else RewardlabError(f"unknown {kind} {name!r}; it is called {now} now")


OPTION = re.compile(r"(?<=[:,])\w+(?==)")
"""The name of an option in the text of a task, `masked:max_masks=2`."""


def with_first_names(value: Any) -> Any:
    """Plain data, such as a claim, with the first names of settings as keys, and in the texts of tasks."""
    if isinstance(value, list):
        return [with_first_names(x) for x in value]
    if isinstance(value, dict):
        return {FIRST.get(k, k): with_first_names(v) for k, v in value.items()}
    return OPTION.sub(lambda name: FIRST.get(name[0], name[0]), value) if isinstance(value, str) else value


def with_first_names_in_formula(formula: str) -> str:
    """The formula of a recipe, as in `credit_weighted(inner=dpo_loss())`, with the first of all names that a setting has had."""

    def first(name: re.Match[str]) -> str:
        found = name[0]
        # a name that was given up may have been taken for another setting since
        while found in FIRST:
            found = FIRST[found]
        return found

    return re.sub(r"\b\w+(?==)", first, formula)
