"""Self-play: one policy proposes tasks and solves them. The only data is a trivial first task."""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from typing import Any, Literal

from rewardlab.core import Group, Problem, Run, Sampling, Trajectory, rollout, seed_of
from rewardlab.core.domain import NonNegativeFloat, NonNegativeInt, PositiveInt
from rewardlab.errors import RewardlabError
from rewardlab.tasks.programs import ProgramError

from . import language as lists
from . import python
from .triplet import INPUTS, KINDS, Triplet

MEMORY = "self_play.tasks"
LARGEST = 2000
"""Tasks of a kind that are remembered."""
TRIED = 16
"""Inputs of past tasks that a program is tried on."""
Tasks = dict[str, list]
"""Tasks by kind, as triplets; out of a saved memory, as plain lists."""
WORLDS: dict[str, Any] = {"list": lists, python.PYTHON: python}


@rollout(across_problems=True, rows=lambda n, **_: n + 1)
def self_play(
    problems: list[Problem],
    run: Run,
    *,
    n: PositiveInt = 8,
    past: NonNegativeInt = 2,
    temperature: NonNegativeFloat = 1.0,
    kinds: tuple[str, ...] = KINDS,
    language: Literal["list", "python"] = "list",
) -> list[Group]:
    """As many proposals as there are problems, of each kind in turn, and n solutions of each task. The problems are not used.

    A proposer is shown `past` tasks of its kind, which its own should differ from; of induction, a program from tasks of deduction
    and abduction, since its own proposals add inputs alone. Where a proposal is not a valid task, a past one is solved instead; of
    induction, one of those programs on inputs of past tasks. Rows are tagged "propose.KIND" or "solve.KIND"; path[0] says which
    belong together. Every valid task is kept in `run.memory`.  language: of programs: the small one of `tasks.programs`, or Python,
    which runs in the sandbox.  Zhao et al. 2025, arXiv:2505.03335
    """
    world = WORLDS[language]
    tasks_by_kind = _remembered(run, world)
    rng = random.Random(seed_of(run.seed, "self-play", run.moment))
    prompts = [world.to_propose(kind, _shown(tasks_by_kind, kind, past, rng)) for kind in _in_turn(kinds, len(problems))]
    sampling = Sampling(run.max_new, temperature)
    rows = run.policy.read([Trajectory(p, path=(i,)) for i, p in enumerate(prompts)], [p.prompt for p in prompts])
    proposed = run.policy.extend([_tagged(t) for t in rows], sampling, run.rng("rollout"))
    tasks, valid = [], 0
    for i, (t, task) in enumerate(zip(proposed, _tasks_of(proposed, world), strict=True)):
        kind = t.problem.meta["kind"]
        valid += task is not None
        # a past task gets a path of its own, so that its solvers do not score the invalid proposal
        tasks.append((i if task else len(proposed) + i, world.to_solve(kind, task or _past(tasks_by_kind, kind, world, rng))))
        if task and task not in tasks_by_kind[kind]:
            tasks_by_kind[kind] = [*tasks_by_kind[kind], task][-LARGEST:]
    run.log("proposals_valid", valid / max(1, len(proposed)))
    rows = run.policy.read([Trajectory(p, path=(i,)) for i, p in tasks], [p.prompt for _, p in tasks])
    rows = [replace(_tagged(t), path=(*t.path, k)) for t in rows for k in range(n)]
    solved = run.policy.extend(rows, sampling, run.rng("rollout"))
    return [[t] for t in proposed] + [solved[i : i + n] for i in range(0, len(solved), n)]


def _remembered(run: Run, world: Any) -> Tasks:
    """The run's tasks, at first one of each kind that is trivial."""
    if MEMORY not in run.memory:
        (first,) = world.made([world.FIRST])
        if not isinstance(first, Triplet):
            raise RewardlabError(f"self_play: not even the first program can be run: {first}")
        run.memory[MEMORY] = {kind: [first] for kind in KINDS}
    return run.memory[MEMORY]


def _in_turn(kinds: tuple[str, ...], count: int) -> list[str]:
    return [kinds[i % len(kinds)] for i in range(count)]


def _shown(known: Tasks, kind: str, past: int, rng: random.Random) -> list[Triplet]:
    """Past tasks that a proposer is shown."""
    if kind == "induction":
        return _sampled(_with_programs(known), 1, rng)
    return _sampled(known[kind], past, rng)


def _with_programs(known: Tasks) -> list:
    """The tasks whose programs were proposed."""
    return [*known["deduction"], *known["abduction"]]


def _past(known: Tasks, kind: str, world: Any, rng: random.Random) -> Triplet:
    """A past task, to be solved again; of induction, a proposed program on inputs of past tasks for which it has a value."""
    if kind != "induction":
        return _sampled(known[kind], 1, rng)[0]
    ((program, _, _),) = _sampled(_with_programs(known), 1, rng)
    inputs = list(dict.fromkeys(x for tasks in known.values() for _, given, _ in tasks for x in given))
    inputs = rng.sample(inputs, min(TRIED, len(inputs)))
    found = [t for t in world.made([(program, [x]) for x in inputs]) if isinstance(t, Triplet)][:INPUTS]
    if len(found) == INPUTS:
        return Triplet(program, tuple(t.inputs[0] for t in found), tuple(t.outputs[0] for t in found))
    # too few fit: a task of its own kind, of which there is one from the start
    return _sampled(known[kind], 1, rng)[0]


def _sampled(known: list, count: int, rng: random.Random) -> list[Triplet]:
    return [Triplet(*task) for task in rng.sample(known, min(count, len(known)))]


def _tagged(t: Trajectory) -> Trajectory:
    return replace(t, tag=f"{t.problem.meta['role']}.{t.problem.meta['kind']}")


def _tasks_of(proposals: list[Trajectory], world: Any) -> list[Triplet | None]:
    """The task that each proposal states, None where it states none; all programs run together."""
    stated: dict[int, tuple[str, list[str]]] = {}
    for i, t in enumerate(proposals):
        with contextlib.suppress(ProgramError):
            stated[i] = world.read_proposal(t.problem, t.reply)
    made = dict(zip(stated, world.made(list(stated.values())), strict=True))
    return [task if isinstance(task := made.get(i), Triplet) else None for i in range(len(proposals))]
