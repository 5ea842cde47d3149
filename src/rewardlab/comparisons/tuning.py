"""Learning rates of a comparison's arms, chosen from one list on separate seeds.

The rate outweighs most objectives, and one that was tuned for one of them is unfair to the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rewardlab.checks.runs import Done, Job
from rewardlab.comparisons.arms import Arm
from rewardlab.comparisons.plan import Plan
from rewardlab.errors import RewardlabError

APART = 1000
"""From the first seed that is compared to the first on which a rate is chosen."""
CHOSEN_BY = "auc.truth"
"""The mean accuracy of training: it rewards fast and stable learning alike, and is quieter than a last evaluation."""

Runner = Callable[[Sequence[Job]], Mapping[Path, Done]]


def tuning_jobs(plan: Plan, folder: Path) -> dict[tuple[str, float], list[Job]]:
    """The runs on which rates are chosen, by arm and rate."""
    return {(arm.name, rate): _jobs(plan, arm, rate, folder) for arm in plan.trained for rate in plan.rates}


def tuned(plan: Plan, folder: Path, run: Runner) -> Plan:
    """The plan with the rate of each trained arm: the one at which the mean of CHOSEN_BY, or else of what is compared, is highest.

    Raises RewardlabError for runs that log nothing to choose by.
    """
    jobs = tuning_jobs(plan, folder)
    done = run([job for some in jobs.values() for job in some])
    levels = {key: _level([done[Path(job.folder)] for job in some], key[0], plan.measure) for key, some in jobs.items()}
    chosen = {arm.name: max(plan.rates, key=lambda rate: levels[arm.name, rate]) for arm in plan.trained}
    return replace(plan, chosen=chosen)


def _jobs(plan: Plan, arm: Arm, rate: float, folder: Path) -> list[Job]:
    at_rate = replace(plan, chosen={arm.name: rate})
    seeds = [plan.seeds[0] + APART + i for i in range(plan.rate_seeds)]
    jobs = [at_rate.job(arm, seed, folder) for seed in seeds]
    # where rollouts are judged while training, held-out problems are not what the rate is chosen by; else they are, at the end
    held_out = 0 if arm.recipe.reward is not None else plan.config.eval_problems
    return [
        replace(
            job,
            folder=str(folder / "tuning" / f"{arm.folder}-{rate:g}-s{job.config.seed}"),
            config=job.config.but(eval_every=0, eval_problems=held_out),
        )
        for job in jobs
    ]


def _level(runs: Sequence[Done], method: str, measure: str) -> float:
    values = [done.numbers.get(CHOSEN_BY, done.numbers.get(measure)) for done in runs]
    known = [value for value in values if value is not None]
    if not known:
        raise RewardlabError(f"a rate for {method} cannot be chosen: its runs log neither {CHOSEN_BY} nor {measure}; drop --rates")
    return sum(known) / len(known)
