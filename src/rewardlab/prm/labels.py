"""How steps are labelled, by name and settings, and what labels a batch, here or in a process of a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rewardlab.api.inputs import begin_run, policy_of
from rewardlab.api.row_rewards import NoModel
from rewardlab.core import Group, Problem, Recipe, Run, Score, Task, ask
from rewardlab.data.solutions import Solution
from rewardlab.data.step_formats import THRESHOLD, WRITTEN, check_format
from rewardlab.errors import RewardlabError, unknown
from rewardlab.models.load import Policy, load_policy
from rewardlab.policies.served import ServedPolicy
from rewardlab.policies.text import TextPolicy
from rewardlab.prm.training import solution_of_steps, written
from rewardlab.rewards.consensus import consensus_steps
from rewardlab.rewards.judged_steps import judged_steps
from rewardlab.rewards.monte_carlo import COMPLETIONS, PREFIX_TOKENS, binary_search_steps, monte_carlo_steps
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.steps import correct_steps
from rewardlab.rewards.tool_steps import tool_steps
from rewardlab.rollouts.independent import independent
from rewardlab.runs.config import RunConfig
from rewardlab.settings.domain import NOT_NEGATIVE, POSITIVE
from rewardlab.tasks.sources import Listed
from rewardlab.text.splitters import SPLITTERS

CONTINUED = ("monte-carlo", "binary-search", "consensus")
"""The ways that go on from steps: they need a policy, and answers to judge the continuations by."""
JUDGED = ("judge", "consensus")
"""The ways that ask a judge."""
BY: dict[str, Callable[[Labels], Reward]] = {
    "monte-carlo": lambda s: monte_carlo_steps(n=s.rollouts, temperature=s.temperature),
    "binary-search": lambda s: binary_search_steps(n=s.rollouts, temperature=s.temperature),
    "judge": lambda s: judged_steps(
        form=s.judge_form, votes=s.votes, max_new=s.judge_tokens, temperature=s.temperature if s.votes > 1 else 0.0,
        splitter=s.splitter,
    ),
    "consensus": lambda s: consensus_steps(inner=(BY["monte-carlo"](s), BY["judge"](s))),
    "tool": lambda s: tool_steps(splitter=s.splitter),
    "reference": lambda s: correct_steps(splitter=s.splitter),
}  # fmt: skip
"""What labels the steps: any reward that pays at their ends could."""


@dataclass(frozen=True)
class Labels:
    """How solutions are sampled and labelled.

    by: one of BY.  rollouts: continuations of a step.  samples: solutions of a problem.  problems: of the task.  splitter: what a
    step is, in sampled solutions.  temperature: of solutions and continuations.  judge_form, votes, judge_tokens: settings of
    `judged_steps`.  format, threshold: of the rows, as in `step_formats`.  batch: problems, or solutions of a file, that are
    labelled, and saved, at a time.
    """

    by: str = "monte-carlo"
    rollouts: int = 4
    samples: int = 4
    problems: int = 100
    splitter: str = "newline"
    temperature: float = 1.0
    judge_form: Any = "first"
    votes: int = 1
    judge_tokens: int = 1024
    format: str = "rewardlab"
    threshold: float = THRESHOLD
    batch: int = 16

    def __post_init__(self) -> None:
        if self.by not in BY:
            raise unknown("way to label steps", self.by, BY)
        for name in ("rollouts", "samples", "problems", "votes", "judge_tokens", "batch"):
            POSITIVE.check(name, getattr(self, name))
        NOT_NEGATIVE.check("temperature", self.temperature)
        if self.temperature == 0 and self.by in CONTINUED and self.rollouts > 1:
            raise RewardlabError("at temperature 0 all continuations of a step are the same: give rollouts 1")
        # a file holds steps as text, which does not show its tokens
        if self.splitter not in SPLITTERS or self.splitter == "token":
            raise unknown("splitter", self.splitter, [name for name in SPLITTERS if name != "token"])
        check_format(self.format, WRITTEN)


VERIFIER = "final_answer"
"""Judges the answers where no task is named: as in training on a file."""

Solved = tuple[list[Solution], Counter[str]]
"""The labelled solutions of a batch, and what they cost."""


def any_task() -> Task:
    """Stands for the task where only a file is labelled."""
    return Task("file", Listed([ask("?")]), (), VERIFIER)


def problem_in(item: Problem | tuple[Solution, Problem]) -> Problem:
    """The problem of an item of a batch: a problem to solve, or a solution with its problem."""
    return item if isinstance(item, Problem) else item[1]


def solver_of(
    labels: Labels, config: RunConfig, task: Task | None, model: str | Policy | None, judge: str | Policy | None, samples: bool
) -> BatchSolver:
    """What labels batches, with its models loaded.  samples: whether the solutions are sampled too.

    Raises RewardlabError for a model that cannot be loaded, or writes no text.
    """
    needs_model = samples or labels.by in CONTINUED or (labels.by in JUDGED and judge is None)
    asked = task or any_task()
    policy = policy_of(model, config, asked) if needs_model else None
    if policy is not None and not isinstance(policy, TextPolicy | ServedPolicy):
        raise RewardlabError("labels are for solutions in text, and this model writes none")
    run = begin_run(Recipe(), NoModel() if policy is None else policy, asked, config)
    run.held_out = False
    if labels.by in JUDGED:
        named = judge is None or isinstance(judge, str)
        run.models["judge"] = (
            policy if judge is None else load_policy(str(judge), config.device, config.dtype, None, task) if named else judge
        )
    return BatchSolver(run, BY[labels.by](labels), labels)


@dataclass
class BatchSolver:
    """Labels the batch of a number: problems to solve, or solutions with their problems."""

    run: Run
    reward: Reward
    labels: Labels

    def __call__(self, number: int, batch: Sequence[Any]) -> Solved:
        run = self.run
        # the random numbers of a batch depend on the seed and its number alone, so that a stop changes none
        run.step, run.metrics = number, {}
        before = run.token_count
        groups, known, meta = self._groups(batch)
        scores, rights = self.reward(groups, run), self._verdicts(groups, known)
        solutions = list(self._solutions(groups, scores, rights, meta))
        after = run.token_count
        cost = {"tokens_generated": after.generated - before.generated, "tokens_scored": after.scored - before.scored}
        return solutions, Counter(cost | {name: int(run.metrics.get(name, 0)) for name in (COMPLETIONS, PREFIX_TOKENS)})

    def _groups(self, batch: Sequence[Any]) -> tuple[list[Group], list[bool | None], list[dict[str, Any]]]:
        """The rows; for each group what is known already of its being right, and further columns."""
        if isinstance(batch[0], Problem):
            rollout = independent(n=self.labels.samples, temperature=self.labels.temperature, steps=self.labels.splitter)
            return rollout(list(batch), self.run), [None] * len(batch), [{}] * len(batch)
        solutions, problems = [solution for solution, _ in batch], [problem for _, problem in batch]
        policy = None if isinstance(self.run.policy, NoModel) else self.run.policy
        rows = written(solutions, problems, policy)
        return [[t] for t in rows], [solution.right for solution in solutions], [solution.meta for solution in solutions]

    def _verdicts(self, groups: list[Group], known: list[bool | None]) -> list[list[bool | None]]:
        """Whether each row is right: what the file says of it, or else the verifier, where the problem has an answer."""
        asked = [g for g, right in enumerate(known) if right is None and groups[g][0].problem.answer is not None]
        said = dict(zip(asked, self.run.verdicts([groups[g] for g in asked]), strict=True)) if asked else {}
        return [
            [None if s.value is None else s.value >= 1.0 for s in said[g]] if g in said else [known[g]] * len(group)
            for g, group in enumerate(groups)
        ]

    def _solutions(
        self, groups: list[Group], scores: list[list[Score]], rights: list[list[bool | None]], meta: list[dict[str, Any]]
    ) -> Iterator[Solution]:
        for group, row, right, about in zip(groups, scores, rights, meta, strict=True):
            for t, score, one in zip(group, row, right, strict=True):
                yield solution_of_steps(t, score, one, self.labels.splitter, about)
