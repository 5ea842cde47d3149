"""Gymnasium environments (an optional extra): `gym_world(id="CartPole-v1")`, with an actor of shape `shape_of("CartPole-v1")`.

A Gymnasium environment cannot be copied or saved, so the state of an episode is its seed and its actions so far. The live
environment is cached; if it is missing or at another point, a new one is made and the actions are replayed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rewardlab.core import Message, Problem, Turn, environment
from rewardlab.errors import RewardlabError

from .live import Live

State = dict[str, Any]

LIVE: Live[Any] = Live(drop=lambda env: env.close())
"""The environments of episodes that go on, and of the last ones that were left before their end."""


def shape_of(id: str) -> dict[str, Any]:
    """meta["shape"] for problems in this environment. Raises RewardlabError for spaces that are neither arrays nor numbers."""
    env = _make(id)
    observations, actions = env.observation_space, env.action_space
    discrete = hasattr(actions, "n")
    if not observations.shape or not (discrete or actions.shape):
        raise RewardlabError(
            f"{id} has observations {observations} and actions {actions}; "
            "observations must be arrays, and actions numbers or arrays"
        )
    return {
        "observation": int(np.prod(observations.shape)),
        "action": int(actions.n if discrete else np.prod(actions.shape)),
        "discrete": discrete,
    }


def _start(problem: Problem, seed: int, *, id: str) -> tuple[Message, State]:
    state: State = {"seed": seed % (1 << 31), "actions": []}
    env, observation = _begin(id, state["seed"])
    LIVE.keep((id, state["seed"]), (), env)
    return Message("environment", data=np.ravel(observation)), state


@environment(start=_start)
def gym_world(state: State, turn: Turn, *, id: str) -> tuple[Message, State]:
    """One step of the Gymnasium environment `id`. The episode ends when Gymnasium says that it is terminated or truncated."""
    seed, before = state["seed"], state["actions"]
    # after resuming a run or branching an episode: the same seed and actions lead to the same point
    done = tuple(map(tuple, before))
    env = LIVE.take((id, seed), done, lambda: _begin(id, seed)[0], lambda env, past: env.step(_as_action(env, past)))
    action = turn.ids[-1].tolist()
    observation, reward, terminated, truncated, _ = env.step(_as_action(env, action))
    # a new state: the caller may still hold the old one, to branch from
    state = {"seed": seed, "actions": [*before, action]}
    if terminated or truncated:
        env.close()
        return Message("environment", reward=float(reward), last=True), state
    LIVE.keep((id, seed), (*done, tuple(action)), env)
    return Message("environment", data=np.ravel(observation), reward=float(reward)), state


def _begin(id: str, seed: int) -> tuple[Any, Any]:
    env = _make(id)
    return env, env.reset(seed=seed)[0]


def _make(id: str) -> Any:
    try:
        # imported here, because the package is optional
        import gymnasium
    except ImportError as e:
        raise RewardlabError("Gymnasium environments need the package: pip install gymnasium") from e
    return gymnasium.make(id)


def _as_action(env: Any, row: list[float]) -> Any:
    """A row of the policy's ids as an action of this environment. Continuous actions are clipped to the bounds of the space."""
    space = env.action_space
    if hasattr(space, "n"):
        # the policy counts actions from 0, Gymnasium from `start`
        return int(row[0]) + int(space.start)
    # rows are as wide as the longer of observation and action; the rest is padding
    command = np.array(row[: int(np.prod(space.shape))], space.dtype).reshape(space.shape)
    return np.clip(command, space.low, space.high)
