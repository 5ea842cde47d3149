"""The task's own verifier, as a reward like any other."""

from __future__ import annotations

from rewardlab.core import Group, Run, Scores
from rewardlab.errors import RewardlabError

from .reward import reward


@reward(over="groups")
def correct(groups: list[Group], run: Run) -> Scores:
    """What the verifier that the task names says; its term is called "correct"."""
    if run is None or run.verify is None:
        raise RewardlabError("correct() asks the task's verifier, and this run has none: name a task, or use a reward of your own")
    return run.verify.named("correct")(groups, run)
