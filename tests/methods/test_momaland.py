"""MOMAland: the package's environments as numbers, MAPPO by hand, fronts of a trainer of one's own."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run
from rewardlab.errors import RewardlabError
from rewardlab.methods.benchmarks import momaland as file
from rewardlab.methods.benchmarks.momaland import GAMMA, LAMBDA, Copies, Scale, advantages, maker, policy, sampled, value

STAY, UP, DOWN, LEFT, RIGHT = range(5)


def test_advantages_stop_where_an_episode_ends():
    rewards, values = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0.5, 1.0, 3.0, 10.0])
    ended = torch.tensor([0.0, 1.0, 0.0])
    # the last step goes on: 4 + gamma 10 - 3; the one before ends: 2 - 1; the first looks at that one
    last, middle = 4 + GAMMA * 10 - 3, 2 - 1
    first = (1 + GAMMA * 1.0 - 0.5) + GAMMA * LAMBDA * middle
    assert advantages(rewards, values, ended).tolist() == pytest.approx([first, middle, last])


def test_rewards_are_scaled_by_the_deviation_of_discounted_sums_by_objective():
    scale = Scale(2)
    rewards = np.array([[[1.0, 0.0], [3.0, 0.0]]])  # one copy, two agents, two objectives
    # the sums of the first objective are 1 and 3, with deviation 1; the second has earned nothing and stays as it is
    assert scale(rewards, np.zeros(1)) == pytest.approx(rewards)
    # now 1 + .99 and 3 + .99 * 3: of 1, 3, 1.99, 5.97
    deviation = np.std([1, 3, 1 + GAMMA, 3 + 3 * GAMMA])
    assert scale(rewards, np.ones(1)) == pytest.approx(rewards / [deviation, 1.0])
    # after an end the sum begins again
    assert scale(rewards, np.zeros(1))[0, 0, 0] == pytest.approx(1 / np.std([1, 3, 1 + GAMMA, 3 + 3 * GAMMA, 1, 3]))


def test_actions_are_sampled_by_their_probabilities():
    actor = torch.nn.Linear(1, 3, bias=False)
    actor.weight.data = torch.log(torch.tensor([[0.2], [0.3], [0.5]]))
    found = sampled(actor, torch.ones(20_000, 1), torch.Generator().manual_seed(0))
    assert (torch.bincount(found) / 20_000).tolist() == pytest.approx([0.2, 0.3, 0.5], abs=0.02)


class Space:
    def __init__(self, n=0, start=0, shape=()):
        self.shape = shape
        if n:
            self.n, self.start = n, start


class Button:
    """Two agents with actions 1 and 2; who presses (2) earns (1, 0), who does not (0, 1); the second step is the last."""

    possible_agents = ("a", "b")

    def action_space(self, agent):
        return Space(2, start=1)

    def observation_space(self, agent):
        return Space(3)

    def reward_space(self, agent):
        return Space(shape=(2,))

    def reset(self, seed=None):
        self.agents, self.time = list(self.possible_agents), 0
        return dict.fromkeys(self.agents, 0), {}

    def step(self, actions):
        self.time += 1
        earned = {agent: np.array([1.0, 0.0]) if action == 2 else np.array([0.0, 1.0]) for agent, action in actions.items()}
        if self.time == 2:
            self.agents = []
        return dict.fromkeys(self.possible_agents, self.time), earned, {}, {}, {}


def test_copies_begin_again_and_tell_agents_apart():
    copies = Copies(Button, 2, 0)
    # a place for each agent, then the integer as one of three
    assert copies.seen[0].tolist() == [[1, 0, 1, 0, 0], [0, 1, 1, 0, 0]]
    rewards, ended = copies.step(np.array([[1, 0], [0, 0]]))
    assert rewards[0].tolist() == [[1, 0], [0, 1]]
    assert ended.tolist() == [0, 0]
    assert copies.seen[1, 0].tolist() == [1, 0, 0, 1, 0]
    _, ended = copies.step(np.zeros((2, 2), int))
    assert ended.tolist() == [1, 1]
    assert copies.seen[0, 0].tolist() == [1, 0, 1, 0, 0]


def test_the_value_is_the_discounted_return_of_the_team():
    # both press in both steps: 2 + gamma 2
    assert value(Button, lambda copies: np.ones((file.EPISODES, 2), int), 0) == pytest.approx([2 + 2 * GAMMA, 0])


@pytest.mark.slow
@pytest.mark.parametrize("paid", ["team", "individual"])
def test_a_policy_learns_what_its_weights_ask_for(paid):
    press, not_press = (policy(Button, np.array(w), 0, updates=15, paid=paid) for w in ([1.0, 0.0], [0.0, 1.0]))
    seen = torch.tensor([[1.0, 0, 1, 0, 0], [0, 1, 1, 0, 0]])
    assert (press(seen).softmax(-1)[:, 1] > 0.8).all()
    assert (not_press(seen).softmax(-1)[:, 0] > 0.8).all()


def test_item_gathering_of_the_package():
    pytest.importorskip("momaland", reason="needs the extra 'momaland'")
    copies = Copies(maker("small"), 1, 0)
    # own place, then who one is among two, then 25 cells of six kinds: two agents, nothing, three sorts
    assert copies.seen.shape == (1, 2, 2 + 2 + 25 * 6)
    assert (copies.actions, copies.objectives) == (5, 3)
    assert copies.step(np.array([[RIGHT, STAY]]))[0].sum() == 0
    # the first agent is on the item of the first sort, two cells to the right of its corner
    rewards, _ = copies.step(np.array([[RIGHT, UP]]))
    assert rewards[0].tolist() == [[1, 0, 0], [0, 0, 0]]
    ends = [copies.step(np.array([[STAY, STAY]]))[1][0] for _ in range(4)]
    assert ends == [0, 0, 0, 1]


def test_what_cannot_be_played_is_refused_with_a_reason():
    pytest.importorskip("momaland", reason="needs the extra 'momaland'")
    with pytest.raises(RewardlabError, match="did you mean moitem_gathering_v0"):
        maker("item_gathering_v0")
    with pytest.raises(RewardlabError, match="move in turns"):
        maker("moconnect4_v0")
    with pytest.raises(RewardlabError, match="a number for each of 3 objectives"):
        registry.build("momaland", {"reference": [0.0]}).study(Run(None))


def test_another_environment_of_the_package():
    pytest.importorskip("momaland", reason="needs the extra 'momaland'")
    copies = Copies(maker("mobeach_v0"), 1, 0)
    rewards, _ = copies.step(np.zeros((1, len(copies.agents)), int))
    assert rewards.shape == (1, len(copies.agents), copies.objectives)


def test_a_trainer_of_ones_own_is_measured_and_chance_is_put_back(tmp_path, monkeypatch):
    pytest.importorskip("momaland", reason="needs the extra 'momaland'")
    mine = tmp_path / "mine.py"
    # each goes right and then stays: the first agent takes one item of the first sort in its second step
    mine.write_text(
        "def train(make, weights, seed):\n    assert abs(sum(weights) - 1) < 1e-9\n"
        "    return lambda observations: {agent: 4 if agent == 'agent_0' else 0 for agent in observations}\n"
    )
    monkeypatch.setattr(file, "EPISODES", 2)
    random.seed(7)
    before = random.getstate()
    found = registry.build("momaland", {"own": f"{mine}:train", "updates": 1, "repeats": 2, "parts": 1}).study(Run(None, seed=1))
    assert random.getstate() == before
    # to the right in the top row there are two items of the first sort, in steps 2 and 4: gamma + gamma^3, and two boxes of side 1
    volume = 1 + GAMMA + GAMMA**3
    assert found["hypervolume.own"] == pytest.approx(volume)
    assert found["cardinality.own"] == 1
    # a user's mean weight of each objective is a third
    assert found["utility.own"] == pytest.approx((GAMMA + GAMMA**3) / 3)
    assert found["over_chance.low"] <= found["over_chance"] <= found["over_chance.high"]
