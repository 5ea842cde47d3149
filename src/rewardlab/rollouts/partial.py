"""Replies that may take several steps to write: nobody waits for the longest."""

from __future__ import annotations

from dataclasses import replace

from rewardlab.core import Group, Problem, Run, Sampling, Trajectory, rollout


@rollout(whole=True)
def partial(problems: list[Problem], run: Run, *, n: int = 8, spare: float = 0.5, temperature: float = 1.0) -> list[Group]:
    """n replies to each problem, with more groups under way than are returned.

    `spare` times as many groups as there are problems stay under way; those that are whole come back, the oldest first. What
    was written of the others waits in `run.memory`, with the log-probs of the weights that wrote it, and is gone on with at the
    next step. So the first step returns fewer groups than there are problems, later ones as many. Nothing written is thrown away.

    Logs `busy`: the share of (rows x decoding steps) in which a token was drawn, were all rows decoded side by side.
    Zhou et al. 2025, arXiv:2509.18521
    """
    place = f"partial.{run.policy.name}"
    asked = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    groups = [list(g) for g in run.memory.get(place, [])] + [[replace(t, path=(i,)) for i in range(n)] for t in asked]
    wanted = max(1, len(groups) - round(spare * len(problems)))
    drawn = slots = 0
    while missing := _missing(groups, wanted):
        tokens, of = _go_on(groups, missing, temperature, run)
        drawn, slots = drawn + tokens, slots + of
    run.log("busy", drawn / max(1, slots))
    whole = [g for g in groups if not any(map(_open, g))]
    back = whole[:wanted]
    run.memory[place] = [g for g in groups if not any(g is b for b in back)]
    run.log("carried", sum(_open(t) for g in run.memory[place] for t in g))
    return back


def _open(t: Trajectory) -> bool:
    return t.stop is None


def _missing(groups: list[Group], wanted: int) -> int:
    """The least number of rows that must still finish for `wanted` groups to be whole."""
    return sum(sorted(sum(map(_open, g)) for g in groups)[:wanted])


def _go_on(groups: list[Group], enough: int, temperature: float, run: Run) -> tuple[int, int]:
    """Extend all open rows, up to where the longest of them reaches its limit; the tokens drawn, and what there was room for."""
    places = [(g, i) for g, group in enumerate(groups) for i, t in enumerate(group) if _open(t)]
    rows = [groups[g][i] for g, i in places]
    room = min(run.max_new - written(t) for t in rows)
    sampling = Sampling(room, temperature, enough=enough)
    found = [_still_open(t, run.max_new) for t in run.policy.extend(rows, sampling, run.rng("rollout"))]
    new = [len(after) - len(before) for before, after in zip(rows, found, strict=True)]
    for (g, i), before, after, count in zip(places, rows, found, new, strict=True):
        groups[g][i] = after if count else before
    return sum(new), len(rows) * max(new)


def _still_open(t: Trajectory, longest: int) -> Trajectory:
    """A reply that has only reached the end of this call may go on."""
    return replace(t, stop=None) if t.stop == "length" and written(t) < longest else t


def written(t: Trajectory) -> int:
    """Decisions in the last reply, over however many steps it was written."""
    count = 0
    for turn in reversed(t.turns):
        if turn.author is None:
            break
        count += len(turn.ids)
    return count
