"""Other starts of a small policy: the same warm-up from other weights, on other problems, with other mistakes of the same teacher.

    embedded#3     the fourth start of the small policy for a task; embedded, or embedded#0, is the first

Runs from one start tell how a method does from there. Whether it does so from anywhere needs several.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rewardlab.core import Problem, Task
from rewardlab.errors import RewardlabError
from rewardlab.models import embedded
from rewardlab.models.fingerprint import fingerprint as code_fingerprint
from rewardlab.models.start import keep
from rewardlab.models.warmup import teach
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.util.files import cached

MARK = "#"
APART = 10_000_000
"""Positions between the problems of one start and the next: more than any warm-up sees."""
MAKERS = ("models/starts.py",)


@dataclass(frozen=True)
class Later:
    """Problems from a later position on."""

    problems: Any
    by: int

    def __getitem__(self, i: int) -> Problem:
        return self.problems[i + self.by]


def parted(name: str) -> tuple[str, int]:
    """`embedded#3` as embedded and 3; a name without a mark is the first start, 0. Raises RewardlabError for what is no number."""
    kind, mark, number = name.partition(MARK)
    if mark and not number.isdecimal():
        raise RewardlabError(f"{name!r}: the start of a small policy is a number, as in {kind}{MARK}1")
    return kind, int(number or 0)


def start(task: Task | None, number: int, device: str = "auto", dtype: str = "auto") -> LlamaPolicy:
    """The small policy for a task from its start of this number, 0 being the usual one. Trained once, and cached."""
    return LlamaPolicy.load(checkpoint(task, number), device, dtype)


def checkpoint(task: Task | None, number: int) -> Path:
    """The folder of the cached checkpoint; trains the policy if it is not there."""
    if number == 0:
        return embedded.checkpoint(task)
    own = embedded.with_own_policy(task)
    name = "embedded" if own is None else f"embedded-{own.name}"
    made_by = code_fingerprint((), MAKERS, (embedded.fingerprint(own), number))
    return cached(f"{name}-{number}-{made_by}", lambda folder: _make(folder, own, number))


def _make(folder: Path, task: Task | None, number: int) -> None:
    sources = embedded._demonstrations(task)
    problems = embedded.Mixture(tuple(sources[i] for i in embedded.MIXTURE) if task is None else sources)
    if task is not None and task.name in embedded.TASKS:
        # as the usual start of such a task is made of the usual shared policy
        policy, steps = LlamaPolicy.load(checkpoint(None, number), "cpu", "auto"), embedded.RELATIVE_STEPS
    else:
        policy, steps = embedded._new(embedded.tokenizer(task), {}), embedded.STEPS if task is None else task.warmup_steps
        policy.model.initialise(torch.Generator().manual_seed(number))
    found = teach(policy, Later(problems, number * APART), steps, task)
    policy.save(folder)
    if task is not None and found is not None:
        keep(folder, task, found)
