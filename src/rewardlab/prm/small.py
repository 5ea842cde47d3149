"""The small scorer of a task: a process reward model that learnt from few labelled solutions, as annotators would give them.

    prm:embedded:arithmetic:biased=0.75,error=0.1

It is the implicit one of `prm/implicit.py`: the task's small policy, trained once on SOLUTIONS of its own replies whose steps were
checked against gold steps, to problems that no run trains on. So it errs, and its errors can be exploited, as those of a scorer
that is no oracle. It reads text: policies of other tasks can be scored by it too.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from rewardlab import registry
from rewardlab.core import Problem, Task, Trajectory, Turn
from rewardlab.data.solutions import Solution
from rewardlab.engine.distributed import alone
from rewardlab.errors import RewardlabError
from rewardlab.models import embedded
from rewardlab.models.fingerprint import fingerprint
from rewardlab.models.samples import samples
from rewardlab.prm.training import train_scorer
from rewardlab.text.splitters import cut
from rewardlab.util.files import cached

SOLUTIONS, EACH = 2048, 2
"""Labelled solutions, and how many of them are to one problem."""
STEPS, ROWS, LR, BETA = 150, 32, 3e-4, 0.5
FAR = 1 << 40
"""The first training problem that it learns from: runs train on the first ones."""


def checkpoint(name: str) -> Path:
    """The folder of the small scorer of the task of this name; trains it if it is not there, which takes a minute.

    Raises RewardlabError for a task whose small policy writes no steps that can be checked.
    """
    task = registry.endless(registry.task(name))
    if task.demonstrate is None or task.step_verifier is None:
        raise RewardlabError(
            f"there is no small scorer for the task {task.name}: it takes a small policy and steps that can be checked (as "
            "arithmetic has); name a checkpoint, prm:PATH"
        )
    rooms = ("small", "training", "recipe", "rows", "held_out", "implicit")
    made_by = (*(f"prm/{room}.py" for room in rooms), "objectives/step_labels.py")
    key = fingerprint([name.partition(":")[0]], made_by, (embedded.checkpoint(task).name, name, SOLUTIONS, STEPS))
    return cached(f"scorer-{task.name}-{key}", lambda folder: _make(name, task, folder)) / "scorer"


@alone()
def _make(name: str, task: Task, folder: Path) -> None:
    run = folder / "run"
    train_scorer(
        labelled_solutions(name, task), f"embedded:{name}", folder / "scorer", kind="implicit", beta=BETA, lr=LR, problems=ROWS,
        steps=STEPS, run=run, device="cpu",
    )  # fmt: skip
    shutil.rmtree(run)


def labelled_solutions(name: str, task: Task) -> list[Solution]:
    """Replies of the task's small policy, each step with whether it is right."""
    problems = [task.train[FAR + i] for i in range(SOLUTIONS // EACH)]
    written = samples(name, problems, EACH)
    return [_labelled(problem, text, right) for problem, row in zip(problems, written, strict=True) for text, right in row]


def _labelled(problem: Problem, text: str, right: float) -> Solution:
    steps = [step for line in cut(text, "newline") if (step := line.strip())] or ["?"]
    # every step a turn of its own, which is how rewards of steps read solutions that are no replies
    turns = [Turn(None, np.zeros(1, np.int64)), *(Turn("policy", np.zeros(1, np.int64), text=step) for step in steps)]
    row = Trajectory(problem, tuple(turns), "end", steps=tuple(range(1, len(steps) + 1)))
    judged = registry.part("reward", "correct_steps")([[row]], None)[0][0]
    labels = tuple(label for _, label in judged.steps) or (None,) * len(steps)
    return Solution(problem.question, tuple(steps), labels, right >= 1.0, str(problem.answer))
