"""Several independent replies to each problem."""

from __future__ import annotations

from dataclasses import replace

from rewardlab.core import Group, Problem, Run, Sampling, Trajectory, rollout
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt, PositiveShare
from rewardlab.text.splitters import mark


@rollout
def independent(
    problems: list[Problem], run: Run, *, n: PositiveInt = 8, temperature: NonNegativeFloat = 1.0,
    top_p: PositiveShare = 1.0, top_k: NonNegativeInt = 0, stop: tuple[str, ...] = (), steps: str | None = None,
) -> list[Group]:  # fmt: skip
    """n replies to each problem. `steps` names the splitter that marks where reasoning steps end."""
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    # all replies are sampled in one call: the policy batches them as it sees fit
    rows = [replace(t, path=(i,)) for t in prompts for i in range(n)]
    sampling = Sampling(run.max_new, temperature, top_p, top_k, tuple(stop))
    done = run.policy.extend(rows, sampling, run.rng("rollout"))
    if steps:
        done = [mark(t, steps, run.policy.pieces, run.policy.name) for t in done]
    return [done[i : i + n] for i in range(0, len(done), n)]
