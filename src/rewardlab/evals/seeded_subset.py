"""A measure on a subset of the held-out problems chosen by the run's seed."""

from __future__ import annotations

from collections.abc import Sequence

from rewardlab.core import Measure, Problem, Run, measure
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt


@measure
def own_share(problems: Sequence[Problem], run: Run, *, inner: Measure, parts: PositiveInt = 20) -> dict[str, float]:
    """The measure `inner` on every `parts`-th problem, starting from the run's seed: neighbouring seeds share no problem.

    For what does not depend on chance once the problems are there, such as a fixed reward on written replies: on the same problems
    all seeds would find the same number, and their spread would say that it is exact.
    """
    own = problems[run.seed % parts :: parts]
    if not own:
        raise RewardlabError(f"{len(problems)} problems are too few for {parts} parts: give as many problems or more")
    return inner(own, run)
