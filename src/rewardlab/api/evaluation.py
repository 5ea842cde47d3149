"""pass@k of a model on held-out problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rewardlab.core import Group, Recipe, Run, Scores, Task
from rewardlab.core.domain import NOT_NEGATIVE, POSITIVE
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import count_right, mean_interval, pass_at
from rewardlab.models.load import Policy
from rewardlab.runs.config import config_of_run, refuse_missing
from rewardlab.util.progress import in_batches

from .arguments import named_model
from .fitting import fit_prompts
from .inputs import as_in_run, begin_run, held_out, policy_of, require_packages, task_of
from .measuring import need_answers, without_answers
from .result import Result


def evaluate(
    model: str | Path | Result | Policy, task: Task | str | None = None, *, k: Sequence[int] = (1, 8), problems: int = 200,
    temperature: float = 1.0, judge: str | None = None, **settings: Any,
) -> dict[str, Any]:  # fmt: skip
    """pass@k on held-out problems, with 95% intervals over problems.

    task: None means that of the run that `model` names, with its columns, system message and length of replies.
    judge: the verifier in place of the task's own: a name, or openai:URL#NAME, a served model that compares the answers. Replies
    without a verdict count as wrong; `no_verdict` is their share.
    settings: fields of RunConfig: seed, device, dtype, max_new, prompt_column ...
    """
    # all values are checked before a policy is loaded, which may take minutes
    _check(k, problems, temperature)
    model = named_model(model)
    if model is None:
        raise RewardlabError("which model? Give a name, a run, or a policy")
    refuse_missing(model)
    if task is None and config_of_run(model) is None:
        raise RewardlabError("which task? only a run has one of its own")
    config, task = as_in_run(model, task, settings)
    task = task_of(task, config)
    if judge is not None:
        task = replace(task, verifier=judge)
        require_packages(Recipe(), task)
    if without_answers(task):
        raise need_answers(task, "pass@k")
    # refused before a model is loaded, if there are none
    held_out(task, problems)
    policy = policy_of(model, config, task)
    task, _ = fit_prompts(task, policy, config)
    run = begin_run(Recipe(), policy, task, config)
    test_problems, n = held_out(task, problems), max(k)
    run.verify = missing = Missing(run.verify)
    # one set of max(k) replies gives the unbiased estimate of pass@k for every smaller k too
    right_counts = [
        sum(row) for batch in in_batches("evaluating", test_problems) for row in count_right(batch, run, n, temperature)
    ]
    scores = {f"pass@{i}": with_interval([pass_at(i, n, r) for r in right_counts]) for i in k}
    about = {"model": model if isinstance(model, str) else policy.name, "task": task.name, "n": len(test_problems)}
    return about | ({"judge": judge} if judge else {}) | scores | missing.share()


def _check(k: Sequence[int], problems: int, temperature: float) -> None:
    POSITIVE.check("problems", problems)
    if isinstance(k, int | str) or not k:
        raise RewardlabError(f"k must be one or more numbers of tries, such as k=(1, 8), not {k!r}")
    for tries in k:
        POSITIVE.check("k", tries)
    NOT_NEGATIVE.check("temperature", temperature)


class Missing:
    """A verifier that notes how many replies it gave no verdict on, and why."""

    def __init__(self, verify: Any):
        self.verify, self.replies = verify, 0
        self.why: list[str] = []

    def __call__(self, groups: list[Group], run: Run) -> Scores:
        scores = self.verify(groups, run)
        self.replies += sum(map(len, scores))
        self.why += [score.why for row in scores for score in row if score.missing]
        return scores

    def share(self) -> dict[str, Any]:
        """Raises RewardlabError if no reply got a verdict: then nothing was measured."""
        if not self.why:
            return {}
        often = Counter(self.why).most_common(1)[0][0]
        if len(self.why) == self.replies:
            raise RewardlabError(f"no reply got a verdict, most often because: {often}")
        return {"no_verdict": len(self.why) / self.replies, "no_verdict_because": often}


def with_interval(values: Sequence[float]) -> dict[str, Any]:
    """The mean of the values, with its 95% interval."""
    low, high = mean_interval(values)
    return {"value": sum(values) / len(values), "ci95": [low, high]}
