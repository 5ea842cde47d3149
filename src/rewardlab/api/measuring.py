"""The held-out measure of a run, which decides its best checkpoint."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.api.changes import check_base
from rewardlab.api.checking import undecided, without_answers
from rewardlab.api.inputs import begin_run, policy_of, task_of
from rewardlab.core import Measure, Recipe, Rollout, Task
from rewardlab.data.files import check_source
from rewardlab.data.whole_pairs import SIDES
from rewardlab.engine import checkpoint
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.evals.episode_curve import episode_curve
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.evals.length import entropy_of_right, length_by_verdict, length_of_right
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.pairs import pairs_preferred
from rewardlab.evals.passk import accuracy, coverage
from rewardlab.evals.watched import learnt_part
from rewardlab.evals.watched import watched as watched_reward
from rewardlab.rewards.monte_carlo import binary_search_steps, monte_carlo_steps
from rewardlab.rewards.operator import across_groups
from rewardlab.rewards.principled import principled_turns
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct, detail
from rewardlab.rewards.user.external import call_of
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.interactive import interactive
from rewardlab.runs.config import RunConfig
from rewardlab.runs.named import read_config
from rewardlab.runs.record import KEPT
from rewardlab.settings.options import is_relative

BY_VERIFIER = (accuracy, coverage, episode_accuracy, episode_curve, length_of_right, length_by_verdict, entropy_of_right)
"""Measures of what the task's verifier finds right."""


def measured(recipe: Recipe, task: Task) -> Recipe:
    """The recipe with the measure that decides its best checkpoint.

    A measure that does not ask the task's verifier stays. In place of one that does, or of none:
    a reward of one's own (`is_own`) is measured by itself, with the verifier's accuracy beside it, unless it compares replies;
    otherwise the verifier's accuracy is the measure. Without answers to verify by, a policy that learns from pairs is measured by
    how well it tells those apart that are held out, and any other by nothing.
    """
    if recipe.measure is not None and not any(recipe.measure.function is part.function for part in BY_VERIFIER):
        return recipe
    if isinstance(recipe.reward, Reward) and is_own(recipe, task) and not _compares(recipe.reward):
        reward = across_groups(recipe.reward)
        return recipe.but(measure=own_reward(reward=reward, rollout=_as_in_training(recipe, reward)))
    # the end of an episode may be judged without an answer: the state of a folder, a game that was won
    by_its_end = recipe.measure is not None and recipe.measure.function in (episode_accuracy.function, episode_curve.function)
    if undecided(task) or (without_answers(task) and not by_its_end):
        return recipe.but(measure=pairs_preferred(beta=_beta(recipe)) if _learns_from_pairs(recipe, task) else None)
    return recipe if recipe.measure else recipe.but(measure=accuracy())


def watched(recipe: Recipe, benchmarks: Sequence[str]) -> Recipe:
    """The recipe with a measure that adds these benchmarks of rewards to its own. Raises RewardlabError where one is unknown, or
    its data is not at hand."""
    if not benchmarks:
        return recipe
    from rewardlab.evals.on_benchmarks import on_benchmarks
    from rewardlab.scoreboard.asked import benchmark_of

    for name in benchmarks:
        benchmark_of(name).files()
    return recipe.but(measure=on_benchmarks(inner=recipe.measure, names=tuple(benchmarks)))


def watching(recipe: Recipe, watch: str | bool | None) -> Recipe:
    """The recipe with a measure that also watches what pays the policy (`evals/watched.py`). Raises RewardlabError where nothing
    pays it, or where a file to watch it with is not there.

    watch: True: on replies of the policy; a path: on the labelled replies of a file.
    """
    if watch is None or watch is False:
        return recipe
    if not isinstance(recipe.reward, Reward):
        raise RewardlabError(f"{recipe.name or 'the recipe'} has no reward that could be watched: leave out --watch")
    file = "" if watch is True else str(Path(watch).expanduser().absolute())
    if file:
        check_source(file, "--watch")
    return recipe.but(measure=watched_reward(inner=recipe.measure, reward=learnt_part(recipe.reward), file=file))


def is_own(recipe: Recipe, task: Task) -> bool:
    """Whether a policy is trained for a reward that asks the task neither for its verifier nor for a reward of its world.

    So `correct() + 0.1 * length_penalty()` is not one: it verifies answers, and accuracy says best what it is for.
    """
    if not isinstance(recipe.reward, Reward) or not recipe.learns:
        return False
    verifier = registry.verifier(task.verifier)
    # continuations that the verifier judges, and what an environment pays for reaching its goal
    indirectly = (monte_carlo_steps().function, binary_search_steps().function, principled_turns(principles=correct()).function)
    asked = (correct().function, detail(name="").function, verifier.function, *indirectly)
    functions = [part.function for part in recipe.reward.walk() if hasattr(part, "function")]
    return not any(
        function in asked or function.__module__.startswith(("rewardlab.tasks.", "rewardlab.worlds.")) for function in functions
    )


def _learns_from_pairs(recipe: Recipe, task: Task) -> bool:
    """Whether a policy learns to prefer replies to others, and all that is held out are pairs."""
    learns = recipe.objective is not None and recipe.update.loss_kind == "preference"
    return learns and bool(task.test) and all(p.meta.get(side) for p in task.test for side in SIDES)


def tells_pairs_apart(measure: Measure) -> bool:
    """Whether a measure is that of a policy that learns from pairs, without answers."""
    return measure.function is pairs_preferred.function


def _beta(recipe: Recipe) -> float | None:
    """What the recipe's loss on pairs multiplies the difference of two replies by; None where it does not say."""
    parts = recipe.objective.walk() if recipe.objective is not None else ()
    return next((float(part.settings["beta"]) for part in parts if part.settings.get("beta") is not None), None)


def _compares(reward: Reward) -> bool:
    """Whether the replies to a problem are compared by a judge: what they get is one half on average, however good they are."""
    return any(part.name == "judge" and part.settings["kind"] == "pairwise" for part in reward.walk())


def _as_in_training(recipe: Recipe, reward: Reward) -> Rollout:
    """How held-out problems are sampled: as training samples, but once a problem, or a whole group if the reward needs it."""
    calls = [call_of(part) for part in reward.walk() if hasattr(part, "function")]
    by_group = any(call and call.grouped for call in calls) or is_relative(reward)
    n = recipe.rows_per_problem if by_group else 1
    sampler: Any = recipe.rollout.innermost if recipe.rollout else independent()
    if sampler.function in (independent.function, interactive.function):
        return sampler.but(n=n)
    # trees and recordings are made for training: only how they sample is taken over
    known = independent().settings
    return independent(**{k: v for k, v in sampler.settings.items() if k in known} | {"n": n})


# ----------------------------------------------------------------------------------------------------------------------
#
# Measure a finished run by another measure, before and after its training, from the weights that its folder keeps.

Numbers = dict[str, float]


def remeasure(folder: Path, measure: Measure, problems: int | None = None) -> tuple[Numbers, Numbers]:
    """What `measure` finds on held-out problems before and after the training of the run in `folder`.

    problems: how many; None: as many as the run was evaluated on.
    Raises RewardlabError for a folder without a run, or without checkpoints, and for a run that was started with objects made in
    Python, which cannot be loaded again.
    """
    ops = begun_again(folder, "be measured again", measure, problems)
    before = ops.evaluate()
    checkpoint.load_weights(folder / "checkpoints", ops.learners)
    return before, ops.evaluate()


def begun_again(folder: Path, what: str, measure: Measure | None = None, problems: int | None = None) -> Ops:
    """The run in `folder` as it was before its first step, with another measure. Raises RewardlabError, that it cannot `what`."""
    document = read_config(folder)
    config = RunConfig.from_json(document)
    if not document.get("source") or not checkpoint.checkpoints(folder / "checkpoints"):
        raise RewardlabError(f"{folder} cannot {what}: it keeps no checkpoint, or was started with objects made in Python")
    config = config.but(eval_problems=problems or config.eval_problems)
    recipe = registry.load_recipe(document["recipe"])
    recipe = recipe.but(measure=measure) if measure else recipe
    task = task_of(None, config)
    policy = policy_of(None, config, task)
    check_base(folder, document, policy)
    return Ops(recipe, begin_run(recipe, policy, task, config), task, config)


def keep_weights(folder: Path) -> None:
    """Remove from the folder of a finished run the weights that `remeasure` does not need: models and optimisers."""
    checkpoint.keep_weights(folder / "checkpoints")
    for model in ("best", "model", KEPT):
        shutil.rmtree(folder / model, ignore_errors=True)
