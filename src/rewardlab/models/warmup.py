"""Warm-up: supervised training on an error-prone teacher's solutions, until reinforcement learning can begin."""

from __future__ import annotations

import math
from typing import Any

from rewardlab import registry
from rewardlab.core import Run, Task
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.models.start import Start, measured_start
from rewardlab.runs.config import RunConfig
from rewardlab.util.progress import Bar, console

ROWS, LR, SEED = 32, 3e-3, 0
MOST = 4000
"""Batches of all rounds together, at most."""
WORTH = 0.01
"""A round that raises the start by less is the last one."""


def teach(policy: Any, problems: Any, steps: int, task: Task | None, once: bool = False) -> Start | None:
    """Teach a policy `steps` batches of worked solutions, and on until it starts in the task's window, each round twice the last.

    The learning rate decays to its end in every round, so that each ends on a policy that has settled. A policy that gets worse
    is taken back. Returns the start (None: not measured), and says in words where it lies outside the window.
    """
    best, weights = None, None
    past = 0
    while past == 0 or past + steps <= MOST:
        _lessons(policy, problems, steps, past, task)
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
        console.print(f"note: the small policy for {task.name} {trouble}", highlight=False, markup=False, soft_wrap=True)
    return best


def _lessons(policy: Any, problems: Any, steps: int, past: int, task: Task | None) -> None:
    """One round of supervised training, after `past` batches of others."""
    # later rounds go on from a policy that has settled: a full rate would throw away much of it
    recipe = registry.build("sft", {"lr": LR / (1 if past == 0 else 2), "problems": ROWS}).but(warmup=20, lr_end=0.05, measure=None)
    run = Run(policy, steps=steps, seed=SEED)
    # no test problems and no measure: the warm-up is not evaluated
    ops = Ops(recipe, run, Task("lessons", problems, (), "final_number"), RunConfig(start=past * ROWS))
    again = ", longer" if past else " (once)"
    with Bar(f"training the small policy for {task.name if task else 'arithmetic and countdown'}{again}", steps) as bar:
        while run.step < steps:
            standard_loop(recipe, run, ops)
            run.step += 1
            bar.advance(f"loss {run.metrics['loss']:.3f}")
