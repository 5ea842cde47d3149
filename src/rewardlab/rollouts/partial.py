"""Replies that may take several training steps to write, so that a step does not wait for the longest."""

from __future__ import annotations

from dataclasses import replace

from rewardlab.core import Group, Problem, Run, Sampling, Trajectory, rollout


@rollout(across_problems=True)
def partial(problems: list[Problem], run: Run, *, n: int = 8, spare: float = 0.5, temperature: float = 1.0) -> list[Group]:
    """n replies to each problem, with more groups in progress than are returned.

    `spare` times as many groups as there are problems stay in progress; complete groups are returned, the oldest first. The
    others wait in `run.memory` with the log-probs of the weights that wrote them, and are continued at the next step. So the
    first step returns fewer groups than there are problems, later steps as many. No token is thrown away.

    Logs `busy`: the share of (rows x decoding steps) in which a token was sampled, if all rows were decoded side by side.
    Zhou et al. 2025, arXiv:2509.18521
    """
    key = f"partial.{run.policy.name}"
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    groups = [list(g) for g in run.memory.get(key, [])] + [[replace(t, path=(i,)) for i in range(n)] for t in prompts]
    wanted = max(1, len(groups) - round(spare * len(problems)))
    sampled = slots = 0
    while missing := _missing(groups, wanted):
        tokens, available = _continue(groups, missing, temperature, run)
        sampled, slots = sampled + tokens, slots + available
    run.log("busy", sampled / max(1, slots))
    complete = [g for g in groups if not any(map(_open, g))]
    returned = complete[:wanted]
    run.memory[key] = [g for g in groups if not any(g is r for r in returned)]
    run.log("carried", sum(_open(t) for g in run.memory[key] for t in g))
    return returned


def _open(t: Trajectory) -> bool:
    return t.stop is None


def _missing(groups: list[Group], wanted: int) -> int:
    """The least number of rows that must still finish for `wanted` groups to be complete."""
    return sum(sorted(sum(map(_open, g)) for g in groups)[:wanted])


def _continue(groups: list[Group], enough: int, temperature: float, run: Run) -> tuple[int, int]:
    """Extend all open rows until the longest of them reaches its limit; the tokens sampled, and those there was room for."""
    places = [(g, i) for g, group in enumerate(groups) for i, t in enumerate(group) if _open(t)]
    rows = [groups[g][i] for g, i in places]
    room = min(run.max_new - written(t) for t in rows)
    sampling = Sampling(room, temperature, enough=enough)
    # `enough`: the call returns as soon as the groups that are nearest to completion are complete
    extended = [_still_open(t, run.max_new) for t in run.policy.extend(rows, sampling, run.rng("rollout"))]
    new = [len(after) - len(before) for before, after in zip(rows, extended, strict=True)]
    for (g, i), before, after, count in zip(places, rows, extended, new, strict=True):
        groups[g][i] = after if count else before
    return sum(new), len(rows) * max(new)


def _still_open(t: Trajectory, longest: int) -> Trajectory:
    """A reply that reached the limit of this call, not its own, stays open."""
    return replace(t, stop=None) if t.stop == "length" and written(t) < longest else t


def written(t: Trajectory) -> int:
    """Decisions in the last reply, over all steps in which it was written."""
    count = 0
    for turn in reversed(t.turns):
        if turn.author is None:
            break
        count += len(turn.ids)
    return count
