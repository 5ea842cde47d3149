"""The starting accuracy of a task's small policy, and whether it leaves room to learn."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab import registry
from rewardlab.core import Problem, Run, Task, Trajectory, Turn, seed_of
from rewardlab.util.files import write_json

FILE = "start.json"
PROBLEMS = 1000
NEAR = 0.85
"""A policy that is right so often as this share of its teacher has learnt what the teacher can teach it."""


@dataclass(frozen=True)
class Start:
    """Mean verdict of the task's verifier (1 right, 0 wrong; graded tasks: the grade), over n problems.

    single: one sample at temperature 1.  greedy: the likeliest token each time.  teacher: of the worked solutions that the policy
    is taught; None where they are episodes.
    """

    single: float
    greedy: float
    teacher: float | None
    n: int

    def reached(self, window: tuple[float, float]) -> bool:
        """Whether more warm-up would not help: the window's lower end is reached, or the teacher's own rate nearly."""
        # greedily too: a policy that has not yet learnt the format is wrong greedily as well
        return min(self.single, self.greedy) >= window[0] or (self.teacher is not None and self.single >= NEAR * self.teacher)

    def trouble(self, window: tuple[float, float]) -> str | None:
        """What is wrong with it, in words; None where it lies in the window."""
        low, high = window
        found = f"starts at {self.single:.2f} (greedily {self.greedy:.2f}, its teacher {_shown(self.teacher)})"
        if self.single < low:
            better = (
                "its teacher is no better; lower the teacher's error, unless rewards are meant to be rare"
                if self.reached(window)
                else "more warm-up did not help"
            )
            return f"{found}, below {low:g}: {better}"
        if self.single > high:
            return f"{found}, above {high:g}: little is left to learn; raise the teacher's error"
        if self.greedy > high:
            return f"{found}: its teacher slips at random, so what it says most often is right already, and RL only sharpens it"
        return f"{found}: what it would say most often is right less than {low:g} of the time" if self.greedy < low else None


def _shown(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.2f}"


def measured_start(policy: Any, task: Task, n: int = PROBLEMS) -> Start | None:
    """The start of a policy on training problems beyond those of any warm-up or run, by the task's own verifier.

    None for a task that is played in turns and does not say in which environment.
    """
    problems = fresh(task, n)
    taught = [task.demonstrate(p, random.Random(i)) for i, p in enumerate(problems)] if task.demonstrate else []
    episodes = any(not isinstance(solution, str) for solution in taught)
    if episodes and task.environment is None:
        return None
    run = Run(policy, max_new=task.max_new, verify=registry.part("reward", task.verifier))
    single, greedy = (_mean(player(task, temperature)(problems, run), run) for temperature in (1.0, 0.0))
    teacher = None if episodes or not taught else _mean([[_said(p, t)] for p, t in zip(problems, taught, strict=True)], run)
    return Start(round(single, 4), round(greedy, 4), None if teacher is None else round(teacher, 4), n)


def fresh(task: Task, n: int) -> list[Problem]:
    """Training problems at positions that neither a warm-up nor a run reaches; in a small task some may come again by chance."""
    return [task.train[seed_of("start", i) % (1 << 40)] for i in range(n)]


def player(task: Task, temperature: float = 1.0, n: int = 1) -> Any:
    """The rollout by which a task is played: n replies, or n episodes in its environment."""
    if task.environment is None:
        return registry.part("rollout", "independent", n=n, temperature=temperature)
    environment = registry.part("environment", task.environment)
    return registry.part("rollout", "interactive", env=environment, n=n, temperature=temperature, turns=task.turns)


def _said(problem: Problem, text: str) -> Trajectory:
    return Trajectory(problem, (Turn("policy", np.zeros(len(text), np.int64), text=text),), "end")


def _mean(groups: Sequence[list[Trajectory]], run: Run) -> float:
    return float(np.mean([score.value or 0.0 for row in run.verify(list(groups), run) for score in row]))


# ---- kept beside a checkpoint ----------------------------------------------------------------------------------------


def kept(folder: Path, task: Task) -> Start | None:
    """The start of a task as it was written beside the checkpoint; None if it was not measured."""
    path = folder / FILE
    found = json.loads(path.read_text("utf-8")).get(_key(task)) if path.is_file() else None
    return Start(**found) if found else None


def keep(folder: Path, task: Task, start: Start) -> None:
    """Write the start of a task beside the checkpoint."""
    path = folder / FILE
    known = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    write_json(path, {**known, _key(task): asdict(start)})


def _key(task: Task) -> str:
    source = task.source or {"name": task.name, "options": {}}
    return "".join([str(source["name"]), *(f" {k}={v!r}" for k, v in sorted(source["options"].items()))])
