"""Learning from preferences between recorded segments, by way of Q."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import api, registry
from rewardlab.core import Batch, Message, Outputs, Run, Trajectory, ask
from rewardlab.engine.collate import collate
from rewardlab.engine.loss import losses_of, weigh
from rewardlab.errors import RewardlabError
from rewardlab.methods.control.ipl import (
    advantage_weighted,
    expectile_value,
    implied_preference,
    implied_reward,
    implied_reward_square,
    pointmass,
    segments,
)
from rewardlab.policies.control.actor import Actor, Shape
from rewardlab.tasks.episodes import Episode, load_episodes, save_episodes
from rewardlab.worlds.pointmass import drive

T, F = True, False
MASK = torch.tensor([[F, T, F, T, F], [F, T, F, T, F]])


def batch(length=(5, 5), **columns) -> Batch:
    """A pair of rows: observation, action, observation, action, observation."""
    nothing = torch.zeros(2, 5)
    return Batch(torch.zeros(2, 5, 6), MASK, torch.tensor(length), nothing, nothing, MASK, torch.tensor([0, 0]), columns=columns)


def value() -> torch.Tensor:
    """V, Q, V, Q, V."""
    return torch.tensor([[9.0, 2.0, 4.0, 1.0, 6.0], [1.0, 0.5, 2.0, 0.0, 2.0]], requires_grad=True)


# ---- objectives ------------------------------------------------------------------------------------------------------


def test_the_implied_reward_is_q_less_what_is_expected_next():
    # r = Q - V'/2:  2 - 4/2 = 0 and 1 - 6/2 = -2;  0.5 - 2/2 = -0.5 and 0 - 2/2 = -1
    assert implied_reward(value(), batch(), 0.5).tolist() == [[0, 0, 0, -2, 0], [0, -0.5, 0, -1, 0]]
    # where the row ends with an action, nothing is expected any more: the last r is Q itself
    assert implied_reward(value(), batch(length=(4, 5)), 0.5)[0].tolist() == [0, 0, 0, 1, 0]


def test_preferences_teach_q_alone():
    v = value()
    loss = implied_preference(gamma=0.5)(Outputs(value=v), batch(), None)
    # sums of r: -2 and -1.5, so the preferred is 0.5 behind
    assert loss.tolist() == pytest.approx([math.log(1 + math.exp(0.5))])
    loss.sum().backward()
    pull = 1 / (1 + math.exp(-0.5))  # sigmoid(0.5)
    assert v.grad.tolist() == [pytest.approx([0, -pull, 0, -pull, 0]), pytest.approx([0, pull, 0, pull, 0])]


def test_the_value_of_what_follows_is_bounded():
    # V' of 6 counts as 5, those of 4 and 2 as they are: sums of r are 0 + 1 - 5/2 and -0.5 - 1, so that neither is ahead
    loss = implied_preference(gamma=0.5, limit=5.0)(Outputs(value=value()), batch(), None)
    assert loss.tolist() == pytest.approx([math.log(2)])
    squares = implied_reward_square(gamma=0.5, limit=5.0)(Outputs(value=value()), batch(), None)
    assert squares[:, [1, 3]].tolist() == [[0, 2.25], [0.25, 1]]
    # 1 / (1/2 * 1/100), as in the released code; nothing bounds what is not discounted
    [critic] = registry.build("ipl").also
    assert "limit=200" in str(critic.recipe.objective)
    assert "limit" not in str(registry.build("ipl", {"gamma": 1.0}).also[0].recipe.objective)


def test_the_square_keeps_implied_rewards_small():
    assert implied_reward_square(gamma=0.5)(Outputs(value=value()), batch(), None)[:, [1, 3]].tolist() == [[0, 4], [0.25, 1]]


def test_v_leans_to_the_better_actions_and_leaves_q_alone():
    v = value()
    loss = expectile_value(tau=0.9)(Outputs(value=v), batch(), None)
    # u = Q - V: 2 - 9 = -7 and 1 - 4 = -3, weight 0.1;  0.5 - 1 = -0.5 and 0 - 2 = -2
    assert loss[:, [1, 3]].tolist() == [pytest.approx([4.9, 0.9]), pytest.approx([0.025, 0.4])]
    (loss * MASK).sum().backward()
    assert v.grad[0].tolist() == pytest.approx([2 * 0.1 * 7, 0, 2 * 0.1 * 3, 0, 0])


def test_the_policy_imitates_what_is_better_than_expected_most():
    said = torch.full((2, 5), -1.5)
    table = torch.tensor([[1.0, 3.0, 0.0, 0.0, 0.0], [5.0, 4.0, 0.0, 9.0, 0.0]])  # Q - V: 2, 0;  -1, 9
    loss = advantage_weighted(greed=0.5, max_weight=20.0)(Outputs(logprobs=said), batch(value=table), None)
    expected = [[1.5 * math.e, 1.5], [1.5 * math.exp(-0.5), 1.5 * 20]]  # exp(4.5) = 90 is cut off at 20
    assert loss[:, [1, 3]].tolist() == [pytest.approx(row, rel=1e-5) for row in expected]
    cloned = advantage_weighted(greed=0.0)(Outputs(logprobs=said), batch(value=table), None)
    assert torch.equal(cloned, -said)


def test_the_fair_clone_imitates_preferred_segments_alone():
    clone = registry.build("ipl", {"greed": 0.0, "preferred": True})
    said = torch.tensor([[0.0, -1.0, 0.0, -3.0, 0.0], [0.0, -100.0, 0.0, -100.0, 0.0]], requires_grad=True)
    pair = batch(value=torch.zeros(2, 5))
    loss = sum(losses_of(clone.objective, Outputs(logprobs=said), weigh(pair, clone.objective, clone.weighting), None).values())
    assert loss.item() == pytest.approx(2.0)  # (1 + 3) / 2: nothing of the rejected one
    loss.backward()
    assert not said.grad[1].any()
    both = registry.build("ipl", {"greed": 0.0})
    weigh(pair, both.objective, both.weighting)
    assert sum(losses_of(both.objective, Outputs(logprobs=said), pair, None).values()).item() == pytest.approx(51.0)


# ---- segments and the world ------------------------------------------------------------------------------------------


def test_recorded_drives_obey_the_world():
    """The data are made many at a time; one of them is driven again by the environment itself."""
    episode = drive(3, seed=1)[2]
    place = episode.observations[0, :2]
    problem = ask("?", start=place.tolist(), goal=(episode.observations[0, 4:] + place).tolist())
    actor = Actor(Shape(6, 2, discrete=False))
    message, state = pointmass().start(problem, 0)
    (t,) = actor.read([Trajectory(problem)], [(message,)])
    for force, seen, paid in zip(episode.actions[:20], episode.observations[1:], episode.rewards, strict=False):
        (t,) = actor.write([t], [force])
        message, state = pointmass()(state, t.turns[-1])
        assert np.allclose(message.data, seen, atol=1e-5)
        assert message.reward == pytest.approx(float(paid), abs=1e-5)


def test_segments_are_read_as_decisions_and_pay_what_they_paid():
    task = registry.task("pointmass", pairs=4, segment=3, episodes=6, test_size=2)
    problem = task.train[0]
    ((chosen, rejected),) = segments()([problem], Run(Actor(Shape(6, 2, discrete=False))))
    assert (chosen.tag, rejected.tag) == ("chosen", "rejected")
    assert chosen.mask.tolist() == [F, T, F, T, F, T, F]
    assert np.array_equal(chosen.ids[~chosen.mask], problem.meta["chosen"]["observations"])
    assert np.array_equal(chosen.ids[chosen.mask][:, :2], problem.meta["chosen"]["actions"])
    assert [(p, pytest.approx(r)) for p, r in chosen.paid] == list(
        zip((1, 3, 5), problem.meta["chosen"]["rewards"].tolist(), strict=True)
    )
    assert sum(r for _, r in chosen.paid) > sum(r for _, r in rejected.paid)
    with pytest.raises(RewardlabError, match="no segment 'better'"):
        segments(fields=("better",))([problem], Run(Actor(Shape(6, 2, discrete=False))))


def test_segments_of_different_length_stand_together():
    a, b = (e.cut(5, n) for e, n in zip(drive(2, seed=3), (2, 4), strict=True))
    meta = {k: {"observations": e.observations, "actions": e.actions, "rewards": e.rewards} for k, e in (("a", a), ("b", b))}
    (rows,) = segments(fields=("a", "b"))([ask("?", **meta)], Run(Actor(Shape(6, 2, discrete=False))))
    assert [len(t) for t in rows] == [5, 9]
    assert [t.stop for t in rows] == ["end", "end"]
    assert collate([rows], None, torch.device("cpu")).mask.sum(1).tolist() == [2, 4]


def test_a_folder_of_episodes_comes_back_and_can_be_learnt_from(tmp_path):
    episodes = drive(5, seed=2, length=12)
    save_episodes(tmp_path / "data", episodes)
    back = load_episodes(tmp_path / "data")
    assert all(
        np.array_equal(a.observations, b.observations) and np.array_equal(a.rewards, b.rewards)
        for a, b in zip(episodes, back, strict=True)
    )
    assert back[0].truncations.tolist() == [F] * 11 + [T]
    task = registry.task("pointmass", pairs=3, segment=4, data=str(tmp_path / "data"), test_size=2)
    known = np.concatenate([e.actions for e in episodes])
    assert all((known == row).all(1).any() for row in task.train[0].meta["chosen"]["actions"])
    with pytest.raises(RewardlabError, match="0 episodes have the 13 steps"):
        registry.task("pointmass", segment=13, data=str(tmp_path / "data"))


def test_a_minari_file_is_read(tmp_path):
    h5py = pytest.importorskip("h5py")
    (episode,) = drive(1, seed=2, length=4)
    (tmp_path / "data").mkdir()
    with h5py.File(tmp_path / "data" / "main_data.hdf5", "w") as file:
        for i in (10, 2):
            group = file.create_group(f"episode_{i}")
            for name in ("observations", "actions", "rewards", "terminations", "truncations"):
                group[name] = getattr(replace(episode, rewards=episode.rewards + i), name)
    found = load_episodes(tmp_path)
    assert [float(e.rewards[0] - episode.rewards[0]) for e in found] == pytest.approx([2, 10], abs=1e-5)


def test_a_broken_episode_is_named(tmp_path):
    with pytest.raises(RewardlabError, match="holds no episodes"):
        load_episodes(tmp_path)
    (e,) = drive(1, seed=2, length=4)
    save_episodes(tmp_path / "bad", [Episode(e.observations[:-1], e.actions, e.rewards, e.terminations, e.truncations)])
    with pytest.raises(RewardlabError, match=r"episode_0.npz has 4 actions.*4 observations"):
        load_episodes(tmp_path / "bad")
    np.savez(tmp_path / "bad" / "episode_0.npz", actions=e.actions)
    with pytest.raises(RewardlabError, match="has no observations, rewards"):
        load_episodes(tmp_path / "bad")


# ---- the method ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_q_learns_which_segments_are_preferred(tmp_path):
    """After a few hundred updates the implied reward agrees with what was really paid, which it never saw."""
    task = registry.task("pointmass", pairs=200, segment=8, episodes=60, test_size=40)
    recipe = registry.build("ipl", {"problems": 32, "passes": 6, "critic_lr": 1e-2, "turns": 2})
    found = api.train(recipe, None, task, steps=20, out=tmp_path, eval_every=0, eval_problems=40, device="cpu").summary
    assert found["before"]["correlation"] == 0.0
    assert found["after"]["correlation"] > 0.3
    assert found["after"]["pair_accuracy"] > 0.65


def test_the_environment_pays_more_for_heading_to_the_goal():
    problem = ask("?", start=[-0.5, 0.0], goal=[0.5, 0.0])
    actor = Actor(Shape(6, 2, discrete=False))
    totals = {}
    for name, force in (("to", [1.0, 0.0]), ("away", [-1.0, 0.0])):
        message, state = pointmass().start(problem, 0)
        (t,) = actor.read([Trajectory(problem)], [(message,)])
        totals[name] = 0.0
        for _ in range(5):
            (t,) = actor.write([t], [force])
            message, state = pointmass()(state, t.turns[-1])
            totals[name] += message.reward
    assert totals["to"] > totals["away"]
    assert isinstance(message, Message)


def test_texts_in_place_of_segments_are_refused_in_words():
    with pytest.raises(RewardlabError, match=r"not texts: 'chosen'.*rewards \(T numbers\)"):
        segments()([ask("?", chosen="yes", rejected="no")], Run(None))
