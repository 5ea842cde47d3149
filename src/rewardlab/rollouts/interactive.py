"""Episodes: policy and environment take turns until one of them ends the episode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rewardlab.core import Environment, Group, Message, Problem, Run, Sampling, Trajectory, Turn, rollout, seed_of
from rewardlab.core.episode import place_of
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.splitters import mark


@rollout
def interactive(
    problems: list[Problem], run: Run, *, env: Environment, n: PositiveInt = 8, turns: PositiveInt = 4,
    temperature: NonNegativeFloat = 1.0, stop: tuple[str, ...] = (), steps: str | None = None,
) -> list[Group]:  # fmt: skip
    """n episodes of each problem, of at most `turns` decisions of the policy.

    The episodes of a problem differ in the sampled replies and in the environment's seed. An episode ends when the environment
    sends no further message, after `turns` turns (stop="turns"), or when its message or the next reply would not fit the context
    ("context").  stop: texts at which a reply ends, by default those of the environment.
    """
    rows = [(p, i) for p in problems for i in range(n)]
    # the seed depends on problem and row, not on their order, so any worker starts the same episode
    openings = [env.start(p, seed_of(run.seed, "environment", run.moment, p.key, i)) for p, i in rows]
    prompts = [p.prompt if message is None else (*p.prompt, message) for (p, _), (message, _) in zip(rows, openings, strict=True)]
    episodes = run.policy.read([Trajectory(p, path=(i,)) for p, i in rows], prompts)
    states = [state for _, state in openings]
    play(env, episodes, states, run, Sampling(run.max_new, temperature, stop=tuple(stop) or env.stop), turns)
    if steps:
        episodes = [mark(t, steps, run.policy.pieces, run.policy.name) for t in episodes]
    return [episodes[i : i + n] for i in range(0, len(episodes), n)]


Together = Callable[[list[Trajectory], list[Any], list[int], bool], list[int]]
"""(episodes, states, live rows, whether they have replied) -> the rows that go on; it may change both lists in place."""


def play(
    env: Environment, episodes: list[Trajectory], states: list[Any], run: Run, sampling: Sampling, turns: int,
    together: Together | None = None,
) -> None:  # fmt: skip
    """Let policy and environment go on from where the episodes are, until each of them ends, or has `turns` replies.

    Both lists are changed in place. The environment has read all that an episode holds.
    together: where episodes are the sides of one game, asked before every reply and after it, before the environment answers.
    """
    rng = run.rng("rollout")
    # indices of the episodes that still run; all of them advance together, one call of the policy per turn
    live = list(range(len(episodes)))
    while live := [i for i in live if _fits(episodes, i, run)]:
        if together and not (live := together(episodes, states, live, False)):
            break
        for i, t in zip(live, run.policy.extend([episodes[i] for i in live], sampling, rng), strict=True):
            episodes[i] = t
        if together:
            live = together(episodes, states, live, True)
        last = [i for i in live if len(episodes[i].ends) >= turns]
        _answer(env, episodes, states, last, run, last=True)
        live = _answer(env, episodes, states, [i for i in live if i not in set(last)], run, last=False)


def go_on(env: Environment, episodes: list[Trajectory], states: list[Any], run: Run, sampling: Sampling, turns: int) -> None:
    """As `play`, of episodes that end with a reply which the environment has not answered yet."""
    answer_once(env, episodes, states, run, turns)
    live = [i for i, t in enumerate(episodes) if t.stop is None]
    own, inside = [episodes[i] for i in live], [states[i] for i in live]
    play(env, own, inside, run, sampling, turns)
    for i, t, state in zip(live, own, inside, strict=True):
        episodes[i], states[i] = t, state


def answer_once(env: Environment, episodes: list[Trajectory], states: list[Any], run: Run, turns: int) -> None:
    """The environment's answer to the last reply of each episode, which it ends there or not. Both lists are changed in place."""
    last = [i for i, t in enumerate(episodes) if len(t.ends) >= turns]
    _answer(env, episodes, states, last, run, last=True)
    _answer(env, episodes, states, [i for i in range(len(episodes)) if i not in set(last)], run, last=False)


def _fits(episodes: list[Trajectory], i: int, run: Run) -> bool:
    """Whether the next reply fits the context; if not, episode i is ended."""
    # the first reply is always tried: the policy raises an error if a prompt leaves too little room
    fits = len(episodes[i]) + run.max_new <= run.policy.context or len(episodes[i].turns) == 1
    if not fits:
        episodes[i] = replace(episodes[i], stop="context")
    return fits


def _answer(env: Environment, episodes: list[Trajectory], states: list[Any], live: list[int], run: Run, last: bool) -> list[int]:
    """Let the environment answer the rows in `live`; returns the rows that continue."""
    _tell_verdicts(episodes, states, live, run)
    continuing, messages = [], []
    for i in live:
        message, states[i] = env(states[i], episodes[i].turns[-1], place_of(episodes[i]))
        if message is None or message.last or last:
            episodes[i] = _closed(episodes[i], message, "turns" if message is not None and not message.last else "end")
        else:
            # read together below, in one call
            continuing.append(i)
            messages.append((message,))
    for i, t, (message,) in zip(
        tuple(continuing), run.policy.read([episodes[i] for i in continuing], messages), messages, strict=True
    ):
        if len(t) <= run.policy.context:
            episodes[i] = t
        else:
            # no policy can read such a message, so the episode ends before it
            episodes[i] = _closed(episodes[i], message, "context")
            continuing.remove(i)
    return continuing


def _tell_verdicts(episodes: list[Trajectory], states: list[Any], live: list[int], run: Run) -> None:
    """Write what the task's verifier says of the newest reply into the states that have a place for it.

    state["task_verdict"]: the verdict's number, right from 1 on, or None where there is none. No other environment is told.
    """
    asked = [i for i in live if isinstance(states[i], dict) and "task_verdict" in states[i]]
    for i, (verdict,) in zip(asked, run.verdicts([[episodes[i]] for i in asked]) if asked else (), strict=True):
        states[i] = {**states[i], "task_verdict": verdict.value}


def _closed(episode: Trajectory, message: Message | None, stop: str) -> Trajectory:
    """The episode, ended, with its last reward. The last message keeps its text but has no ids, since no policy reads it."""
    if message is None:
        return replace(episode, stop=stop)
    no_ids = np.zeros((0, *episode.ids.shape[1:]), episode.ids.dtype)
    return episode.plus(Turn(None, no_ids, text=message.text, reward=message.reward), stop)
