"""Drafts that are written anew where a reward of steps finds them wrong, and the choice among draft and rewritings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Group, Problem, Run, Sampling, Trajectory, measure
from rewardlab.core.domain import NonNegativeFloat, Share
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.rewards.reward import Reward
from rewardlab.text.splitters import mark


@measure
def refined(
    problems: Sequence[Problem], run: Run, *, where: Reward, by: Reward, threshold: Share = 0.5, temperature: NonNegativeFloat = 1.0
) -> dict[str, float]:
    """Accuracy of what `by` pays most: a draft, a second reply, or the draft gone on with from before its first wrong step.

    where: the reward of steps that says which step is wrong: the first that it pays less than `threshold`. Where it finds none, or
    the draft leaves no room, the draft stays.  refined: of that choice; ties go to the draft, then to the second reply.  best_of_3:
    of the same choice among draft, second reply and a third one.  pass@1: of drafts.  second, local: of the two rewritings.
    flagged: share of drafts with a wrong step, as `where` says; flagged_wrong: share of these that are wrong. Steps are lines.
    """
    if run.verify is None:
        raise RewardlabError("refined needs the task's verifier, and this run has none: name a task")
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    how, rng = Sampling(run.max_new, temperature), run.rng("eval")
    drafts, second, third = (_in_steps(run.policy.extend(prompts, how, rng), run) for _ in range(3))
    flags = [_first_wrong(s.steps, threshold) for (s,) in where([[t] for t in drafts], run)]
    local = _rewritten(drafts, flags, how, run)
    sides = [drafts, second, local], [drafts, second, third]
    right = [_right(side, run) for side in (drafts, second, local)]
    chosen, best = (_right([_best(row, by, run) for row in zip(*side, strict=True)], run) for side in sides)
    flagged = [flag is not None for flag in flags]
    low, high = mean_interval([float(ok) for ok in chosen])
    failed = [not ok for ok, flag in zip(right[0], flagged, strict=True) if flag]
    return {
        "refined": float(np.mean(chosen)), "ci95_low": low, "ci95_high": high, "n": float(len(drafts)),
        "best_of_3": float(np.mean(best)), "pass@1": float(np.mean(right[0])), "second": float(np.mean(right[1])),
        "local": float(np.mean(right[2])), "flagged": float(np.mean(flagged)), "flagged_wrong": float(np.mean(failed or [False])),
    }  # fmt: skip


def _in_steps(rows: Sequence[Trajectory], run: Run) -> Group:
    return [mark(t, "newline", run.policy.pieces, run.policy.name) for t in rows]


def _first_wrong(steps: Sequence[tuple[int, float]], threshold: float) -> int | None:
    return min((at for at, x in steps if x < threshold), default=None)


def _rewritten(drafts: Group, flags: Sequence[int | None], how: Sampling, run: Run) -> Group:
    """The drafts, of which those with a flag go on anew from the end of the step before it."""
    done, begun = list(drafts), {}
    for i, (t, flag) in enumerate(zip(drafts, flags, strict=True)):
        if flag is not None:
            start = max((at + 1 for at in t.steps if at < flag), default=int(t.mask.argmax()))
            if start + how.max_new <= run.policy.context:
                begun[i] = t.cut(start, run.policy.decode)
    if begun:
        again = run.policy.extend(list(begun.values()), how, run.rng("eval"))
        for i, t in zip(begun, _in_steps(again, run), strict=True):
            done[i] = t
    return done


def _best(row: Sequence[Trajectory], by: Reward, run: Run) -> Trajectory:
    ((*scores,),) = by([list(row)], run)
    paid = [-np.inf if s.total is None else s.total for s in scores]
    return row[int(np.argmax(paid))]


def _right(rows: Sequence[Trajectory], run: Run) -> list[bool]:
    return [s.value is not None and s.value >= 1.0 for (s,) in run.verify([[t] for t in rows], run)]
