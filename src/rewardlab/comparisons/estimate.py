"""How long a comparison will take, from one step of each of its methods."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rewardlab.checks.pairs import Rehearsal
from rewardlab.comparisons.arms import Arm
from rewardlab.comparisons.plan import TOKENS, Plan


def seconds(plan: Plan, shown: Mapping[str, Rehearsal], problems: int) -> float:
    """The seconds of all runs, one after another.  shown: what a step of each arm showed.  problems: held out, of a measurement.

    It is rough: a first step is slower than later ones, and replies may grow in training.
    """
    # arms of one measure take it once, in one of their rehearsals
    problem = max((found.problem for found in shown.values()), default=0.0)
    total = 0.0
    for arm in plan.arms:
        found = shown[arm.name]
        if not arm.trains:
            total += len(plan.seeds) * problems * found.problem
            continue
        steps = _steps(plan, arm, shown)
        training = found.around + steps * found.step
        every = plan.config.eval_every
        # at the end, and on the way; what is measured before the first step is shared
        measuring = problems * problem * max(1, math.ceil(steps / every) if every else 1)
        total += len(plan.seeds) * (training + measuring) + len(plan.rates) * plan.rate_seeds * training
    return total


def _steps(plan: Plan, arm: Arm, shown: Mapping[str, Rehearsal]) -> float:
    """The steps of an arm: those of the plan, or as many as the tokens last."""
    own, steps = shown[arm.name].tokens, plan.config.steps or 1
    budget = plan.config.budget or (steps * shown[plan.trained[0].name].tokens if plan.equal == TOKENS else None)
    return math.ceil(budget / own) if budget and own else steps
