"""ReNO: the regulariser, one step of the ascent by hand, and that the policy stays as it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.api import answer
from rewardlab.core import Message, Problem, Run
from rewardlab.errors import RewardlabError
from rewardlab.methods.diffusion.reno import ensemble, log_chi, noise_ascent, reno
from rewardlab.models.embedded import untrained
from rewardlab.models.load import load_policy
from rewardlab.policies.diffusion.denoiser import Denoiser
from rewardlab.verifiers.match import exact_match
from rewardlab.worlds.flows import projection

EAST = Problem((Message("user", "east", data=np.array([1.0, 0.0], np.float32)),), (2.0, 0.0), {"modes": [(2.0, 0.0), (0.0, 2.0)]})


class Still(torch.nn.Module):
    """No velocity: data are the noise."""

    def forward(self, x, t, condition):
        return 0.0 * x


@pytest.fixture
def still():
    policy = Denoiser({"steps": 1}, torch.device("cpu"))
    policy.model = Still()
    return policy


def test_the_regulariser_is_the_log_density_of_the_norm():
    # d = 2 at |x| = 5: log 5 - 12.5.  d = 3 at |x| = 3: 2 log 3 - 4.5
    assert log_chi(torch.tensor([[3.0, 4.0]])).item() == pytest.approx(math.log(5) - 12.5)
    assert log_chi(torch.tensor([[1.0, 2.0, 2.0]])).item() == pytest.approx(2 * math.log(3) - 4.5)
    x = torch.tensor([[0.6, 0.8]], requires_grad=True)
    log_chi(x).sum().backward()
    assert torch.allclose(x.grad, torch.zeros(1, 2), atol=1e-6)  # at its highest where |x|^2 = d - 1 = 1


def iterates(policy, **settings):
    group = noise_ascent(reward=projection(), **settings)([EAST], Run(policy, seed=3))[0]
    return np.stack([t.ids[1] for t in group]), group


def test_a_step_of_the_ascent_by_hand(still):
    """G(x) = x, reward x / 2: the gradient is (1/2, 0). lr 0.1, momentum 0.5: Nesterov's first step is lr (g + 0.5 g) = 0.075,
    the second lr (g + 0.5 (1.5 g)) = 0.0875."""
    noise, group = iterates(still, n=3, lr=0.1, momentum=0.5, clip=10.0, regular=0.0)
    assert np.allclose(np.diff(noise, axis=0), [[0.075, 0.0], [0.0875, 0.0]], atol=1e-6)
    assert [t.path for t in group] == [(0,), (1,), (2,)]
    assert all(np.array_equal(t.ids[1], t.ids[2]) and t.stop == "end" and not t.mask.any() for t in group)
    # cut to the norm 0.2, steps are 0.03 and 0.035
    noise, _ = iterates(still, n=3, lr=0.1, momentum=0.5, clip=0.2, regular=0.0)
    assert np.allclose(np.diff(noise, axis=0), [[0.03, 0.0], [0.035, 0.0]], atol=1e-6)


@pytest.mark.slow
def test_the_regulariser_holds_the_noise_where_noise_is(still):
    """Reward x / 2 + K: it stands still where 1/2 + 1/x - x = 0, at x = (1/2 + sqrt(1/4 + 4)) / 2 = 1.28078; else it runs off."""
    held, _ = iterates(still, n=400, lr=0.1, momentum=0.0, clip=10.0, regular=1.0)
    assert held[-1] == pytest.approx([1.28078, 0.0], abs=1e-3)
    loose, _ = iterates(still, n=400, lr=0.1, momentum=0.0, clip=10.0, regular=0.0)
    assert loose[-1][0] > 15


def test_without_ascent_every_iterate_is_fresh_noise(still):
    noise, _ = iterates(still, n=200, lr=0.0)
    assert np.abs(noise.mean(0)).max() < 0.25
    assert noise.std(0) == pytest.approx([1.0, 1.0], abs=0.15)
    assert still.token_count.generated == 200


def test_it_answers_with_the_best_iterate_and_leaves_the_policy_alone():
    task = registry.task("flows", test_size=4)
    policy = load_policy("untrained", task=task)
    before = {k: v.clone() for k, v in policy.state().items()}
    recipe, run = reno(n=6), Run(policy)
    groups = recipe.rollout(task.test[:2], run)
    scores = recipe.reward(groups, run)
    for group, row in zip(groups, scores, strict=True):
        chosen = recipe.select(group, row, run)
        assert chosen is group[int(np.argmax([s.total for s in row]))]
    assert all(torch.equal(v, before[k]) for k, v in policy.state().items())
    assert all(p.grad is None for p in policy.parameters())
    found = answer(reno(n=6), policy.copy("policy"), task, problems=2)
    assert found["n"] == 2
    assert found["tokens"] == 2 * 6 * policy.steps


def test_its_gradient_is_that_of_its_rewards():
    x = torch.tensor([[1.0, 0.5]], requires_grad=True)
    total = ensemble().differentiable(x, EAST)
    # 1/2 + softmax of -(1 + 0.25)/0.5 and -(1 + 2.25)/0.5
    assert total.item() == pytest.approx(0.5 + 1 / (1 + math.exp(-4.0)), abs=1e-5)
    total.sum().backward()
    assert x.grad[0, 0] > 0.5


def test_what_it_cannot_climb_is_refused(still):
    with pytest.raises(RewardlabError, match="no gradient"):
        noise_ascent(reward=exact_match())([EAST], Run(still))
    with pytest.raises(RewardlabError, match="generates from noise"):
        noise_ascent(reward=projection())([EAST], Run(untrained()))
