"""What a row of a run will hold where an environment answers: replies and opening message, as far as they are known beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rewardlab.api.prompt_lengths import opening_of
from rewardlab.core import Recipe, Rollout, Task
from rewardlab.engine.episodes import environment_of
from rewardlab.models.load import Policy
from rewardlab.policies.text import TextPolicy


@dataclass(frozen=True)
class Episode:
    """What a row holds beside its prompt.  turns: replies, at most.  opening: tokens of an environment's first message."""

    turns: int = 1
    opening: int = 0
    answered: bool = False

    def row(self, prompt: float, reply: int, policy: Policy) -> float:
        """The tokens of a row whose replies are all as long as they may be; the context holds no more."""
        most = prompt + self.opening + self.turns * reply
        return min(most, getattr(policy, "context", most))

    def told(self) -> dict[str, Any]:
        if not self.answered:
            return {}
        opening = {"opening_tokens": self.opening} if self.opening else {}
        return {"replies_per_episode": self.turns, **opening, "not_counted": "what the environment answers"}


def episode_of(recipe: Recipe, task: Task, policy: Policy) -> Episode:
    env = environment_of(recipe)
    if env is None or recipe.rollout is None or not isinstance(policy, TextPolicy):
        return Episode()
    turns = [part.settings["turns"] for part in recipe.rollout.walk() if isinstance(part, Rollout) and "turns" in part.settings]
    return Episode(max(turns, default=1), opening_of(env, task, policy), True)
