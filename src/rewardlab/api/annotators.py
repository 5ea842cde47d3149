"""How steps are labelled: the ways by name, and their settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rewardlab.core.domain import NOT_NEGATIVE, POSITIVE
from rewardlab.data.step_formats import THRESHOLD, check_format
from rewardlab.errors import RewardlabError, unknown
from rewardlab.rewards.judged_steps import judged_steps
from rewardlab.rewards.monte_carlo import binary_search_steps, monte_carlo_steps
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.steps import correct_steps
from rewardlab.rewards.tool_steps import tool_steps
from rewardlab.text.splitters import SPLITTERS

CONTINUED = ("monte-carlo", "binary-search")
"""The ways that go on from steps: they need a policy, and answers to judge the continuations by."""
BY: dict[str, Callable[[Labels], Reward]] = {
    "monte-carlo": lambda s: monte_carlo_steps(n=s.rollouts, temperature=s.temperature),
    "binary-search": lambda s: binary_search_steps(n=s.rollouts, temperature=s.temperature),
    "judge": lambda s: judged_steps(
        form=s.judge_form, votes=s.votes, max_new=s.judge_tokens, temperature=s.temperature if s.votes > 1 else 0.0,
        splitter=s.splitter,
    ),
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
        check_format(self.format)
