"""Episodes: policy and environment take turns until one of them ends the episode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from rewardlab.core import (
    Environment,
    Group,
    Message,
    PartFactory,
    Problem,
    Rollout,
    Run,
    Sampling,
    Trajectory,
    Turn,
    rollout,
    seed_of,
)
from rewardlab.core.episode import place_of
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.splitters import mark

SHARE = 0.25
"""Of the answers that are awaited, how many must have come before the policy goes on."""
WAITING = 64
"""Episodes for which an environment is asked at the same time."""


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
    openings = _asked(env, env.start, [(p, seed_of(run.seed, "environment", run.moment, p.key, i)) for p, i in rows])
    prompts = [p.prompt if message is None else (*p.prompt, message) for (p, _), (message, _) in zip(rows, openings, strict=True)]
    episodes = run.policy.read([Trajectory(p, path=(i,)) for p, i in rows], prompts)
    states = [state for _, state in openings]
    play(env, episodes, states, run, Sampling(run.max_new, temperature, stop=tuple(stop) or env.stop), turns)
    if steps:
        episodes = [mark(t, steps, run.policy.pieces, run.policy.name) for t in episodes]
    return [episodes[i : i + n] for i in range(0, len(episodes), n)]


def in_place_of_replies(rollout: Rollout, by: PartFactory = interactive, **play: Any) -> Rollout:
    """A rollout with episodes in the place of its replies, or of its own episodes.

    Its wrappers stay, and so do n, temperature and the like unless `play`, settings of `by`, says otherwise; None says nothing.
    Raises RewardlabError where something else is below the wrappers, or has settings that `by` lacks.
    by: another rollout of episodes, one group of a problem.
    """
    play = {name: value for name, value in play.items() if value is not None}
    episodes = rollout.innermost.function is interactive.function
    played: Any = rollout.replace_innermost(interactive if episodes else independent, by, **play)
    return played


Together = Callable[[list[Trajectory], list[Any], list[int], bool], list[int]]
"""(episodes, states, live rows, whether they have replied) -> the rows that go on; it may change both lists in place."""


def play(
    env: Environment, episodes: list[Trajectory], states: list[Any], run: Run, sampling: Sampling, turns: int,
    together: Together | None = None,
) -> None:  # fmt: skip
    """Let policy and environment go on from where the episodes are, until each of them ends, or has `turns` replies.

    Both lists are changed in place. The environment has read all that an episode holds. Where it waits for tools, the episodes do
    not wait for one another.
    together: where episodes are the sides of one game, asked before every reply and after it, before the environment answers.
    """
    if env.waits and together is None:
        _play_apart(env, episodes, states, run, sampling, turns)
    else:
        _play_in_step(env, episodes, states, run, sampling, turns, together)
    log_calls(env, episodes, run)


def log_calls(env: Environment, episodes: list[Trajectory], run: Run) -> None:
    """Log what the environment says of ended episodes, if there are any. What is played in parts is logged together at the end."""
    for name, value in env.logged(episodes).items() if episodes else ():
        run.log(name, value)


def _play_in_step(
    env: Environment, episodes: list[Trajectory], states: list[Any], run: Run, sampling: Sampling, turns: int,
    together: Together | None,
) -> None:  # fmt: skip
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
        live = _answer(env, episodes, states, live, run, turns)


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
    _answer(env, episodes, states, list(range(len(episodes))), run, turns)


def has_room(episode: Trajectory, run: Run) -> bool:
    """Whether the next reply fits the context."""
    # the first reply is always tried: the policy raises an error if a prompt leaves too little room
    return len(episode) + run.max_new <= run.policy.context or len(episode.turns) == 1


def _fits(episodes: list[Trajectory], i: int, run: Run) -> bool:
    """Whether the next reply fits the context; if not, episode i is ended."""
    if not (fits := has_room(episodes[i], run)):
        episodes[i] = replace(episodes[i], stop="context")
    return fits


def _play_apart(
    env: Environment, episodes: list[Trajectory], states: list[Any], run: Run, sampling: Sampling, turns: int
) -> None:  # fmt: skip
    """As `play`: while the environment is at work on some episodes, the policy replies in those that it has answered.

    Each reply has random numbers of its own, so it is the same whenever its turn comes.
    """
    rng = run.rng("rollout")
    # several processes may have the same problem
    own_key = [run.process] if run.process else []
    seeds = [seed_of(run.seed, "rollout", run.moment, *key, *own_key) for key in _told_apart(episodes)]
    ready, asked = list(range(len(episodes))), dict[Future, int]()
    with _threads(len(episodes)) as threads:
        while ready or asked:
            if ready := [i for i in ready if _fits(episodes, i, run)]:
                own = replace(sampling, seeds=tuple(seed_of(seeds[i], len(episodes[i].turns)) for i in ready))
                for i, t in zip(ready, run.policy.extend([episodes[i] for i in ready], own, rng), strict=True):
                    episodes[i] = t
                _tell_verdicts(episodes, states, ready, run)
                asked |= {threads.submit(env, states[i], episodes[i].turns[-1], place_of(episodes[i])): i for i in ready}
            answers = {asked.pop(done): done.result() for done in _some(asked)}
            ready = _take(episodes, states, answers, run, turns)


def _told_apart(episodes: Sequence[Trajectory]) -> list[tuple[Any, ...]]:
    """A key of each episode, by its problem and path; of rows with the same prompt, which only their columns tell apart, each its
    own."""
    seen = Counter[tuple[Any, ...]]()
    keys = []
    for key in ((t.problem.key, *t.path) for t in episodes):
        keys.append((*key, "again", seen[key]) if seen[key] else key)
        seen[key] += 1
    return keys


def _some(asked: Collection[Future]) -> list[Future]:
    """The answers that have come, once they are a good part of those awaited: the policy replies to many at the cost of few."""
    done = [future for future in asked if future.done()]
    coming = as_completed(set(asked).difference(done))
    while len(done) < SHARE * len(asked):
        done.append(next(coming))
    return done


@contextmanager
def _threads(most: int) -> Iterator[ThreadPoolExecutor]:
    """Threads in which an environment is asked. After an error or Ctrl-C nobody waits for what they still do."""
    # a caller may have no episode at all, and a pool has a thread at least
    threads = ThreadPoolExecutor(max(1, min(most, WAITING)), thread_name_prefix="environment")
    try:
        yield threads
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _answer(env: Environment, episodes: list[Trajectory], states: list[Any], live: list[int], run: Run, turns: int) -> list[int]:
    """Let the environment answer the rows in `live`; returns the rows that continue."""
    _tell_verdicts(episodes, states, live, run)
    answers = _asked(env, env, [(states[i], episodes[i].turns[-1], place_of(episodes[i])) for i in live])
    return _take(episodes, states, dict(zip(live, answers, strict=True)), run, turns)


def _asked(env: Environment, function: Callable, arguments: list[tuple[Any, ...]]) -> list[Any]:
    """What the environment's function gives for each of these arguments; all at once where it waits for something."""
    if not env.waits or len(arguments) < 2:
        return [function(*one) for one in arguments]
    with _threads(len(arguments)) as threads:
        return list(threads.map(lambda one: function(*one), arguments))


def _take(
    episodes: list[Trajectory], states: list[Any], answers: Mapping[int, tuple[Message | None, Any]], run: Run, turns: int
) -> list[int]:  # fmt: skip
    """Give the environment's answers to their rows; returns the rows that continue."""
    continuing, messages = [], []
    for i, (message, states[i]) in answers.items():
        if message is None or message.last or len(episodes[i].ends) >= turns:
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
