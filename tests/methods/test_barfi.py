"""Learning how far to trust a second reward."""

import math

import pytest
import torch

from rewardlab import api, registry
from rewardlab.core import Run
from rewardlab.engine.collate import collate
from rewardlab.methods.control.barfi import (
    MEMORY,
    aligned_return,
    alignment,
    conjugate_gradients,
    hessian_product,
    implicit_gradient,
    outer_gradient,
    returns,
)
from rewardlab.policies.control.actor import Actor, Shape
from rewardlab.util.adam import adam_step

D = torch.float64


def matrix() -> torch.Tensor:
    return torch.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=D)


def test_conjugate_gradients_solve_a_positive_system():
    b = torch.tensor([1.0, 2.0], dtype=D)
    # inverse of [[4, 1], [1, 3]] is [[3, -1], [-1, 4]] / 11
    assert conjugate_gradients(lambda v: matrix() @ v, b, 2).tolist() == pytest.approx([1 / 11, 7 / 11])


def test_conjugate_gradients_stop_at_negative_curvature():
    b = torch.tensor([1.0, 2.0], dtype=D)
    assert torch.equal(conjugate_gradients(lambda v: -v, b, 5), b)


def test_hessian_products_of_a_quadratic():
    x, y = (torch.tensor(v, dtype=D, requires_grad=True) for v in (0.3, -2.0))
    apply = hessian_product(2 * x * x + x * y + 1.5 * y * y, [x, y], damping=0.5)
    assert apply(torch.tensor([1.0, 10.0], dtype=D)).tolist() == pytest.approx([4.5 + 10, 1 + 35])


def episodes(policy: Actor, toward: str = "trap"):
    """A batch of real episodes with both rewards."""
    recipe, task = registry.build("barfi", {"aux": toward, "turns": 6}), registry.task("gridworld", side=3, test_size=4)
    run = Run(policy, seed=5, max_new=1)
    groups = recipe.rollout([task.train[i] for i in range(24)], run)
    return collate(groups, recipe.reward(groups, run), torch.device("cpu")), run


def test_returns_by_hand():
    batch, run = episodes(Actor(Shape(6, 4)))
    row = int(batch.terms["primary"].reward.sum(1).argmax())
    decided = batch.mask[row].nonzero().squeeze(1).tolist()
    primary, auxiliary = (batch.terms[k].reward[row, decided].tolist() for k in ("primary", "auxiliary"))
    phi = torch.tensor([2.0, -1.0, 0.5, math.log(0.8 / 0.2)])
    expected = [
        sum(0.8 ** (j - i) * (2.0 * primary[j] - auxiliary[j] + 0.5) for j in range(i, len(decided))) for i in range(len(decided))
    ]
    assert returns(batch, phi)[0][row, decided].tolist() == pytest.approx(expected, abs=1e-5)
    run.memory[MEMORY] = phi
    assert torch.equal(aligned_return(gamma=0.9)(batch.reward, batch, run), returns(batch, phi)[0])


def test_derivatives_of_returns_agree_with_finite_differences():
    batch, _ = episodes(Actor(Shape(6, 4)))
    phi = torch.tensor([1.0, 0.7, -0.2, 1.5])
    for k, derivative in enumerate(returns(batch, phi)[1]):
        step = torch.zeros(4)
        step[k] = 1e-2
        numeric = (returns(batch, phi + step)[0] - returns(batch, phi - step)[0]) / 2e-2
        assert torch.allclose(derivative, numeric, atol=2e-3)


def test_the_outer_gradient_agrees_with_finite_differences_of_the_solved_inner_problem():
    """A linear softmax policy, so that the inner problem has one solution, found by Newton's method in float64."""
    actor = Actor(Shape(6, 4, layers=0), seed=2)
    batch, run = episodes(actor)
    damping, gamma = 0.3, 0.9
    phi, mask = alignment(run, gamma), batch.mask
    g, by_phi = returns(batch, phi)
    seen, taken = batch.ids.roll(1, 1)[mask].to(D), batch.ids[..., 0][mask].long()
    centred = torch.stack([(d[mask] - d[mask].mean()).to(D) for d in by_phi])
    primary = returns(batch, torch.tensor([1.0, 0.0, 0.0, math.log(0.9 / 0.1)]))[0][mask].to(D)

    def logprobs(theta):
        logits = seen @ theta[:24].view(4, 6).T + theta[24:]
        return logits.log_softmax(-1).gather(-1, taken[:, None]).squeeze(1)

    def solved(weight):
        def loss(x):
            return -(logprobs(x) * weight).mean() + 0.5 * damping * x @ x

        theta = torch.zeros(28, dtype=D)
        for _ in range(8):
            slope = torch.func.grad(loss)(theta)
            theta = theta - torch.linalg.solve(torch.func.hessian(loss)(theta), slope)
        return theta

    def outer(step):
        return (logprobs(solved(g[mask].to(D) + step @ centred)) * (primary - primary.mean())).mean()

    numeric = [float(outer(1e-4 * e) - outer(-1e-4 * e)) / 2e-4 for e in torch.eye(4, dtype=D)]
    best = solved(g[mask].to(D)).float()
    actor.load_state({"net.0.weight": best[:24].view(4, 6), "net.0.bias": best[24:]})
    before = actor.token_count.scored
    every = torch.ones(len(batch), 1, dtype=torch.bool)
    found = implicit_gradient(batch, run, every, every, gamma, damping, 60)
    assert actor.token_count.scored - before == 61 * int(batch.length.sum())
    assert max(map(abs, numeric)) > 1e-3
    assert found.tolist() == pytest.approx(numeric, rel=0.02, abs=1e-5)


@pytest.mark.slow
def test_chance_teaches_nothing():
    """Both rewards are one draw at the end of each episode, whatever was done: nothing is to be learnt from either.

    With an episode on both sides of the product, its squared draw would count for the second reward every time.
    """
    actor = Actor(Shape(6, 4, layers=0), seed=2)
    batch, run = episodes(actor)
    rng, last = torch.Generator().manual_seed(0), batch.rewarded & (batch.mask.cumsum(1) == batch.mask.sum(1, keepdim=True))
    every, settings = torch.ones(len(batch), 1, dtype=torch.bool), {"gamma": 0.9, "damping": 1.0, "iterations": 3}
    apart, together = [], []
    for _ in range(60):
        drawn = torch.where(last, torch.randn(len(batch), 1, generator=rng), 0.0)
        batch.terms["primary"].reward, batch.terms["auxiliary"].reward = drawn, drawn
        apart.append(outer_gradient(batch, run, **settings)[1])
        together.append(implicit_gradient(batch, run, every, every, *settings.values())[1])
    apart, together = torch.stack(apart), torch.stack(together)
    assert abs(float(apart.mean())) < 3 * float(apart.std()) / 60**0.5
    assert float(together.mean()) > 10 * float(together.std()) / 60**0.5


def test_every_entry_of_phi_moves_at_its_own_rate():
    # the sign at first, (1 - b) g / (1 - b) over the root of (1 - b) g^2 / (1 - b)
    moments = {}
    assert adam_step(moments, torch.tensor([1e-3, -1e-1, 10.0, 0.0])).tolist() == pytest.approx([1, -1, 1, 0])
    # the first turns: mean (.9 .1 - .1) / (1 - .81) = -.0526 of a root mean square of 1
    found = adam_step(moments, torch.tensor([-1e-3, -1e-1, 10.0, 0.0]))
    assert found.tolist() == pytest.approx([-0.052632, -1, 1, 0], abs=1e-5)


def test_it_trains_and_moves_its_trust_and_the_baseline_keeps_it(tmp_path):
    task = registry.task("gridworld", side=3, test_size=4)
    for rate in (0.1, 0.0):
        recipe = registry.build("barfi", {"outer_lr": rate, "problems": 8, "turns": 5, "every": 1})
        done = api.train(recipe, None, task, steps=2, out=tmp_path / str(rate), eval_problems=4, device="cpu")
        moved = done.run.memory[MEMORY] - torch.tensor([1.0, 1.0, 0.0, math.log(0.95 / 0.05)])
        assert float(moved.abs().max()) <= 2 * rate + 1e-5  # two steps of at most this length in each entry
        assert bool(moved.any()) == bool(rate)
        assert math.isfinite(done.summary["after"]["return"])
