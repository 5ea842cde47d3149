"""Warm-up: supervised training on an error-prone teacher's solutions, until reinforcement learning can begin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rewardlab import registry
from rewardlab.core import Run, Task
from rewardlab.engine.distributed import alone
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.models.start import Start, measured_start
from rewardlab.runs.config import RunConfig
from rewardlab.util.progress import Bar, console

ROWS, SEED = 32, 0
WORTH = 0.01
"""A round that raises the start by less is the last one."""


@dataclass(frozen=True)
class Pupil:
    """Who is taught.  name: in words.  rate: of learning, in the first round.  most: batches of all rounds together, at most."""

    name: str = "the small policy"
    rate: float = 3e-3
    most: int = 4000


SMALL = Pupil()


@alone()
def teach(policy: Any, problems: Any, steps: int, task: Task | None, once: bool = False, pupil: Pupil = SMALL) -> Start | None:
    """Teach a policy `steps` batches of worked solutions, and on until it starts in the task's window, each round twice the last.

    The learning rate decays to its end in every round, so that each ends on a policy that has settled. A policy that gets worse
    is taken back. Returns the start (None: not measured), and says in words where it lies outside the window.
    """
    best, weights = None, None
    past = 0
    while past == 0 or past + steps <= pupil.most:
        _lessons(policy, problems, steps, past, task, pupil)
        past += steps
        if task is None or (start := measured_start(policy, task)) is None:
            return None
        console.print(f"{task.name} now starts at {start.single:.2f}, greedily {start.greedy:.2f}", highlight=False, markup=False)
        gained = math.inf if best is None else start.single - best.single
        if gained > 0:
            best, weights = start, {name: value.clone() for name, value in policy.model.state_dict().items()}
        if once or start.reached(task.window) or gained < WORTH:
            break
        steps *= 2
    assert task is not None
    assert best is not None
    assert weights is not None
    policy.model.load_state_dict(weights)
    if trouble := best.trouble(task.window):
        console.print(f"note: {pupil.name} for {task.name} {trouble}", highlight=False, markup=False, soft_wrap=True)
    return best


def _lessons(policy: Any, problems: Any, steps: int, past: int, task: Task | None, pupil: Pupil) -> None:
    """One round of supervised training, after `past` batches of others."""
    # later rounds go on from a policy that has settled: a full rate would throw away much of it
    rate = pupil.rate / (1 if past == 0 else 2)
    recipe = registry.build("sft", {"lr": rate, "problems": ROWS}).but(warmup=20, lr_end=0.05, measure=None)
    run = Run(policy, steps=steps, seed=SEED)
    # no test problems and no measure: the warm-up is not evaluated
    ops = Ops(recipe, run, Task("lessons", problems, (), "final_number"), RunConfig(start=past * ROWS))
    again = ", longer" if past else " (once)"
    with Bar(f"training {pupil.name} for {task.name if task else 'arithmetic and countdown'}{again}", steps) as bar:
        while run.step < steps:
            standard_loop(recipe, run, ops)
            run.step += 1
            bar.advance(f"loss {run.metrics['loss']:.3f}")
