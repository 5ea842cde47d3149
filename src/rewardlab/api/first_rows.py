"""Whether an episode can be played and paid on the rows of a task: found out on the first of them, before a model is loaded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from rewardlab import registry
from rewardlab.api.ruler import Ruler, harmless, is_tried, run_with
from rewardlab.clients.retriever import SearchFailed, is_address, retriever_at
from rewardlab.core import Environment, Part, Problem, Recipe, Run, Scores, Task, Trajectory, Turn
from rewardlab.core.part import Expression
from rewardlab.engine.episodes import JUDGE_PAY
from rewardlab.envs.external import from_file
from rewardlab.errors import RewardlabError, TooLong
from rewardlab.models.load import Policy
from rewardlab.policies.text import TextPolicy
from rewardlab.registry.names import ASK_VERIFIER
from rewardlab.rewards.returned import is_ours
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Listed
from rewardlab.util.progress import console

ROWS = 8
"""Problems that are looked at."""


def check_episodes(recipe: Recipe, task: Task, policy: Policy, config: RunConfig) -> None:
    """Raise RewardlabError where a method and an environment cannot work together on these rows.

    So where the rollout or the measure refuses each of the first problems, or a reward gives none of them a verdict when the reply
    is the gold answer and the task's verifier finds it right. Only what plays, or is given a task that brings an environment, is
    looked at; where a model or the environment would have to act, nothing is known.
    """
    plays = recipe.rollout is not None and any(isinstance(part, Environment) for part in recipe.rollout.walk())
    if not isinstance(policy, TextPolicy) or not (plays or task.environment):
        return
    who = recipe.name or "the recipe"
    _check_pays(recipe, task, who)
    ruler = Ruler(policy)
    problems, run = list(_first(task)), run_with(ruler, recipe, config)
    for part in filter(None, (recipe.rollout, recipe.measure)):
        if is_tried(part) and (why := _refused(harmless(part, ruler), problems, run)):
            raise RewardlabError(f"{who} cannot learn from {task.name}: {why}")
    for reward in _terms(recipe.reward) if recipe.reward is not None and not recipe.rewords else ():
        if is_tried(reward) and (why := _unjudged(harmless(reward), problems, run)):
            raise RewardlabError(f"{who} cannot learn from {task.name}, which its reward {reward} does not judge: {why}")


def check_engines(*slots: Part) -> None:
    """Raise RewardlabError where a search engine that these parts name by its address does not answer a search.

    It is asked before a model is loaded, as an OpenEnv server is, which the task asks.
    """
    parts = [part for slot in slots for part in slot.walk()]
    for address in dict.fromkeys(corpus for part in parts if is_address(corpus := part.settings.get("corpus"))):
        try:
            retriever_at(address).search(["rewardlab"])
        except SearchFailed as problem:
            raise RewardlabError(
                f"{problem}. Start it (rewardlab serve --corpus docs.jsonl --port 8000), and give its address "
                "(--corpus http://HOST:8000/retrieve)"
            ) from None


def check_start(recipe: Recipe, task: Task) -> None:
    """Raise RewardlabError where an environment in a user's file cannot begin the first problem; say where rows differ in what it
    plays, and not in their prompts.

    It begins each of them before training, for the length of its first message; it is asked nothing yet, since an answer may do
    something elsewhere.
    """
    parts = recipe.rollout.walk() if recipe.rollout is not None else ()
    own = [part for part in parts if isinstance(part, Environment) and getattr(part, "function", None) is from_file.function]
    if own and (problem := next(_first(task), None)) is not None:
        own[0].start(problem, 0)
        _tell_alike(task)


def _tell_alike(task: Task) -> None:
    """Say that rows with equal prompts are one problem wherever problems are told apart, though an environment may play each."""
    if not isinstance(task.train, Listed):
        return
    differ = defaultdict[str, set[str]](set)
    for p in (*task.train.problems, *task.test):
        differ[p.key].add(repr((p.answer, sorted(p.meta.items()))))
    if alike := sum(len(rows) for rows in differ.values() if len(rows) > 1):
        console.print(
            f"warning: {alike:,} rows of {task.name} have the prompt of another row and differ in their columns alone: they are "
            "one problem where some are held out, remembered or resumed. Let the prompt say which it is, such as: Game 17.",
            highlight=False, soft_wrap=True, markup=False,
        )  # fmt: skip


def _check_pays(recipe: Recipe, task: Task, who: str) -> None:
    """Refuse another environment than the task's own where the task is judged by what that one pays."""
    if task.environment is None or task.verifier not in JUDGE_PAY or recipe.rollout is None or recipe.reward is None:
        return
    own = registry.part("environment", task.environment)
    # one of the user's may pay, too, and one that wraps another is asked through it
    others = [
        part for part in recipe.rollout.walk()
        if isinstance(part, Environment) and not part.of and is_ours(part.function) and part.function is not from_file.function
        and part.function.__module__ != own.function.__module__
    ]  # fmt: skip
    if others and any(part.name in ASK_VERIFIER for part in recipe.reward.walk()):
        raise RewardlabError(
            f"{task.name} is judged by what its own environment, {own}, pays for the state of an episode, and {who} plays "
            f"{others[0]}, which pays nothing: give another task, or a method that plays any environment (rewardlab train grpo "
            f"--task {task.name})"
        )


def _first(task: Task) -> Iterator[Problem]:
    try:
        size = min(len(task.train), ROWS)  # type: ignore[arg-type]
    except TypeError:
        size = ROWS
    return (task.train[i] for i in range(size))


def _refused(part: Any, problems: list[Problem], run: Run) -> str:
    """Why the part refuses the first problem, if it refuses all of them; "" where it does not, or nothing is known."""
    whys = []
    for problem in problems:
        try:
            part([problem], replace(run, memory={}))
        except TooLong:
            return ""
        except RewardlabError as why:
            whys.append(str(why))
        except Exception:
            return ""
        else:
            return ""
    return whys[0] if whys else ""


def _unjudged(reward: Any, problems: list[Problem], run: Run) -> str:
    """Why a reward has no verdict on any of the problems; "" where it has one, or nothing is known."""
    groups = [[gold(problem), gold(problem)] for problem in problems]
    try:
        scores: Scores = reward(groups, replace(run, memory={}))
    except Exception:
        return ""
    flat = [score for row in scores for score in row]
    return next((s.why for s in flat if s.why), "") if flat and all(s.missing for s in flat) else ""


def _terms(reward: Part) -> list[Part]:
    """The reward, and the operands of its sums and products, each of which must have a verdict."""
    operands = [term for part in reward.of for term in _terms(part)] if isinstance(reward, Expression) else []
    return [reward, *operands]


def gold(problem: Problem) -> Trajectory:
    """The gold answer, as a reply of one turn."""
    text = str(problem.meta.get("solution") or problem.answer or "")
    return Trajectory(problem, (Turn("policy", np.zeros(1, np.int64), text=text),), "end")
