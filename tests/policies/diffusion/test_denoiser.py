"""The denoiser: its schedule, log-probs, and rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Batch, Message, Problem, Run, Sampling, Score, Trajectory, Turn, ask, stream
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.diffusion.tempflow_grpo import one_step_branches
from rewardlab.models.load import load_policy
from rewardlab.policies.diffusion.denoiser import Denoiser
from rewardlab.rollouts.independent import independent
from rewardlab.worlds.flows import closeness, mode_posterior, projection

EAST = Problem((Message("user", "east", data=np.array([1.0, 0.0], np.float32)),), (2.0, 0.0), {"modes": [(2.0, 0.0), (0.0, 2.0)]})


class Constant(torch.nn.Module):
    """A velocity that is the same everywhere."""

    def __init__(self, v):
        super().__init__()
        self.v = torch.nn.Parameter(torch.tensor(v))

    def forward(self, x, t, condition):
        return self.v.expand_as(x)


@pytest.fixture
def constant():
    policy = Denoiser({"steps": 4, "noise": 1.0}, torch.device("cpu"))
    policy.model = Constant([1.0, -2.0])
    return policy


@pytest.fixture
def policy():
    return load_policy("untrained", task=registry.task("flows", test_size=2))


def started(policy, n=3):
    return policy.read([Trajectory(EAST)] * n, [EAST.prompt] * n)


def test_the_ode_goes_straight_where_the_velocity_is_constant(constant):
    row = Turn(None, np.array([[0.5, 0.5]], np.float32))
    done = constant.extend([t.plus(row) for t in started(constant, 1)], Sampling(10, 0.0), stream(0))[0]
    # x_0 = x_1 - v = (0.5 - 1, 0.5 + 2), in four equal steps
    assert np.allclose(done.ids[1:, 0], [0.5, 0.25, 0.0, -0.25, -0.5])
    assert np.allclose(done.ids[-1], [-0.5, 2.5])
    assert done.stop == "end"
    assert not done.mask.any()


def test_the_log_prob_of_a_stochastic_step_is_worked_out_by_hand(constant):
    """Step 2 of 4 goes from t = 0.5, dt = -0.25, with a = 1: sigma^2 = 0.5 / 0.5 = 1, std = 1 * 0.5.

    At x = (1, 0) and v = (1, -2):  x + (1 - t) v = (1.5, -1),  sigma^2 / (2 t) = 1,  v + that = (2.5, -3),
    mean = (1 - 0.625, 0.75) = (0.375, 0.75).  For the next latent (0.875, 0.25): z = (1, -1), so
    log p = -1/2 - 1/2 - 2 log(0.5) - log(2 pi).
    """
    ids = np.array([[1, 0], [9, 9], [9, 9], [1, 0], [0.875, 0.25]], np.float32)
    turns = (Turn(None, ids[:4]), Turn("policy", ids[4:], np.zeros(1, np.float32)))
    batch = collate([[Trajectory(EAST, turns, "end")]], [[Score(1.0)]], constant.device)
    out = constant.evaluate(batch, ("logprobs", "entropy"))
    assert out.logprobs[0, 4].item() == pytest.approx(-1 - 2 * math.log(0.5) - math.log(2 * math.pi), abs=1e-5)
    # the entropy of two Gaussians of std 1/2: 2 * (log(2 pi e) / 2 + log(1/2))
    assert out.entropy[0, 4].item() == pytest.approx(math.log(2 * math.pi * math.e) + 2 * math.log(0.5), abs=1e-5)
    assert torch.equal(out.logprobs[0, :4], torch.zeros(4))
    # z / std is the slope along the mean; the mean moves by (1 + sigma^2 (1 - t) / (2 t)) dt = -0.375 per unit of v
    out.logprobs.sum().backward()
    assert torch.allclose(constant.model.v.grad, torch.tensor([2.0, -2.0]) * -0.375)


def test_noise_levels_by_position(constant):
    # t = 1, .75, .5, .25; 1 - t = .25 (borrowed from the next), .25, .5, .75; sigma^2 = 4, 3, 1, 1/3; times sqrt(1/4)
    want = [0, 0, *(0.5 * math.sqrt(v) for v in (4, 3, 1, 1 / 3))]
    assert np.allclose(constant.noise_at(99), want)
    assert np.allclose(constant.noise_at(3), want[:3])


@pytest.mark.slow
def test_stochastic_steps_keep_the_spread_of_the_flow():
    """Data N(0, 1) and noise N(0, 1) mix to variance (1-t)^2 + t^2; the exact velocity is x (2t - 1) / that. With many steps,
    ODE and SDE must both end at variance 1."""

    class Exact(torch.nn.Module):
        def forward(self, x, t, condition):
            t = t[:, None]
            return x * (2 * t - 1) / ((1 - t) ** 2 + t**2)

    policy = Denoiser({"steps": 200}, torch.device("cpu"))
    policy.model = Exact()
    for temperature in (0.0, 1.0):
        done = policy.extend(started(policy, 2000), Sampling(200, temperature), stream("spread", temperature))
        assert np.std([t.ids[-1] for t in done]) == pytest.approx(1.0, abs=0.05)


def test_what_was_drawn_is_what_is_evaluated(policy):
    groups = independent(n=3)([EAST, EAST], Run(policy, max_new=10))
    batch = collate(groups, [[Score(1.0)] * 3] * 2, policy.device)
    out = policy.evaluate(batch)
    assert batch.mask.sum() == 60
    assert torch.allclose(out.logprobs[batch.mask], batch.old[batch.mask], atol=1e-4)
    scored = policy.score([t for g in groups for t in g])
    assert np.allclose(np.stack(scored), out.logprobs.detach(), atol=1e-4)
    assert policy.token_count.generated == 60
    assert policy.token_count.scored == 60 + 6 * 12  # decided steps are evaluated, whole rows are scored


def test_a_hotter_draw_says_both_of_what_it_drew_from(policy):
    turn = policy.extend(started(policy, 1), Sampling(10, 2.0), stream(0))[0].turns[-1]
    std = policy.noise_at(99)[2:].numpy()
    # drawn at mean + 2 std z: logprobs - sampled = -2 |z|^2 + |z|^2 / 2 + 2 log 2, sampled = -|z|^2 / 2 - 2 log(2 std) - log 2 pi
    z2 = -2 * (turn.sampled + 2 * np.log(2 * std) + math.log(2 * math.pi))
    assert np.allclose(turn.logprobs - turn.sampled, -1.5 * z2 + 2 * math.log(2), atol=1e-3)


def test_rows_go_on_where_they_were_left(policy):
    whole = policy.extend(started(policy), Sampling(10, 0.0), stream(3))
    parts = policy.extend(started(policy), Sampling(4, 0.0), stream(3))
    assert [t.stop for t in parts] == ["length"] * 3
    parts = policy.extend(parts, Sampling(10, 0.0), stream(4))
    assert all(np.allclose(a.ids, b.ids, atol=1e-6) for a, b in zip(whole, parts, strict=True))
    assert policy.extend(parts, Sampling(10), stream(5))[0] is parts[0]


def test_a_flow_with_gradient_is_the_flow_that_is_drawn(policy):
    done = policy.extend(started(policy), Sampling(10, 0.0), stream(3))
    noise = torch.tensor(np.stack([t.ids[1] for t in done]), requires_grad=True)
    path = policy.flow(noise, torch.tensor(np.stack([t.ids[0] for t in done])))
    assert np.allclose(path.detach(), np.stack([t.ids[2:] for t in done]), atol=1e-6)
    path[:, -1].sum().backward()
    assert noise.grad.abs().min() > 0


def test_branches_share_all_but_their_one_decision(policy):
    groups = one_step_branches(n=3, points=4)([EAST], Run(policy, max_new=10))
    steps = [g[0].path[0] for g in groups]
    assert len(set(steps)) == 4
    assert steps == sorted(steps)
    for step, group in zip(steps, groups, strict=True):
        begin = step + 2
        assert [t.path for t in group] == [(step, 0), (step, 1), (step, 2)]
        assert all(np.flatnonzero(t.mask).tolist() == [begin] for t in group)
        assert all(np.array_equal(t.ids[: steps[0] + 2], groups[0][0].ids[: steps[0] + 2]) for t in group)
        assert all(np.array_equal(t.ids[:begin], group[0].ids[:begin]) for t in group)
        assert len({t.ids[begin].tobytes() for t in group}) == 3
        assert all(t.stop == "end" and len(t) == 12 for t in group)
    # the path once (10), then 3 rows from each step to the end
    assert policy.token_count.generated == 10 + 3 * sum(10 - s for s in steps)
    assert len(one_step_branches(n=2)([EAST], Run(policy, max_new=10))) == 10


def test_it_comes_back_from_disk(policy, tmp_path):
    policy.save(tmp_path)
    again = load_policy(str(tmp_path))
    assert all(torch.equal(v, again.state()[k]) for k, v in policy.state().items())
    assert again.config == policy.config


def test_it_reads_no_text(policy):
    with pytest.raises(RewardlabError, match="holds 2 numbers"):
        policy.read([Trajectory(ask("2+3=?"))], [ask("2+3=?").prompt])
    with pytest.raises(RewardlabError, match="value head"):
        policy.copy("critic", value_head=True)


# ---- rewards for points ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reward", "want"),
    [
        (closeness(width=0.5), math.exp(-2.0)),  # one away from (2, 0): exp(-1 / (2 * 0.25))
        (projection(), 1.5),  # 3 along the direction of a mode at 2
        (mode_posterior(width=1.0), 1 / (1 + math.exp(-6.0))),  # squared distances 1 and 13: a difference of 12, halved
    ],
)
def test_points_earn_what_their_gradient_says(reward, want):
    t = Trajectory(EAST, (Turn(None, np.array([[1, 0], [3, 0]], np.float32)),))
    assert reward([[t]])[0][0].value == pytest.approx(want, abs=1e-6)
    assert reward.differentiable(torch.tensor([[3.0, 0.0], [2.0, 0.0]]), EAST)[0].item() == pytest.approx(want, abs=1e-6)


def test_closeness_climbs_towards_the_mode():
    x = torch.tensor([[1.5, 0.0]], requires_grad=True)
    closeness(width=0.5).differentiable(x, EAST).sum().backward()
    # d/dx exp(-(x-2)^2 / 0.5) at 1.5: exp(-1/2) * (0.5 / 0.25)
    assert torch.allclose(x.grad, torch.tensor([[2 * math.exp(-0.5), 0.0]]))


def test_flows_ask_for_a_mode_that_the_teacher_often_misses():
    import random

    task = registry.task("flows", care=0.4, test_size=5)
    problem, rng = task.test[0], random.Random(0)
    drawn = np.array([task.demonstrate(problem, rng) for _ in range(4000)])
    nearest = np.linalg.norm(drawn[:, None] - np.array(problem.meta["modes"]), axis=2).argmin(1)
    assert np.bincount(nearest, minlength=4) / 4000 == pytest.approx([0.4, 0.2, 0.2, 0.2], abs=0.03)
    assert problem.answer == problem.meta["modes"][0]
    direction = problem.prompt[0].data
    assert np.allclose(direction * 2.0, problem.answer, atol=1e-6)
    train = {task.train[i].key for i in range(300)}
    assert not train & {p.key for p in task.test}


def test_a_batch_keeps_latents_as_they_are(policy):
    batch = collate(independent(n=2)([EAST], Run(policy, max_new=10)), None, policy.device)
    assert isinstance(batch, Batch)
    assert batch.ids.shape == (2, 12, 2)
    assert batch.ids.dtype == torch.float32
