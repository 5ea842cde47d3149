"""A reward for turns after which the policy finds the gold answer likelier."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rewardlab.core import Group, Run, Score, Trajectory
from rewardlab.rewards.reward import reward


@reward(over="groups", steps=True)
def information_gain(groups: list[Group], run: Run, *, prompt: str = "Answer:") -> list[list[Any]]:
    """For every turn but the last, the increase of the gold answer's probability, on the last decision of the turn:

    r_t = p_t - p_{t-1},   p_t = exp(mean over gold tokens of log pi(gold | history up to the environment's answer to turn t))

    The policy scores the gold answer as a reply that begins with `prompt`. The last turn, which gives the answer, has no reward
    here. No verdict if the problem has no gold answer.

    Wang et al. 2025, arXiv:2510.14967
    """
    rows = [t for group in groups for t in group]
    cuts = [_decision_points(t) if _gold(t) else [] for t in rows]
    beliefs = iter(belief([t.cut(n) for t, ns in zip(rows, cuts, strict=True) for n in ns], run.policy, prompt))
    scores = iter([_score(t, [next(beliefs) for _ in ns]) for t, ns in zip(rows, cuts, strict=True)])
    return [[next(scores) for _ in group] for group in groups]


def belief(histories: Sequence[Trajectory], policy: Any, prompt: str = "Answer:") -> list[float]:
    """exp of the mean log-prob of the gold answer's tokens after each history; equal histories are scored once."""
    # the rows of a group share their first history, the prompt
    keys = [(t.ids.tobytes(), _gold(t)) for t in histories]
    distinct = dict(zip(keys, histories, strict=True))
    rows = list(distinct.values())
    answered = policy.write(rows, [f"{prompt} {_gold(t)}" for t in rows])
    prompted = policy.write(rows, [prompt] * len(rows))
    logprobs = policy.score(answered)
    beliefs = {key: _mean(p, a, b) for key, p, a, b in zip(distinct, logprobs, answered, prompted, strict=True)}
    return [beliefs[key] for key in keys]


def _mean(logprobs: np.ndarray, answered: Trajectory, prompted: Trajectory) -> float:
    """exp of the mean over the answer's tokens alone, without those of the prompt and the end token."""
    both = min(len(answered), len(prompted))
    # after the prompt alone comes the end token, so the answer begins where the two differ
    first = int(np.argmax(answered.ids[:both] != prompted.ids[:both]))
    # the last token is the end token, which says nothing about the answer
    return float(np.exp(logprobs[first : len(answered) - 1].mean()))


def _gold(trajectory: Trajectory) -> str:
    return "" if trajectory.problem.answer is None else str(trajectory.problem.answer).strip()


def _decision_points(trajectory: Trajectory) -> list[int]:
    """The length of the history before each turn of the policy."""
    lengths, position, before = [], 0, None
    for turn in trajectory.turns:
        # turns of the policy in a row are one reply, so only the first of them counts
        if turn.author is not None and before is None:
            lengths.append(position)
        position += len(turn.ids)
        before = turn.author
    return lengths


def _score(trajectory: Trajectory, beliefs: list[float]) -> list[tuple[int, float]] | Score:
    if not beliefs:
        return Score(None, why="the problem has no gold answer")
    gains = [after - before for before, after in pairwise(beliefs)]
    return list(zip(trajectory.ends[:-1], gains, strict=True))
