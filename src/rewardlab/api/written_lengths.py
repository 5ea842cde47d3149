"""Rows too long for the model with what is written in them: traces, judgements, critiques, labelled steps.

A method's rollout, and its measure, say themselves what they make of a row (`api/ruler.py`), so no method declares it twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from rewardlab.api.ruler import Ruler, harmless, is_tried, run_with
from rewardlab.core import Environment, Measure, Part, Problem, Recipe, Rollout, Task
from rewardlab.engine.distributed import is_rank_zero
from rewardlab.errors import RewardlabError
from rewardlab.models.load import Policy
from rewardlab.policies.text import TextPolicy
from rewardlab.registry.playing import samples_replies
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Listed
from rewardlab.util.progress import console, unless_quick


def fit_written(task: Task, policy: Policy, config: RunConfig, recipe: Recipe) -> tuple[Task, dict[str, Any]]:
    """The task without rows whose written texts are too long for the model, and what was found, by "train" and "test".

    config.overlong says what is done: "error", or any other for leaving them out, since what a row teaches has no beginning that
    could be cut. Endless sources are not looked at, nor is what is played; a step leaves out what does not fit (`engine/overlong`).
    """
    if not isinstance(policy, TextPolicy):
        return task, {}
    found: dict[str, Any] = {}
    # second models, such as a reward model, learn from the same rows
    rollouts = [of.rollout for of in (recipe, *(learner.recipe for learner in recipe.also)) if of.rollout is not None]
    parts = [rollout for rollout in rollouts if not samples_replies(rollout) and _writes(rollout)]
    if parts and isinstance(task.train, Listed):
        train, found["train"] = _Fitter(parts, recipe, policy, config).fit(task.train.problems, "training")
        task = replace(task, train=replace(task.train, problems=train))
    if recipe.measure is not None and task.test and _writes(recipe.measure):
        test, found["test"] = _Fitter([recipe.measure], recipe, policy, config).fit(task.test, "held-out")
        task = replace(task, test=test)
    return task, {name: of for name, of in found.items() if of["rows"]}


def _writes(part: Part) -> bool:
    return is_tried(part) and not any(isinstance(x, Environment) for x in part.walk())


class _Fitter:
    """Leaves out rows that are too long with what parts of the recipe write about them."""

    def __init__(self, parts: Sequence[Rollout | Measure], recipe: Recipe, policy: TextPolicy, config: RunConfig):
        self.ruler, self.config = Ruler(policy), config
        self.parts = [harmless(part, self.ruler) for part in parts]
        self.run, self.context = run_with(self.ruler, recipe, config), policy.context

    def fit(self, problems: Sequence[Problem], which: str) -> tuple[list[Problem], dict[str, Any]]:
        """The rows that fit, and what was found.  which: names them in messages."""
        lengths = [self._longest(p) for some in unless_quick(f"measuring {which} rows", problems) for p in some]
        over = {i for i, length in enumerate(lengths) if length > self.context}
        # rows of which nothing is written are sampled for
        found = {"rows": sum(map(bool, lengths)), "longest": max(lengths, default=0), "overlong": len(over)}
        if not over:
            return list(problems), found
        first = problems[min(over)]
        said = (
            f"{len(over):,} of {len(problems):,} {which} rows are too long with what is written in them: the longest text has "
            f"{max(lengths):,} tokens, and the model's context {self.context:,}: {first.question[:80]!r}"
            f"{f' ({first.place})' if first.place else ''}"
        )
        if self.config.overlong == "error":
            raise RewardlabError(f"{said}. Give --overlong drop, which leaves them out")
        kept = [(p, length) for i, (p, length) in enumerate(zip(problems, lengths, strict=True)) if i not in over]
        if not kept:
            raise RewardlabError(f"no {which} row is left: {said}")
        if is_rank_zero():
            console.print(f"dropped: {said}", highlight=False, soft_wrap=True, markup=False)
        return [p for p, _ in kept], found | {"dropped": len(over), "longest_kept": max(length for _, length in kept)}

    def _longest(self, problem: Problem) -> int:
        """The tokens of the longest text that is written about a problem; 0 where none is before a model samples."""
        self.ruler.longest, self.ruler.asked = 0, False
        # what is right and what is wrong may be learnt from, so each text is tried as both
        for pays in (1.0, 0.0):
            self.ruler.pays, self.run.memory = pays, {}
            for part in self.parts:
                # whatever else is wrong with a row, training itself says
                with suppress(Exception):
                    part([problem], self.run)
            if not self.ruler.asked:
                break
        return self.ruler.longest
