"""Absolute Zero: one policy proposes its own tasks and solves them; a proposal is rewarded for being learnable. No data is used.

    r_propose = 0 if all n solutions of the task are right or none is, else 1 - their share;   r_solve = 1[right]
    wrong or without a value: -1/2;  unreadable: -1
    A = (r - mean) / std over the rows of one kind (deduction, abduction, induction) and role (propose, solve): six baselines

Programs are Python: prompts say what is asked and in which form, programs run in the sandbox, and one that gives another result
the second time is no task. language="list" is the small total language of the task `triplets`, for its small model. The n
solutions that measure a proposal also train the solver. Problems of the task are never read in training.

Zhao et al. 2025, arXiv:2505.03335, and its code as kept in ulab-uiuc/multi-agent-evolve-clean (477d6fa: scripts/selfplay/7b.sh,
azr_ppo_trainer.yaml): n = 8 solutions, io_n = 6 past tasks shown, one of induction, learnability as 1 - the share that is right, no
KL, no reward for complexity or diversity.
"""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor

from rewardlab.checks.claim import Claim
from rewardlab.core import Batch, Group, Problem, Recipe, Run, Sampling, Trajectory, credit, measure, rollout, seed_of
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import count_right, mean_interval
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.weighting import token_mean
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt
from rewardlab.tasks.programs import ProgramError
from rewardlab.worlds.triplets import language as lists
from rewardlab.worlds.triplets import python
from rewardlab.worlds.triplets.rewards import solved_or_learnable
from rewardlab.worlds.triplets.triplet import INPUTS, KINDS, Triplet

# ---- Self-play: one policy proposes tasks and solves them. The only data is a trivial first task ---------------------

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


# ---- the recipe ---------------------------------------------------------------------------------------------------------


@credit
def by_kind_and_role(a: Tensor, batch: Batch, run: Run, *, proposer: float = 1.0, eps: float = 1e-4) -> Tensor:
    """Every decision gets its row's reward, normalised over the rows of its tag; `proposer` scales that of proposals.

    Rows without a verdict get 0. The only row of its tag has nothing to be compared with, and gets 0.
    """
    tags = [t.tag for t, _ in batch.rows]
    rewards, judged, advantages = a.sum(1), batch.rewarded.any(1), torch.zeros(len(a), device=a.device)
    # tags in the order of the batch, not of a set, which differs from process to process
    for tag in dict.fromkeys(tags):
        rows = torch.tensor([t == tag for t in tags], device=a.device) & judged
        # the standard deviation of one number is NaN
        if int(rows.sum()) > 1:
            scale = proposer if tag.startswith("propose") else 1.0
            advantages[rows] = scale * (rewards[rows] - rewards[rows].mean()) / (rewards[rows].std() + eps)
    return torch.where(batch.mask, advantages[:, None], 0.0)


@measure
def solved(problems: list[Problem], run: Run) -> dict[str, float]:
    """pass@1 of held-out tasks, which are never proposed in training, with its 95% interval; and pass@1 of each kind."""
    right = [float(row[0]) for row in count_right(problems, run, 1, 1.0)]
    low, high = mean_interval(right)
    kinds = [p.meta.get("kind") for p in problems]
    by_kind = {k: [r for r, kind in zip(right, kinds, strict=True) if kind == k] for k in KINDS}
    overall = {"pass@1": sum(right) / len(right), "ci95_low": low, "ci95_high": high, "n": float(len(right))}
    return overall | {k: sum(v) / len(v) for k, v in by_kind.items() if v}


def absolute_zero(
    base: Recipe | None = None, *, n: int = 8, past: int = 6, proposer: float = 1.0, temperature: float = 1.0,
    language: Literal["list", "python"] = "python",
) -> Recipe:  # fmt: skip
    """n: solutions of each task.  past: tasks that a proposer is shown.  proposer: weight of its credit; 0 leaves it as it is.
    language: of programs."""
    base = base or grpo()
    return base.but(
        rollout=self_play(n=n, past=past, temperature=temperature, language=language),
        reward=solved_or_learnable(),
        credit=by_kind_and_role(proposer=proposer),
        weighting=token_mean(),
        measure=solved(),
    )


fidelity = "core"
left_out = (
    "a buffer of tasks that the model fills before training, 10 inputs for a task of induction (here 4), solvers sampled "
    "anew for training (here those that measure a proposal), and an entropy bonus of .001"
)
data = Data(
    prompt="a held-out problem; nothing of the rows is read in training, which makes up its own tasks",
    answer=Column("the gold answer of a held-out problem", optional=True),
    kind=Column("the kind of a held-out problem: deduction, abduction or induction", optional=True),
    rows=[
        {"prompt": "What does sorted([3, 1, 2])[0] return in Python? End with Answer: and the value.", "answer": "1"},
        {"prompt": "What does len('hello') return in Python?", "answer": "5"},
    ],
)

claim = Claim(
    says="a proposer that learns to pose learnable tasks teaches the solver more than one that does not learn",
    versus="absolute_zero", task="triplets", measure="pass@1", direction="higher", margin=0.02,
    settings={"language": "list", "past": 2},
    versus_settings={"proposer": 0.0, "language": "list", "past": 2},
    steps=60,
    finding="17% right before, 21% after with a proposer that learns and with one that does not: both solvers learn a little, "
    "from a start that is lower than a world asks",
    version=3, replaces="all tasks of induction were of the program that changes nothing; in 60 updates neither solver got better",
)  # fmt: skip
baseline = "grpo"
