"""The task's own verifier, as a reward like any other."""

from __future__ import annotations

from rewardlab.core import Group, Run, Scores
from rewardlab.errors import RewardlabError

from .reward import reward


@reward(over="groups")
def correct(groups: list[Group], run: Run) -> Scores:
    """The score by the task's verifier; its term is called "correct"."""
    if run is None or run.verify is None:
        raise RewardlabError("correct() needs the task's verifier, and this run has none: name a task, or use a reward of your own")
    # verdicts are remembered under the verifier's own name, so that others can share them; only this copy is renamed
    renamed = run.verify.named("correct")
    return [[renamed.combine([score]) for score in row] for row in run.verdicts(groups)]
