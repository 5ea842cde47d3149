"""Outcome-based turn rewards, bounded by how well the reasoning follows principles; and learnt values of turns."""

from __future__ import annotations

import math
import re

import numpy as np

from rewardlab.core import Group, Run, Score, Scores, Term, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward, reward
from rewardlab.settings.domain import NonNegativeFloat, Share
from rewardlab.util.outputs import values


def _check(form: str, **_: object) -> None:
    try:
        re.compile(form)
    except re.error as problem:
        raise RewardlabError(f"principled_turns: form={form!r} is no regular expression: {problem}") from None


@reward(over="groups", check=_check)
def principled_turns(
    groups: list[Group], run: Run, *, principles: Reward, form: str = r"", well_formed: NonNegativeFloat = 0.1, bound: Share = 0.5
) -> Scores:
    """At the end of each reply of an episode: 0 if it is not of this form, else well_formed + e (1 - bound + bound p).

    e: what the environment pays the turn.  p: what the reward `principles` says at its end, from 0 to 1; 1 where it says nothing.
    form: a regular expression that a reply must contain ("": any).  bound: how far what the environment pays hangs on principles.
    Inferred of Orcust (arXiv:2509.17917), whose rules the environment verifies while principles constrain the reasoning.
    """
    said = principles(groups, run)
    return [[_paid(t, s, form, well_formed, bound) for t, s in zip(*rows, strict=True)] for rows in zip(groups, said, strict=True)]


def _paid(t: Trajectory, said: Score, form: str, well_formed: float, bound: float) -> Score:
    done, kept = dict(t.paid), {} if said.missing else dict(said.steps)
    steps = [
        (end, turn_reward(done.get(end, 0.0), kept.get(end, 1.0), well_formed, bound) if re.search(form, reply) else 0.0)
        for end, reply in zip(t.ends, t.replies, strict=True)
    ]
    return Score(terms={"principled_turns": Term(None, tuple(steps))}) if steps else Score(None, why="the episode has no reply")


def turn_reward(done: float, kept: float, well_formed: float, bound: float) -> float:
    return well_formed + done * (1 - bound + bound * min(1.0, max(0.0, kept)))


@reward(over="groups")
def turn_chances(groups: list[Group], run: Run, *, model: str = "turns") -> Scores:
    """At the end of each reply of an episode, the chance of success: sigmoid(V) of a model with a value head."""
    rows = [t for group in groups for t in group]
    said = iter(values(run.model(model), rows))
    return [[_chances(t, next(said)) for t in group] for group in groups]


def _chances(t: Trajectory, said: np.ndarray) -> Score:
    # tanh does not overflow
    steps = [(at, (1 + math.tanh(float(said[at]) / 2)) / 2) for at in t.ends]
    return Score(steps=steps) if steps else Score(None, why="the episode has no reply")
