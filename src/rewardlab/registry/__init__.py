"""Find methods, parts and tasks by name, and describe them for `list` and `show`. All is read from files: no list to edit.

A method's file makes `claim = Claim(...)`, of how good a policy or an answer becomes, or `check = Check(...)`, of what its
mechanism does, or neither: `claim = None`. Words that it may state beside them:

    kind = "study"        what it is: "method" (a way to train or to answer; the default), "reward-model", "benchmark" (of rewards
                          where the file makes a `benchmark`, and then on the scoreboard; else of environments or searches, as a
                          study), "analysis" or "study" (a table, no training), "data", "survey", "infrastructure" (the same
                          learning, faster), "answer" (search at test time, no training). It is shown, and changes nothing else
    baseline = "grpo"     the method it is compared with in `show` and docs/methods.md; None: a starting point. Without it, the
                          method that its claim runs against, unless that is the method itself under other settings; else the
                          method that its function builds on (`base = base or grpo()`)
    fidelity = "core"     how much of the published method it is: "whole"; "core", its mechanism; or "reading", ours of a text that
                          leaves the formula open. Without it: not yet read against the paper
    data = Data(...)      the columns that it reads of the user's rows, and template rows (`rewardlab.data.columns`)
    left_out = "..."      what of the published method it leaves out, in one sentence; needed unless it is the whole
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rewardlab.errors import RewardlabError
from rewardlab.registry.catalogue import data_of, rows
from rewardlab.registry.find import (
    PACKAGE,
    beneath,
    claim_of,
    file_of,
    method,
    method_roots,
    methods,
    module_of,
    names_in,
    parameters,
    spell,
    stacked,
)
from rewardlab.registry.named_tasks import endless, is_elsewhere, parse_options, parse_value, task, task_files, tasks
from rewardlab.registry.parts import load_part, load_recipe, part, verifiers

if TYPE_CHECKING:
    from rewardlab.core import Recipe

__all__ = [
    "PACKAGE", "build", "claim_of", "data_of", "endless", "file_of", "is_elsewhere", "load_part", "load_recipe", "method",
    "method_roots", "methods", "module_of", "parameters", "parse_options", "parse_value", "part", "rows", "spell", "task",
    "task_files", "tasks", "verifier", "verifiers", "with_settings",
]  # fmt: skip


def verifier(name: str) -> Any:
    """The verifier of this name, as a task states it; a formula, a function of one's own (FILE.py:NAME), or a served model."""
    # only on demand: it imports the parts of rewards
    from rewardlab.registry.formula import read_verifier

    return read_verifier(name)


def build(name: str, settings: Mapping[str, Any] | None = None, **by_name: Any) -> Recipe:
    """The recipe of a method, or of several stacked (`grpo+hapo`), under these settings.

    A setting goes to the method that takes it; `hapo.weight` names the method; fields of `Update` (lr, problems, ...)
    go to the recipe. A text for a setting that is a reward or an environment names one, as on the command line ("mine.py:judge",
    "correct").
    Raises RewardlabError for an unknown name, and for a setting that two methods take.
    """
    from rewardlab.registry.playing import environment_in, noted, played
    from rewardlab.registry.settings import compose, with_base

    if not isinstance(name, str):
        raise RewardlabError(f'build takes the name of a method, build("grpo"), not {name!r}')
    if by_name:
        raise RewardlabError(f"settings are given in a dict: build({name!r}, {by_name!r})")
    if settings is not None and not isinstance(settings, Mapping):
        raise RewardlabError(f'settings must be a dict, such as {{"n": 8}}, not {settings!r}')
    given = settings or {}
    methods = with_base(stacked(name), beneath(name), given)
    functions = [function for _, function in methods]
    if not all(isinstance(value, bool | int | float | None) for value in given.values()):
        from rewardlab.registry.formula import with_parts

        given = with_parts(functions, given)
    settings, episodes = environment_in(given, functions)
    recipe = compose(methods, settings).but(name="+".join(map(spell, names_in(name))))
    return noted(played(recipe, **episodes) if episodes else recipe, given, episodes)


def with_settings(recipe: Recipe, settings: Mapping[str, Any]) -> Recipe:
    """A recipe that was made in Python under settings: fields of `Update`, and what answers its replies (env, tools, corpus and
    turns)."""
    from rewardlab.registry.formula import with_parts
    from rewardlab.registry.playing import environment_in, noted, played

    rest, episodes = environment_in(with_parts([], settings), [])
    made = recipe.but(**rest)
    return noted(played(made, **episodes), settings, episodes) if episodes else made
