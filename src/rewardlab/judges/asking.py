"""Questions put to a model of the run that judges."""

from __future__ import annotations

from collections.abc import Sequence

from rewardlab.core import Group, Problem, Run, Sampling, Trajectory


def judgements_of(
    run: Run, asked: Sequence[Problem], k: int = 1, model: str = "policy", temperature: float = 1.0, max_new: int | None = None
) -> list[Group]:
    """k judgements of each question, by a model of the run, all in one batch; none of a question that leaves no room for one."""
    judge, longest = run.model(model), max_new or run.max_new
    begun = judge.read([Trajectory(q) for q in asked], [q.prompt for q in asked]) if asked else []
    fits = [i for i, t in enumerate(begun) if len(t) + longest <= judge.context]
    sampling = Sampling(longest, temperature)
    said = judge.extend([begun[i] for i in fits for _ in range(k)], sampling, run.rng("judgements")) if fits else []
    known = {i: said[n * k : (n + 1) * k] for n, i in enumerate(fits)}
    return [known.get(i, []) for i in range(len(asked))]
