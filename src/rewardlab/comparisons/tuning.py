"""Learning rates of a comparison's arms, chosen from one list on separate seeds.

The rate outweighs most objectives, and one that was tuned for one of them is unfair to the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rewardlab.checks.rates import best_rates, middle
from rewardlab.checks.runs import Done, Job
from rewardlab.comparisons.arms import Arm
from rewardlab.comparisons.frontier import LOWER, axes
from rewardlab.comparisons.plan import Plan
from rewardlab.comparisons.ranges import is_count
from rewardlab.errors import RewardlabError

APART = 1000
"""From the first seed that is compared to the first on which a rate is chosen."""
CHOSEN_BY = "auc.truth"
"""The mean accuracy of training: it rewards fast and stable learning alike, and is quieter than a last evaluation."""
BY_REWARD = "auc.reward"
"""The same of the reward, where that is what is compared."""
IN_TRAINING = ("auc.", "train.")
"""Before the names of numbers that training logs, for which no held-out problem is asked."""

Runner = Callable[[Sequence[Job]], Mapping[Path, Done]]


def numbers_to_choose_by(plan: Plan, names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """By trained arm, the number by which its rate is chosen: CHOSEN_BY, or BY_REWARD where the reward of all is compared; where
    training logs none, what is compared.

    names: of the numbers that each arm measures. Raises RewardlabError, before any run, where there is none to choose by, or it is
    not known whether more of it is better.
    """
    found = {}
    for arm in plan.trained if plan.rates else ():
        measure = arm.recipe.measure
        by_reward = plan.measure == "reward" and measure is not None and measure.name == "own_reward"
        first = BY_REWARD if by_reward else CHOSEN_BY
        known = [name for name in (first, plan.measure) if name in names[arm.name]]
        if not known:
            raise RewardlabError(
                f"a rate for {arm.name} cannot be chosen: its runs log neither {first} nor {plan.measure}; drop --rates"
            )
        found[arm.name] = known[0]
        if is_count(known[0]) and _axis(plan, known[0]) is None:
            raise RewardlabError(
                f"a rate for {arm.name} would be chosen by {known[0]}, and nothing says whether more of it is better: say it by "
                f"the axes, as --x tokens --y {known[0]}:lower, or drop --rates"
            )
    return found


def _axis(plan: Plan, number: str) -> str | None:
    """Whether more or less of a number is better, as the frontier's axes say; None where none is of this number."""
    return next((axis.better for axis in axes(plan) if axis.name == number), None) if plan.x else None


def tuning_jobs(plan: Plan, folder: Path) -> dict[tuple[str, float], list[Job]]:
    """The runs on which rates are chosen, by arm and rate."""
    return {(arm.name, rate): _jobs(plan, arm, rate, folder) for arm in plan.trained for rate in plan.rates}


def tuned(plan: Plan, folder: Path, run: Runner) -> Plan:
    """The plan with the rate of each trained arm, at which the mean of its number (`numbers_to_choose_by`) is best, and with the
    rates that this does not tell apart.

    Raises RewardlabError for runs that log nothing to choose by.
    """
    jobs = tuning_jobs(plan, folder)
    done = run([job for some in jobs.values() for job in some])
    chosen: dict[str, float] = {}
    tied: dict[str, list[float]] = {}
    for arm in plan.trained:
        by = _number(plan, arm)
        levels = {rate: _level([done[Path(job.folder)] for job in jobs[arm.name, rate]], plan, arm) for rate in plan.rates}
        best = best_rates(levels, lower=_axis(plan, by) == LOWER)
        chosen[arm.name] = middle(best)
        tied |= {arm.name: best} if len(best) > 1 else {}
    return replace(plan, chosen=chosen, tied=tied)


def _number(plan: Plan, arm: Arm) -> str:
    # a comparison of an older version was planned without
    return plan.rates_by.get(arm.name, CHOSEN_BY if arm.recipe.reward is not None else plan.measure)


def _jobs(plan: Plan, arm: Arm, rate: float, folder: Path) -> list[Job]:
    at_rate = replace(plan, chosen={arm.name: rate})
    seeds = [plan.seeds[0] + APART + i for i in range(plan.rate_seeds)]
    jobs = [at_rate.job(arm, seed, folder) for seed in seeds]
    # where training logs what the rate is chosen by, no held-out problems are asked; else they are, at the end
    held_out = 0 if _number(plan, arm).startswith(IN_TRAINING) else plan.config.eval_problems
    return [
        replace(
            job,
            folder=str(folder / "tuning" / f"{arm.folder}-{rate:g}-s{job.config.seed}"),
            config=job.config.but(eval_every=0, eval_problems=held_out),
        )
        for job in jobs
    ]


def _level(runs: Sequence[Done], plan: Plan, arm: Arm) -> float:
    first = _number(plan, arm)
    values = [done.numbers.get(first, done.numbers.get(plan.measure)) for done in runs]
    known = [value for value in values if value is not None]
    if not known:
        raise RewardlabError(
            f"a rate for {arm.name} cannot be chosen: its runs log neither {first} nor {plan.measure}; drop --rates"
        )
    return sum(known) / len(known)
