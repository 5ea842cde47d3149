"""What a turn lets a policy know of the gold answer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rewardlab.core import Group, Run, Score, Trajectory

from .reward import reward


@reward(over="groups", steps=True)
def information_gain(groups: list[Group], run: Run, *, prompt: str = "Answer:") -> list[list[Any]]:
    """For every turn but the last, how much likelier it made the gold answer, on the last decision of the turn:

    r_t = p_t - p_{t-1},   p_t = exp(mean over gold tokens of log pi(gold | history up to what turn t was answered))

    The gold answer is read to the policy as a reply that begins with `prompt`. The last turn, which gives an answer, earns
    nothing here. No verdict where the problem has no gold answer.

    Wang et al. 2025, arXiv:2510.14967
    """
    rows = [t for group in groups for t in group]
    places = [_after_answers(t) if _gold(t) else [] for t in rows]
    known = iter(belief([t.cut(n) for t, ns in zip(rows, places, strict=True) for n in ns], run.policy, prompt))
    scores = iter([_score(t, [next(known) for _ in ns]) for t, ns in zip(rows, places, strict=True)])
    return [[next(scores) for _ in group] for group in groups]


def belief(histories: Sequence[Trajectory], policy: Any, prompt: str = "Answer:") -> list[float]:
    """exp of the mean log-prob of the gold answer's tokens after each history; equal histories are scored once."""
    keys = [(t.ids.tobytes(), _gold(t)) for t in histories]
    distinct = dict(zip(keys, histories, strict=True))
    asked = list(distinct.values())
    said = policy.write(asked, [f"{prompt} {_gold(t)}" for t in asked])
    begun = policy.write(asked, [prompt] * len(asked))
    scored = policy.score(said)
    found = {key: _mean(p, s, b) for key, p, s, b in zip(distinct, scored, said, begun, strict=True)}
    return [found[key] for key in keys]


def _mean(logprobs: np.ndarray, said: Trajectory, begun: Trajectory) -> float:
    """Over the answer's tokens alone: neither those of the prompt, nor the end."""
    both = min(len(said), len(begun))
    first = int(np.argmax(said.ids[:both] != begun.ids[:both]))
    return float(np.exp(logprobs[first : len(said) - 1].mean()))


def _gold(trajectory: Trajectory) -> str:
    return "" if trajectory.problem.answer is None else str(trajectory.problem.answer).strip()


def _after_answers(trajectory: Trajectory) -> list[int]:
    """Lengths of the histories at which the policy was to decide: one for each turn."""
    found, position, before = [], 0, None
    for turn in trajectory.turns:
        if turn.author is not None and before is None:
            found.append(position)
        position += len(turn.ids)
        before = turn.author
    return found


def _score(trajectory: Trajectory, known: list[float]) -> list[tuple[int, float]] | Score:
    if not known:
        return Score(None, why="the problem has no gold answer")
    gains = [after - before for before, after in pairwise(known)]
    return list(zip(trajectory.ends[:-1], gains, strict=True))
