"""Self-play: one policy proposes tasks and solves them. The only data is a trivial first task."""

from __future__ import annotations

import random
from dataclasses import replace

from rewardlab.core import Group, Problem, Run, Sampling, Trajectory, rollout, seed_of
from rewardlab.core.domain import NonNegativeFloat, NonNegativeInt, PositiveInt
from rewardlab.tasks.programs import ProgramError

from .language import INPUTS, KINDS, Triplet, read_proposal, to_propose, to_solve, triplet

MEMORY = "self_play.tasks"
LARGEST = 2000
"""Tasks of a kind that are remembered."""


@rollout(across_problems=True, rows=lambda n, **_: n + 1)
def self_play(
    problems: list[Problem],
    run: Run,
    *,
    n: PositiveInt = 8,
    past: NonNegativeInt = 2,
    temperature: NonNegativeFloat = 1.0,
    kinds: tuple[str, ...] = KINDS,
) -> list[Group]:
    """As many proposals as there are problems, of each kind in turn, and n solutions of each task. The problems are not used.

    A proposer is shown `past` tasks of its kind, which its own should differ from. Where a proposal is not a valid task, a past
    one is solved instead. Rows are tagged "propose.KIND" or "solve.KIND"; path[0] says which belong together. Every valid task is
    kept in `run.memory`. Zhao et al. 2025, arXiv:2505.03335
    """
    tasks_by_kind = run.memory.setdefault(MEMORY, {kind: [_first()] for kind in KINDS})
    rng = random.Random(seed_of(run.seed, "self-play", run.moment))
    prompts = [to_propose(kind, _sampled(tasks_by_kind[kind], past, rng)) for kind in _in_turn(kinds, len(problems))]
    sampling = Sampling(run.max_new, temperature)
    rows = run.policy.read([Trajectory(p, path=(i,)) for i, p in enumerate(prompts)], [p.prompt for p in prompts])
    proposed = run.policy.extend([_tagged(t) for t in rows], sampling, run.rng("rollout"))
    tasks, valid = [], 0
    for i, t in enumerate(proposed):
        kind, task = t.problem.meta["kind"], _task_of(t)
        valid += task is not None
        # a past task gets a path of its own, so that its solvers do not score the invalid proposal
        tasks.append((i if task else len(proposed) + i, to_solve(kind, task or _sampled(tasks_by_kind[kind], 1, rng)[0])))
        if task and task not in tasks_by_kind[kind]:
            tasks_by_kind[kind] = [*tasks_by_kind[kind], task][-LARGEST:]
    run.log("proposals_valid", valid / max(1, len(proposed)))
    rows = run.policy.read([Trajectory(p, path=(i,)) for i, p in tasks], [p.prompt for _, p in tasks])
    rows = [replace(_tagged(t), path=(*t.path, k)) for t in rows for k in range(n)]
    solved = run.policy.extend(rows, sampling, run.rng("rollout"))
    return [[t] for t in proposed] + [solved[i : i + n] for i in range(0, len(solved), n)]


def _in_turn(kinds: tuple[str, ...], count: int) -> list[str]:
    return [kinds[i % len(kinds)] for i in range(count)]


def _first() -> Triplet:
    """The first task: a program that changes nothing."""
    return triplet("+ 0", [f"[{k}, {k + 1}]" for k in range(INPUTS)])


def _sampled(known: list, count: int, rng: random.Random) -> list[Triplet]:
    return [Triplet(*task) for task in rng.sample(known, min(count, len(known)))]


def _tagged(t: Trajectory) -> Trajectory:
    return replace(t, tag=f"{t.problem.meta['role']}.{t.problem.meta['kind']}")


def _task_of(proposal: Trajectory) -> Triplet | None:
    try:
        return triplet(*read_proposal(proposal.problem, proposal.reply))
    except ProgramError:
        return None
