"""Problems chosen once, before training, by how badly the policy does on them."""

from __future__ import annotations

from rewardlab.core import Group, Problem, Rollout, Run, Sampling, Trajectory, rollout
from rewardlab.core.domain import NonNegativeFloat, PositiveInt, PositiveShare
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward

MEMORY = "hardest.kept"


@rollout(inner="of", across_problems=True)
def hardest(
    problems: list[Problem], run: Run, *, of: Rollout, by: Reward, keep: PositiveInt = 100, pool: PositiveInt = 1000,
    temperature: NonNegativeFloat = 0.7, top_p: PositiveShare = 0.9,
) -> list[Group]:  # fmt: skip
    """What `of` samples for the hardest problems alone. Before the first step the policy answers the next `pool` problems of the
    training data once; trained on are those `keep` of them whose answers `by` pays least.

    All others are dropped, and replaced by the next of the training data, so problems must come again: a file of problems, or a
    generated task with a size. Held-out problems are all kept. Answers without a verdict count as hard. run.memory holds the keys
    of the problems that are kept.
    """
    if run.more_problems is None:
        return of(problems, run)
    if MEMORY not in run.memory:
        run.memory[MEMORY] = _hardest(_distinct(problems, run, pool), run, by, keep, Sampling(run.max_new, temperature, top_p))
    kept, wanted = set(run.memory[MEMORY]), len(problems)
    chosen = [p for p in problems if p.key in kept]
    looked_at = 0
    while len(chosen) < wanted:
        if looked_at > 4 * pool:
            raise RewardlabError(
                f"none of {looked_at} further problems is one of the {len(kept)} hardest of the first {pool}: problems must come "
                "again. Train on a file of problems, or give the task a size"
            )
        further = run.more_problems(wanted - len(chosen))
        found = [p for p in further if p.key in kept]
        looked_at = 0 if found else looked_at + len(further)
        chosen += found
    return of(chosen, run)


def _distinct(problems: list[Problem], run: Run, pool: int) -> list[Problem]:
    assert run.more_problems is not None
    seen = {p.key: p for p in problems}
    if len(seen) < pool:
        # where an epoch is smaller than the pool, it repeats itself
        seen |= {p.key: p for p in run.more_problems(pool - len(seen))}
    return list(seen.values())


def _hardest(problems: list[Problem], run: Run, by: Reward, keep: int, sampling: Sampling) -> list[str]:
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    answers = run.policy.extend(prompts, sampling, run.rng("hardest"))
    paid = [row[0].total for row in by([[t] for t in answers], run)]
    ease = [float("-inf") if value is None else value for value in paid]
    # sorted is stable: equally hard problems stay in the order of the data
    order = sorted(range(len(problems)), key=ease.__getitem__)
    return [problems[i].key for i in order[:keep]]
