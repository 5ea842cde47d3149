"""Every generator of the package reasoning-gym, by name, judged by its own scorer.

    reasoning_gym:chain_sum
    reasoning_gym:chain_sum,min_terms=2,max_terms=3

Stojanovski et al. 2025, arXiv:2505.24760 (reasoning-gym, Apache-2.0; an optional extra: pip install 'rewardlab[gym-tasks]').

A question belongs to the test set by a hash of its text, so no question is in both sets, whatever is sampled. Seeds alone would not
do: most generators sample position i of seed s from Random(s + i), so that seeds 0 and 1 share all problems but one.

Scores are the package's own, with partial credit and flaws: tests/tasks/test_reasoning_gym.py names the known flaws.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewardlab.core import Problem, Task, ask, seed_of
from rewardlab.errors import RewardlabError, unknown
from rewardlab.tasks.sources import held_out

from . import client as gym

TEST_SHARE = 0.25
SAMPLES = 200
"""Samples in a row without a new question of the split after which we assume that there are none left."""
SYSTEM = "Give the final answer between <answer> and </answer>."


def reasoning_gym(
    *, generator: str, options: Mapping[str, Any] | None = None, test_size: int = 100, system: str | None = SYSTEM
) -> Task:
    """Problems of one generator.

    options: the generator's own settings.  test_size: at most so many test problems, fewer where the generator knows
    fewer questions; each takes about four samples, and the slowest generators take half a second for one.
    system: the system message.  `codeio` is refused: it runs programs that a language model wrote.
    """
    known = gym.ask("generators")
    if generator not in known:
        raise unknown("generator of reasoning-gym", generator, known)
    if known[generator]:
        raise RewardlabError(f"the generator {generator} is refused: {known[generator]}")
    if test_size < 1:
        raise RewardlabError(f"test_size must be at least 1, not {test_size}")
    source = Generated(generator, _written(generator, options or {}), system)
    return Task(
        name=f"reasoning_gym_{generator}",
        train=source,
        test=source.test_set(test_size),
        verifier="reasoning_gym_answer",
        max_new=512,
        about=f"{generator} of reasoning-gym, judged by its own scorer",
        columns=("prompt", "answer", "generator", "options", "entry"),
    )


@dataclass(frozen=True)
class Generated:
    """An endless source over one generator, without the questions that are held out."""

    generator: str
    options: str
    system: str | None

    def __getitem__(self, position: int) -> Problem:
        if position < 0:
            raise IndexError(f"a source has no position {position}: positions count from 0")
        for attempt in range(SAMPLES):
            problem, held = self.sample("train", position, attempt)
            if not held:
                return problem
        raise RewardlabError(f"{self.generator} with the options {self.options} asks too few different questions to train on")

    def test_set(self, size: int) -> list[Problem]:
        """The first held-out questions in an order that is always the same."""
        problems: dict[str, Problem] = {}
        attempt = last = 0
        # SAMPLES attempts without a new question: there are probably none left
        while len(problems) < size and attempt - last < SAMPLES:
            problem, held = self.sample("test", attempt)
            attempt += 1
            if held and problem.key not in problems:
                problems[problem.key], last = problem, attempt
        return list(problems.values())

    def sample(self, *where: Any) -> tuple[Problem, bool]:
        """The problem at a place, and whether its question is held out, whatever the system message."""
        index = seed_of("reasoning_gym", self.generator, self.options, *where) % (1 << 31)
        entry = gym.ask("sample", generator=self.generator, settings=self.options, index=index)
        meta = {"generator": self.generator, "options": self.options, "entry": entry["entry"]}
        problem = ask(entry["question"], entry["answer"], self.system, **meta)
        return problem, held_out(ask(entry["question"]), TEST_SHARE)


def _written(generator: str, options: Mapping[str, Any]) -> str:
    """The options as JSON text, names checked."""
    known_options = gym.ask("options", generator=generator)
    for name in options:
        if name not in known_options:
            raise unknown(f"option of {generator}", name, known_options)
    try:
        return json.dumps(dict(options), sort_keys=True)
    except TypeError as e:
        raise RewardlabError(f"the options of {generator} must be plain data: {e}") from e
