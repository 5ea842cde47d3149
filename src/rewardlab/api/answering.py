"""Answers by search and selection, without training."""

from __future__ import annotations

from typing import Any

from rewardlab.core import Recipe, Score, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.models.load import Policy
from rewardlab.runs.config import POSITIVE
from rewardlab.util.progress import in_batches

from .evaluation import with_interval
from .inputs import begin_run, configured, held_out, policy_of, recipe_of, task_of


def answer(
    recipe: Recipe | str, model: str | Policy | None = None, task: Task | str | None = None, prompt: str | None = None, *,
    problems: int = 100, **settings: Any,
) -> dict[str, Any]:  # fmt: skip
    """Answer one prompt, or a task's held-out problems, by a method's rollout, reward and selection.

    settings: fields of RunConfig: seed, device, dtype, max_new, prompt_column ...
    """
    POSITIVE.check("problems", problems)
    recipe, config = recipe_of(recipe), configured(None, model, task, settings)
    if recipe.select is None or recipe.rollout is None:
        raise RewardlabError(
            f"{recipe.name or 'this recipe'} trains a policy and selects no answer; best_of_n and majority_vote do"
        )
    if task is None and prompt is None:
        raise RewardlabError("nothing to answer: give a task or a prompt")
    alone = Task("prompt", (), (ask(prompt or ""),), "exact_match")
    task = alone if task is None else task_of(task, config)
    policy = policy_of(model, config, task)
    run = begin_run(recipe, policy, task, config)
    groups, chosen = [], []
    tested, before = held_out(task, problems), run.token_count.total
    for batch in in_batches("answering", tested):
        sampled = recipe.rollout(batch, run)
        scores = recipe.reward(sampled, run) if recipe.reward else [[Score(None)] * len(group) for group in sampled]
        groups += sampled
        chosen += [recipe.select(group, row, run) for group, row in zip(sampled, scores, strict=True)]
    # verdicts are for the table alone: what they cost is not counted
    tokens = run.token_count.total - before
    name = config.model or task.model if model is None or isinstance(model, str) else policy.name
    about = {"method": recipe.name, "model": name, "replies": len(groups[0])}
    if prompt is not None:
        return {**about, "prompt": prompt, "answer": chosen[0].reply}
    verdicts = run.verify([[t] for t in chosen], run)
    single = [sum(s.value or 0.0 for s in row) / len(row) for row in run.verify(groups, run)]
    right = [float(row[0].value or 0.0) for row in verdicts]
    measured = {"accuracy": with_interval(right), "pass@1": with_interval(single), "tokens": tokens}
    return {**about, "task": task.name, "n": len(tested), **measured}
