"""Worlds of Gymnasium (an optional extra): `gym_world(id="CartPole-v1")` with an actor whose shape is `shape_of("CartPole-v1")`.

A Gymnasium environment cannot be copied or saved, so an episode's state is its seed and the actions so far. The live environment
is kept beside it, and is made anew and driven through those actions wherever it does not stand where the state says.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rewardlab.core import Message, Problem, Turn, environment
from rewardlab.errors import RewardlabError

State = dict[str, Any]

LIVE: dict[tuple[str, int], tuple[Any, list[Any]]] = {}
"""By (id, seed): an environment, and the actions it has been through."""


def shape_of(id: str) -> dict[str, Any]:
    """meta["shape"] of problems played in this world."""
    env = _make(id)
    seen, done = env.observation_space, env.action_space
    discrete = hasattr(done, "n")
    if not seen.shape or not (discrete or done.shape):
        raise RewardlabError(f"{id} observes {seen} and acts by {done}: only arrays are observed, and only numbers or arrays done")
    return {
        "observation": int(np.prod(seen.shape)),
        "action": int(done.n if discrete else np.prod(done.shape)),
        "discrete": discrete,
    }


def _start(problem: Problem, seed: int, *, id: str) -> tuple[Message, State]:
    state: State = {"seed": seed % (1 << 31), "actions": []}
    env, seen = _begin(id, state["seed"])
    LIVE[id, state["seed"]] = env, []
    return Message("environment", data=np.ravel(seen)), state


@environment(start=_start)
def gym_world(state: State, turn: Turn, *, id: str) -> tuple[Message, State]:
    """One step of the world of this name. It ends where Gymnasium says that it terminates or is truncated."""
    seed, before = state["seed"], state["actions"]
    env, been = LIVE.pop((id, seed), (None, []))
    if env is None or been != before:
        env, _ = _begin(id, seed)
        for past in before:
            env.step(_as_action(env, past))
    action = turn.ids[-1].tolist()
    seen, reward, terminated, truncated, _ = env.step(_as_action(env, action))
    state = {"seed": seed, "actions": [*before, action]}
    if terminated or truncated:
        env.close()
        return Message("environment", reward=float(reward), last=True), state
    LIVE[id, seed] = env, state["actions"]
    return Message("environment", data=np.ravel(seen), reward=float(reward)), state


def _begin(id: str, seed: int) -> tuple[Any, Any]:
    env = _make(id)
    return env, env.reset(seed=seed)[0]


def _make(id: str) -> Any:
    try:
        import gymnasium
    except ImportError as e:
        raise RewardlabError("worlds of Gymnasium need it installed: pip install gymnasium") from e
    return gymnasium.make(id)


def _as_action(env: Any, row: list[float]) -> Any:
    """What a row of the policy means to this environment; commands are kept within their bounds."""
    space = env.action_space
    if hasattr(space, "n"):
        return int(row[0]) + int(space.start)
    command = np.array(row[: int(np.prod(space.shape))], space.dtype).reshape(space.shape)
    return np.clip(command, space.low, space.high)
