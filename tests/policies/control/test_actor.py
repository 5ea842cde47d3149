"""Policies that act on observations, their critics, and the gridworld they are tried in."""

import math

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Message, Run, Sampling, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.evals.returns import episode_return
from rewardlab.methods.control.barfi import gridworld
from rewardlab.models.load import load_policy
from rewardlab.policies.control.actor import Actor, Shape
from rewardlab.rewards.control import earned, guidance
from rewardlab.rollouts.interactive import interactive

CPU = torch.device("cpu")
GRID = {"size": 4, "start": [0, 0], "goal": [0, 2], "trap": [3, 0]}
UP, DOWN, LEFT, RIGHT = range(4)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def grid():
    return ask("grid", **GRID, shape={"observation": 6, "action": 4})


def walk(actions) -> Trajectory:
    """These moves in the gridworld, by a policy that is told them."""
    actor = Actor(Shape(6, 4))
    message, state = gridworld().start(grid(), 0)
    (t,) = actor.read([Trajectory(grid())], [(message,)])
    for a in actions:
        (t,) = actor.write([t], [a])
        message, state = gridworld()(state, t.turns[-1])
        if message.last:
            return t.plus(Turn(None, np.zeros((0, 6), np.float32), reward=message.reward), "end")
        (t,) = actor.read([t], [(message,)])
    return t


def steady(shape: Shape, bias) -> Actor:
    """A policy that says the same whatever it sees."""
    actor = Actor(shape)
    with torch.no_grad():
        for p in actor.model.net.parameters():
            p.zero_()
        actor.model.net[-1].bias.copy_(torch.tensor(bias))
    return actor


# ---- the policy ------------------------------------------------------------------------------------------------------


def test_discrete_actions_are_drawn_and_scored_by_their_chances():
    actor = steady(Shape(2, 3), [math.log(1.0), math.log(2.0), math.log(5.0)])  # chances 1/8, 2/8, 5/8
    (seen,) = actor.read([Trajectory(ask("?"))], [(Message("environment", data=[0.3, -0.3]),)])
    drawn = actor.extend([seen] * 4000, Sampling(1), rng())
    counts = np.bincount([int(t.turns[-1].ids[0, 0]) for t in drawn], minlength=3) / 4000
    assert counts == pytest.approx([1 / 8, 2 / 8, 5 / 8], abs=0.03)
    for t in drawn[:5]:
        chance = [1 / 8, 2 / 8, 5 / 8][int(t.turns[-1].ids[0, 0])]
        assert float(t.turns[-1].logprobs[0]) == pytest.approx(math.log(chance), abs=1e-5)
    assert actor.token_count.generated == 4000
    greedy = actor.extend([seen] * 20, Sampling(1, temperature=0.0), rng())
    assert {int(t.turns[-1].ids[0, 0]) for t in greedy} == {2}


def test_temperature_is_in_what_was_sampled_and_not_in_the_raw_log_prob():
    actor = steady(Shape(2, 2), [math.log(1.0), math.log(3.0)])
    (seen,) = actor.read([Trajectory(ask("?"))], [(Message("environment", data=[0.0, 0.0]),)])
    (t,) = actor.extend([seen], Sampling(1, temperature=0.5), rng())
    chosen = int(t.turns[-1].ids[0, 0])
    assert float(t.turns[-1].logprobs[0]) == pytest.approx(math.log([1 / 4, 3 / 4][chosen]), abs=1e-5)
    assert float(t.turns[-1].sampled[0]) == pytest.approx(math.log([1 / 10, 9 / 10][chosen]), abs=1e-5)  # squared, normalised


def test_commands_are_gaussian_around_a_bounded_mean():
    actor = steady(Shape(1, 2, discrete=False), [0.0, math.atanh(0.5)])
    (seen,) = actor.read([Trajectory(ask("?"))], [(Message("environment", data=[1.0]),)])
    drawn = np.stack([t.turns[-1].ids[0] for t in actor.extend([seen] * 4000, Sampling(1), rng())])
    std = math.exp(-0.5)
    assert drawn.mean(0) == pytest.approx([0.0, 0.5], abs=0.04)
    assert drawn.std(0) == pytest.approx([std, std], abs=0.04)
    (t,) = actor.write([seen], [[0.2, 0.1]])
    by_hand = sum(-0.5 * ((x - m) / std) ** 2 - math.log(std) - 0.5 * math.log(2 * math.pi) for x, m in ((0.2, 0.0), (0.1, 0.5)))
    assert actor.score([t])[0].tolist() == pytest.approx([0.0, by_hand], abs=1e-5)


def test_what_was_drawn_is_scored_alike_however_it_is_read_back():
    actor = Actor(Shape(6, 4), seed=3)
    run = Run(actor, max_new=1)
    groups = interactive(env=gridworld(), n=3, turns=5)([grid()], run)
    rows = [t for g in groups for t in g]
    batch = collate(groups, None, CPU)
    said = actor.evaluate(batch).logprobs
    for i, t in enumerate(rows):
        drawn = t.column("logprobs")[t.mask]
        assert len(drawn) == t.mask.sum()
        assert said[i][: len(t)][torch.from_numpy(t.mask)].tolist() == pytest.approx(drawn.tolist(), abs=1e-5)
        assert actor.score([t])[0][t.mask].tolist() == pytest.approx(drawn.tolist(), abs=1e-5)
    assert bool((said[~batch.mask] == 0).all())


def test_a_critic_says_v_at_observations_and_q_at_actions():
    critic = Actor(Shape(6, 4), seed=1).copy("critic", value_head=True)
    batch = collate([[walk([RIGHT, DOWN, UP])]], None, CPU)
    assert not critic.evaluate(batch, ("value",)).value.any()  # it begins at 0
    with torch.no_grad():
        for p in critic.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=rng()))
    value = critic.evaluate(batch, ("value",)).value[0]
    seen = batch.ids[0]
    one_hot = torch.eye(4)[DOWN]
    assert value[2].item() == pytest.approx(critic.model.v(seen[2]).item(), abs=1e-6)
    assert value[3].item() == pytest.approx(critic.model.q(torch.cat((seen[2], one_hot))).item(), abs=1e-6)
    with pytest.raises(RewardlabError, match="critic and cannot act"):
        critic.extend([walk([])], Sampling(1), rng())
    with pytest.raises(RewardlabError, match="has no values"):
        Actor(Shape(6, 4)).evaluate(batch, ("value",))


@pytest.mark.parametrize("shape", [Shape(6, 4), Shape(3, 2, discrete=False), Shape(6, 4, critic=True)])
def test_a_saved_actor_comes_back(shape, tmp_path):
    actor = Actor(shape, seed=7)
    actor.save(tmp_path)
    back = load_policy(str(tmp_path), "cpu")
    assert back.shape == shape
    assert all(torch.equal(v, back.state()[k]) for k, v in actor.state().items())


def test_a_copy_is_its_own():
    actor = Actor(Shape(6, 4))
    other = actor.copy("other")
    with torch.no_grad():
        other.parameters()[0].add_(1.0)
    assert not torch.equal(actor.parameters()[0], other.parameters()[0])
    assert (actor.name, other.name) == ("policy", "other")


def test_an_observation_of_another_world_is_refused():
    with pytest.raises(RewardlabError, match="observation has 6 numbers, not 2"):
        Actor(Shape(2, 4)).read([Trajectory(grid())], [(gridworld().start(grid(), 0)[0],)])
    with pytest.raises(RewardlabError, match="no actor fits arithmetic"):
        load_policy("actor", task=registry.task("arithmetic", test_size=1))


# ---- the gridworld ---------------------------------------------------------------------------------------------------


def test_the_gridworld_moves_stops_at_walls_and_pays_at_the_goal():
    t = walk([UP, DOWN, UP, RIGHT, RIGHT])
    # agent at (0,0), (0,0) for there is a wall above, (1,0), (0,0), (0,1): and then the goal at (0,2)
    places = t.ids[~t.mask][:, :2] * 4
    assert places.tolist() == [[0, 0], [0, 0], [1, 0], [0, 0], [0, 1]]
    assert t.ids[0].tolist() == [0, 0, 0, 0.5, 0.75, 0]
    assert [r for _, r in t.paid] == [0, 0, 0, 0, 1]
    assert [int(t.mask[p]) for p, _ in t.paid] == [1] * 5
    assert t.stop == "end"
    assert earned()([[t]])[0][0].value == 1.0


def test_guidance_to_the_goal_pays_by_distance_and_to_the_trap_for_being_there():
    t = walk([DOWN, UP, RIGHT, RIGHT])  # distances to (0,2) before each move: 2, 3, 2, 1, and 0 at the end
    assert [r for _, r in guidance(scale=0.5)([[t]])[0][0].steps] == pytest.approx([-0.5, 0.5, 0.5, 0.5])
    t = walk([DOWN, DOWN, DOWN, DOWN])  # distances to (3,0) before each move: 3, 2, 1, 0
    assert [r for _, r in guidance(toward="trap", scale=0.3)([[t]])[0][0].steps] == pytest.approx([0, 0, 0.3, 0.3])
    with pytest.raises(RewardlabError, match="not 'moon'"):
        guidance(toward="moon")([[t]])


def test_the_task_draws_worlds_apart_and_holds_some_out():
    task = registry.task("gridworld", side=4, test_size=50)
    worlds = [task.train[i].meta for i in range(200)]
    assert all(len({tuple(w[k]) for k in ("start", "goal", "trap")}) == 3 for w in worlds)
    assert not {p.key for p in task.test} & {task.train[i].key for i in range(200)}
    with pytest.raises(RewardlabError, match="side must be between"):
        registry.task("gridworld", side=1)


def test_episodes_are_measured_by_what_they_earn():
    always_right = steady(Shape(6, 4), [0.0, 0.0, 0.0, 50.0])
    there, elsewhere = grid(), ask("other", **(GRID | {"goal": [2, 2]}))
    found = episode_return(play=interactive(env=gridworld(), n=1, turns=6))([there, elsewhere], Run(always_right, max_new=1))
    assert found["return"] == 0.5
    assert found["n"] == 2
    assert found["steps"] == 4.0  # 2 moves to the goal, 6 in vain
    # standard deviation of (1, 0) is sqrt(1/2): 1.96 * sqrt(1/2) / sqrt(2) = 0.98
    assert found["ci95_high"] - found["return"] == pytest.approx(0.98, abs=1e-3)
