"""Answers by search and selection, without training."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile, groupby
from pathlib import Path
from typing import Any

from rewardlab.api.arguments import check_settings, named_model
from rewardlab.api.checking import undecided
from rewardlab.api.evaluated import with_interval
from rewardlab.api.inputs import (
    as_in_run,
    begin_run,
    configured,
    held_out,
    in_environment,
    policy_of,
    recipe_of,
    task_of,
)
from rewardlab.api.judges import with_judges
from rewardlab.api.named_scorers import require_scorers
from rewardlab.api.order import in_order
from rewardlab.api.prompt_lengths import fit_prompts
from rewardlab.api.sampled import check_scored, ends, tell_undecided, unscored
from rewardlab.api.selecting import check_selects
from rewardlab.core import Group, Problem, Recipe, Run, Score, Task, Trajectory, ask
from rewardlab.engine.episodes import environment_of
from rewardlab.errors import RewardlabError
from rewardlab.models.load import Policy
from rewardlab.runs.config import RunConfig
from rewardlab.runs.named import config_of_run, refuse_missing
from rewardlab.settings.domain import NAME, POSITIVE
from rewardlab.util.keeping import keeping
from rewardlab.util.progress import in_batches


@in_order
def answer(
    recipe: Recipe | str, model: str | Path | Policy | None = None, task: Task | Path | str | None = None,
    prompt: str | None = None, *,
    problems: int = 100, reward: Any = None, **settings: Any,
) -> dict[str, Any]:  # fmt: skip
    """Answer one prompt, or a task's held-out problems: sample replies, score them, and select one, as the method says.

    With neither task nor prompt, the task of the run that `model` names is answered, read as it was in the run. Of one prompt that
    is answered with tools or in another environment, `conversation` holds what was said: replies with their calls, and results.
    reward: in place of the method's own, in any form that `train` takes.
    settings: fields of RunConfig: seed, device, dtype, max_new, prompt_column ...
    """
    return answer_each(recipe, model, task, prompt, problems=problems, reward=reward, **settings)[0]


def answer_each(
    recipe: Recipe | str, model: str | Path | Policy | None = None, task: Task | Path | str | None = None,
    prompt: str | None = None, *,
    problems: int = 100, reward: Any = None, **settings: Any,
) -> tuple[dict[str, Any], dict[str, list[float]]]:  # fmt: skip
    """The table of `answer`, and what was measured on each problem by name; tokens are those of the replies."""
    POSITIVE.check("problems", problems)
    if isinstance(recipe, str):
        check_selects(recipe)
    check_settings(recipe, None, settings)
    model, recipe = named_model(model), with_judges(recipe_of(recipe, reward=reward))
    if recipe.select is None or recipe.rollout is None:
        raise RewardlabError(f"{recipe.name or 'this recipe'} trains a policy and selects no answer; majority_vote does")
    require_scorers(recipe)
    config, task = _asked(model, task, prompt, settings)
    recipe = in_environment(recipe, task)
    policy = policy_of(model, config, task)
    task, _ = fit_prompts(task, policy, config, env=environment_of(recipe))
    run = begin_run(recipe, policy, task, config)
    test_problems, tokens_before = held_out(task, problems), run.token_count.total
    groups, chosen = _selected(recipe, test_problems, run)
    # read before verifying, since verdicts are only for the table: their tokens are not part of the method's cost
    tokens = run.token_count.total - tokens_before
    model_name = config.model or task.model if model is None or isinstance(model, str) else policy.name
    about = {"method": recipe.name, "model": model_name, "replies": _replies(groups)}
    if prompt is not None:
        played = {"conversation": conversation(chosen[0])} if environment_of(recipe) is not None else {}
        return {**about, "prompt": prompt, **played, "answer": chosen[0].reply}, {}
    measured: dict[str, Any] = {"tokens": tokens}
    each = {"tokens_per_answer": [float(sum(t.written for t in g)) for g in groups]}
    if undecided(task):
        tell_undecided(task)
    else:
        each |= _right(groups, chosen, run)
        measured = {name: with_interval(each[name]) for name in ("accuracy", "pass@1", "pass@all")} | measured
    measured |= _ends(groups, run, played=environment_of(recipe) is not None)
    return {**about, "task": task.name, "n": len(test_problems), **measured}, each


def conversation(trajectory: Trajectory) -> list[dict[str, Any]]:
    """What was said in an episode after the prompt, in order: by whom ("reply" or "result"), its text, and what it was paid."""
    begun = list(dropwhile(lambda turn: turn.author is None, trajectory.turns))
    said: list[dict[str, Any]] = []
    for author, turns in groupby(begun, key=lambda turn: turn.author):
        parts = list(turns)
        paid = [turn.reward for turn in parts if turn.reward is not None]
        by = "result" if author is None else "reply"
        said.append({"by": by, "text": "".join(turn.text for turn in parts), **({"reward": sum(paid)} if paid else {})})
    return said


def _ends(groups: list[Group], run: Run, played: bool) -> dict[str, float]:
    """cut_off: the share of replies that were, where any was; and turns, the replies of an episode, where they are played."""
    cut_off, replies = ends(groups, run, played)
    turns = {"turns": replies / sum(map(len, groups))} if played else {}
    return turns | ({"cut_off": cut_off / replies} if cut_off else {})


def _replies(groups: list[Group]) -> float:
    """Replies to a problem; their mean, where a search makes more for some problems than for others."""
    counts = [len(group) for group in groups]
    return counts[0] if len(set(counts)) == 1 else sum(counts) / len(counts)


def _right(groups: list[Group], chosen: list[Trajectory], run: Run) -> dict[str, list[float]]:
    """accuracy: whether the reply that was chosen for a problem is right; pass@1: the share of its replies that are; pass@all:
    whether any of them is, which is the most that a choice among them can reach."""
    verdicts = run.verdicts(groups)
    # pass@1 from all n replies of each problem, with less variance than from one of them
    shares_right = [sum(s.value or 0.0 for s in row) / len(row) for row in verdicts]
    any_right = [float(any((s.value or 0.0) >= 1.0 for s in row)) for row in verdicts]
    # a chosen reply has its verdict already, unless the selection composed a new one
    selected_right = [float(row[0].value or 0.0) for row in run.verdicts([[t] for t in chosen])]
    return {"accuracy": selected_right, "pass@1": shares_right, "pass@all": any_right}


def _selected(recipe: Recipe, problems: Sequence[Problem], run: Run) -> tuple[list[Group], list[Trajectory]]:
    """The replies to each problem, and the one that is selected."""
    assert recipe.rollout is not None
    assert recipe.select is not None
    groups: list[Group] = []
    chosen: list[Trajectory] = []
    for batch in in_batches("answering", problems):
        with keeping(run.policy):
            sampled = recipe.rollout(batch, run)
        # a selection that counts answers, such as the majority vote, reads no scores
        scores = recipe.reward(sampled, run) if recipe.reward else [[Score(None)] * len(group) for group in sampled]
        if recipe.reward and not groups:
            # of the first batch: at once, and once
            check_scored(recipe.reward, unscored(scores), run)
        groups += sampled
        chosen += [recipe.select(group, row, run) for group, row in zip(sampled, scores, strict=True)]
    return groups, chosen


def _asked(
    model: str | Policy | None, task: Task | Path | str | None, prompt: str | None, settings: dict[str, Any]
) -> tuple[RunConfig, Task]:
    """What is to be answered: one prompt, the task, or the task of the run that `model` names."""
    if prompt is not None:
        NAME.check("prompt", prompt)
    refuse_missing(model)
    document = config_of_run(model)
    if prompt is None:
        if task is None and document is None and not settings.get("test"):
            raise RewardlabError("nothing to answer: give a task, a file of problems (test), or a prompt")
        config, task = as_in_run(model, task, settings)
        return config, task_of(task, config)
    NAME.check("prompt", prompt)
    if document is not None:
        was = RunConfig.from_json(document)
        settings = {"system": was.system, "max_new": was.max_new, "overlong": was.overlong, **settings}
    config = configured(None, model, None, settings)
    return config, Task("prompt", (), (ask(prompt, system=config.system),), "exact_match")  # its verifier is never called
