"""Replies that may take several training steps to write, so that a step does not wait for the longest."""

from __future__ import annotations

from dataclasses import replace

from rewardlab.core import Group, Problem, Run, Sampling, Trajectory, rollout
from rewardlab.core.domain import NonNegativeFloat, PositiveInt, Share


@rollout(across_problems=True)
def partial(
    problems: list[Problem], run: Run, *, n: PositiveInt = 8, spare: Share = 0.5, temperature: NonNegativeFloat = 1.0
) -> list[Group]:
    """n replies to each problem, with more groups in progress than are returned.

    Of all groups in progress, `spare` * (number of problems) are left unfinished; complete groups are returned, the oldest first.
    The others wait in `run.memory`, with the log-probs of the weights that sampled them, and are continued at the next step. So
    the first step returns fewer groups than there are problems, and later steps as many, as do further calls within a step, by
    which a filter fills up its batch. No token is thrown away.

    Logs `busy`: tokens sampled / (rows * decoding steps), as if all rows were decoded in one batch.
    Zhou et al. 2025, arXiv:2509.18521
    """
    key = f"partial.{run.policy.name}"
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    groups = [list(g) for g in run.memory.get(key, [])] + [[replace(t, path=(i,)) for i in range(n)] for t in prompts]
    # a further call in a step adds few problems: what its first call left in progress stays so
    again, run.memory[f"{key}.step"] = run.memory.get(f"{key}.step") == run.step, run.step
    wanted = len(problems) if again else max(1, len(groups) - round(spare * len(problems)))
    sampled = slots = 0
    # more than one call, because open rows differ in how much they may still write
    while missing := _missing(groups, wanted):
        tokens, available = _continue(groups, missing, temperature, run)
        sampled, slots = sampled + tokens, slots + available
    run.log("busy", sampled / max(1, slots))
    complete = [g for g in groups if not any(map(_open, g))]
    returned = complete[:wanted]
    # `is`, because == would compare the rows one by one; complete groups beyond `wanted` wait too
    run.memory[key] = [g for g in groups if not any(g is r for r in returned)]
    run.log("carried", sum(_open(t) for g in run.memory[key] for t in g))
    return returned


def _open(t: Trajectory) -> bool:
    return t.stop is None


def _missing(groups: list[Group], wanted: int) -> int:
    """The least number of rows that must still finish for `wanted` groups to be complete."""
    # the groups with the fewest open rows are the cheapest to complete
    return sum(sorted(sum(map(_open, g)) for g in groups)[:wanted])


def _continue(groups: list[Group], enough: int, temperature: float, run: Run) -> tuple[int, int]:
    """Extend all open rows until `enough` of them finish or the longest reaches its limit.

    Returns the number of tokens sampled, and the number that would have been sampled had no row waited for another.
    """
    places = [(g, i) for g, group in enumerate(groups) for i, t in enumerate(group) if _open(t)]
    rows = [groups[g][i] for g, i in places]
    # one limit for all rows of the call, so that none exceeds max_new
    room = min(run.max_new - written(t) for t in rows)
    sampling = Sampling(room, temperature, enough=enough)
    # `enough`: the call returns as soon as the groups that are nearest to completion are complete
    extended = [_still_open(t, run.max_new) for t in run.policy.extend(rows, sampling, run.rng("rollout"))]
    new = [len(after) - len(before) for before, after in zip(rows, extended, strict=True)]
    for (g, i), before, after, count in zip(places, rows, extended, new, strict=True):
        # a row that got no token in this call stays as it was
        groups[g][i] = after if count else before
    return sum(new), len(rows) * max(new)


def _still_open(t: Trajectory, longest: int) -> Trajectory:
    """Reopen a row that stopped at the limit of this call, unless its reply has all `longest` tokens."""
    return replace(t, stop=None) if t.stop == "length" and written(t) < longest else t


def written(t: Trajectory) -> int:
    """Tokens of the last reply, over all training steps in which it was sampled."""
    count = 0
    for turn in reversed(t.turns):
        if turn.author is None:
            break
        count += len(turn.ids)
    return count
