"""Worlds of Gymnasium, where it is installed."""

import copy

import numpy as np
import pytest

pytest.importorskip("gymnasium")

import gymnasium

from rewardlab.core import Run, Turn, ask
from rewardlab.envs.gym import LIVE, gym_world, shape_of
from rewardlab.envs.live import Live
from rewardlab.policies.control.actor import Actor, Shape
from rewardlab.rollouts.interactive import interactive


def act(*row: float) -> Turn:
    return Turn("policy", np.array([row], np.float32))


def test_shapes_are_read_off_the_spaces():
    assert shape_of("CartPole-v1") == {"observation": 4, "action": 2, "discrete": True}
    assert shape_of("Pendulum-v1") == {"observation": 3, "action": 1, "discrete": False}


def test_an_episode_is_the_one_that_gymnasium_plays():
    world, env = gym_world(id="Pendulum-v1"), gymnasium.make("Pendulum-v1")
    message, state = world.start(ask("?"), 5)
    assert np.array_equal(message.data, env.reset(seed=5)[0])
    for force in (0.5, -1.0, 7.0):
        message, state = world(state, act(force, 0.0, 0.0))
        seen, reward, *_ = env.step(np.array([np.clip(force, -2, 2)], np.float32))
        assert np.array_equal(message.data, seen)
        assert message.reward == reward


def test_a_copied_state_goes_on_from_where_it_was_copied():
    world = gym_world(id="CartPole-v1")
    _, state = world.start(ask("?"), 1)
    _, state = world(state, act(1))
    branch = copy.deepcopy(state)
    first, _ = world(state, act(0))
    world(world(state, act(1))[1], act(1))
    again, _ = world(branch, act(0))
    assert np.array_equal(first.data, again.data)


def test_an_actor_plays_to_the_end():
    groups = interactive(env=gym_world(id="CartPole-v1"), n=3, turns=500)([ask("?")], Run(Actor(Shape(4, 2)), max_new=1))
    before = len(LIVE)
    for t in groups[0]:
        assert t.stop == "end"
        assert sum(r for _, r in t.paid) == t.mask.sum()  # 1 for every step that the pole stands
    assert len(LIVE) == before


def test_environments_of_episodes_that_were_left_are_not_kept_for_good(monkeypatch):
    """An episode without a turn left never ends for its environment; of a long run there would be more and more of them."""
    monkeypatch.setattr("rewardlab.envs.gym.LIVE", few := Live(size=2, drop=lambda env: env.close()))
    world = gym_world(id="CartPole-v1")
    states = [world(world.start(ask("?"), seed)[1], act(1))[1] for seed in range(5)]
    assert len(few) == 2
    # one that is gone is played again to where it was
    again, same = (world(world.start(ask("?"), 0)[1], act(1))[1], states[0])
    assert np.array_equal(world(same, act(0))[0].data, world(again, act(0))[0].data)
