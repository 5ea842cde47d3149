"""Pointmass: push a point to a goal, learning from preferences between recorded segments.

The data are episodes of drivers of every skill, cut into segments; of two, the one that earned more is `chosen`. Episodes of your
own are read from a folder (`tasks.episodes`). `environment.py` has the same dynamics for one episode; here they are written for
many episodes at a time, and a test compares the two.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from rewardlab.core import Problem, Task, ask, seed_of
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.episodes import Episode, load_episodes

SHAPE: dict[str, Any] = {"observation": 6, "action": 2, "discrete": False}
LENGTH = 48


def pointmass(
    *,
    pairs: PositiveInt = 500,
    segment: PositiveInt = 16,
    episodes: PositiveInt = 200,
    data: str | None = None,
    skill: Share = 1.0,
    test_size: PositiveInt = 200,
) -> Task:
    """pairs: to learn from.  segment: steps of each.  episodes: to record, from which the segments are cut, unless the folder
    `data` holds recorded ones with the same observations.  skill: of the best driver; where it is low, even preferred segments are
    no model to imitate.
    """
    if min(pairs, segment, test_size) < 1 or episodes < 2:
        raise RewardlabError("pointmass: pairs, segment and test_size must be at least 1, and episodes 2")
    recorded = load_episodes(data) if data else drive(episodes, seed_of("pointmass", "train"), skill)
    held_out = drive(max(2, test_size), seed_of("pointmass", "test"), skill)
    return Task(
        name="pointmass",
        train=_problems(recorded, pairs, segment, "train"),
        test=_problems(held_out, test_size, segment, "test"),
        verifier="earned",
        max_new=1,
        about="push a point to its goal, learning from preferences between recorded segments",
        model="actor",
        columns=("prompt", "start", "goal", "chosen", "rejected", "shape"),
    )


def drive(n: int, seed: int, skill: float = 1.0, length: int = LENGTH) -> list[Episode]:
    """Episodes of n drivers: each force is `s` parts towards the goal, `1 - s` towards another place, plus noise.

    s of each driver is uniform in 0 .. skill.
    """
    rng = np.random.default_rng(seed)
    x, goal, elsewhere = rng.uniform(-1, 1, (3, n, 2))
    s, v = rng.uniform(0, skill, (n, 1)), np.zeros((n, 2))
    observed, forces, rewards = [_observe(x, v, goal)], [], []
    for _ in range(length):
        intended = s * _head_for(goal, x, v) + (1 - s) * _head_for(elsewhere, x, v)
        force = np.clip(intended + 0.3 * rng.standard_normal((n, 2)), -1, 1).astype(np.float32)
        v = 0.8 * v + 0.2 * force
        x = np.clip(x + 0.25 * v, -1, 1)
        observed.append(_observe(x, v, goal))
        forces.append(force)
        rewards.append(-np.linalg.norm(goal - x, axis=-1).astype(np.float32))
    # recordings end by truncation, since the dynamics have no terminal state
    ends = np.arange(length) == length - 1
    columns = (np.stack(c, 1) for c in (observed, forces, rewards))
    return [Episode(o, a, r, np.zeros(length, bool), ends) for o, a, r in zip(*columns, strict=True)]


def _observe(x: np.ndarray, v: np.ndarray, goal: np.ndarray) -> np.ndarray:
    return np.concatenate((x, v, goal - x), -1).astype(np.float32)


def _head_for(place: np.ndarray, x: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.clip(3 * (place - x) - 2 * v, -1, 1)


def _problems(recorded: list[Episode], n: int, segment: int, name: str) -> list[Problem]:
    """n problems, each with a pair of segments from two different episodes."""
    long = [e for e in recorded if len(e) >= segment]
    if len(long) < 2:
        raise RewardlabError(f"pointmass: {len(long)} episodes have the {segment} steps of a segment; two are needed")
    rng = random.Random(seed_of("pointmass", name, n, segment))
    return [_problem(rng, long, segment, i) for i in range(n)]


def _problem(rng: random.Random, recorded: list[Episode], segment: int, number: int) -> Problem:
    start, goal = ([round(rng.uniform(-1, 1), 3) for _ in range(2)] for _ in range(2))
    pair = [e.cut(rng.randint(0, len(e) - segment), segment) for e in rng.sample(recorded, 2)]
    # the preference follows from the return, without noise
    chosen, rejected = sorted(pair, key=lambda e: -float(e.rewards.sum()))
    question = f"Pair {number}. Push the point from {start} to {goal}."
    return ask(question, start=start, goal=goal, chosen=_plain(chosen), rejected=_plain(rejected), shape=SHAPE)


def _plain(segment: Episode) -> dict[str, np.ndarray]:
    return {"observations": segment.observations, "actions": segment.actions, "rewards": segment.rewards}
