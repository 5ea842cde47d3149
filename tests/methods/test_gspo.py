"""GSPO: one ratio for a whole reply, whose tokens share its gradient."""

from __future__ import annotations

import math

import pytest
import torch
from rows import batch_of

from rewardlab import registry
from rewardlab.core import Batch, Outputs, Run
from rewardlab.engine.loss import losses_of, weigh
from rewardlab.methods.baselines.gspo import sequence_ratio

RUN = Run(policy=None)
PART = sequence_ratio(eps=0.5, eps_high=0.5)


def of_ratios(pattern: str, ratios: list[float], credit: float) -> tuple[torch.Tensor, torch.Tensor, Batch]:
    """Loss and its gradient by each token's log-prob, for one row."""
    batch = batch_of([[(pattern, {})]])
    batch.old = torch.full(batch.mask.shape, -1.0)
    batch.credit = torch.where(batch.mask, credit, 0.0)
    logprobs = (batch.old + torch.tensor([ratios]).log()).requires_grad_()
    loss = PART(Outputs(logprobs=logprobs), batch, RUN)
    loss[batch.mask].sum().backward()
    return loss, logprobs.grad, batch


@pytest.mark.parametrize(
    ("ratios", "credit", "loss", "gradient"),
    [
        # s = sqrt(2 * 8) = 4:  min(4, 1.5), which stands still;  min(-4, -1.5), which does not
        ([2.0, 8.0], 1.0, -1.5, 0.0),
        ([2.0, 8.0], -1.0, 4.0, 4.0),
        # s = sqrt(1.25 * .8) = 1: tokens that differ from 1 by a quarter are neither clipped nor weighed
        ([1.25, 0.8], 1.0, -1.0, -1.0),
        # s = sqrt(.125 * .5) = 1/4:  min(1/4, 1/2);  min(-1/4, -1/2)
        ([0.125, 0.5], 1.0, -0.25, -0.25),
        ([0.125, 0.5], -1.0, 0.5, 0.0),
    ],
)
def test_the_loss_and_its_gradient_by_hand(ratios, credit, loss, gradient):
    found, grad, batch = of_ratios("dd", ratios, credit)
    assert found[batch.mask].tolist() == pytest.approx([loss] * 2)
    assert grad[batch.mask].tolist() == pytest.approx([gradient] * 2)


def test_what_is_read_between_replies_is_no_part_of_the_ratio():
    found, grad, batch = of_ratios("rdrd", [50.0, 1.25, math.inf, 0.8], 1.0)
    assert found[batch.mask].tolist() == pytest.approx([-1.0, -1.0])
    assert grad.tolist() == [pytest.approx([0, -1, 0, -1])]


def by_rows(logprobs: torch.Tensor, batch: Batch, eps: float, eps_high: float) -> torch.Tensor:
    """GSPO's own formula: one number a reply, and their mean."""
    total = torch.zeros(())
    for i in range(len(batch)):
        where = batch.mask[i]
        s = (logprobs[i, where] - batch.old[i, where]).mean().exp()
        a = batch.credit[i, where][0]
        total = total - torch.minimum(s * a, s.clamp(1 - eps, 1 + eps_high) * a)
    return total / len(batch)


def test_by_tokens_it_is_the_same_loss_and_gradient_as_by_replies():
    generator = torch.Generator().manual_seed(0)
    batch = batch_of([[("rdd", {}), ("rdrddd", {}), ("rd", {})], [("rrdddddd", {}), ("rdddd", {})]])
    batch.old = torch.randn(batch.mask.shape, generator=generator)
    batch.credit = torch.randn(len(batch), 1, generator=generator).expand(batch.mask.shape) * batch.mask
    logprobs = (batch.old + 0.3 * torch.randn(batch.mask.shape, generator=generator)).requires_grad_()
    recipe = registry.build("gspo", {"eps": 0.1, "eps_high": 0.15})
    losses = losses_of(recipe.objective, Outputs(logprobs=logprobs), weigh(batch, recipe.objective, recipe.weighting), RUN)
    expected = by_rows(logprobs, batch, 0.1, 0.15)
    [ours], [theirs] = torch.autograd.grad(sum(losses.values()), logprobs), torch.autograd.grad(expected, logprobs)
    assert sum(losses.values()).item() == pytest.approx(expected.item(), abs=1e-6)
    assert torch.allclose(ours, theirs, atol=1e-7)
    assert 0 < int((theirs.abs().sum(1) == 0).sum()) < len(batch)  # some rows are clipped, some are free


def test_credit_may_differ_within_a_reply():
    # s = 1; -s A at each token
    batch = batch_of([[("dd", {})]])
    batch.credit = torch.tensor([[2.0, -1.0]])
    loss = PART(Outputs(logprobs=torch.tensor([[0.1, -0.1]])), batch, RUN)
    assert loss[0].tolist() == pytest.approx([-2, 1])
