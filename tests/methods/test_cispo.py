"""CISPO: weights are clipped, tokens are not."""

from __future__ import annotations

import pytest
import torch
from rows import batch_of

from rewardlab import registry
from rewardlab.core import Batch, Outputs, Run
from rewardlab.methods.baselines.cispo import clipped_weight
from rewardlab.objectives.ratio import clipped_ratio

RUN = Run(policy=None)
RATIOS = [8.0, 2.0, 0.1, 8.0, 0.1]
CREDIT = [1.0, 1.0, 1.0, -1.0, -1.0]


def of_ratios() -> tuple[Batch, torch.Tensor]:
    """One row of five tokens, with log pi = -1 now."""
    batch = batch_of([[("ddddd", {})]])
    batch.old, batch.credit = -1 - torch.tensor([RATIOS]).log(), torch.tensor([CREDIT])
    return batch, torch.full((1, 5), -1.0, requires_grad=True)


@pytest.mark.parametrize(
    ("part", "weights"),
    [
        (clipped_weight(), [5.0, 2.0, 0.1, 5.0, 0.1]),  # at most 1 + 4, nothing below
        (clipped_weight(eps_high=0.5), [1.5, 1.5, 0.1, 1.5, 0.1]),
        (clipped_weight(eps_low=0.4), [5.0, 2.0, 0.6, 5.0, 0.6]),
    ],
)
def test_loss_and_gradient_by_hand(part, weights):
    batch, logprobs = of_ratios()
    loss = part(Outputs(logprobs=logprobs), batch, RUN)
    # -w A log pi = w A;  d/d log pi = -w A: the weight stands still
    assert loss[0].tolist() == pytest.approx([w * a for w, a in zip(weights, CREDIT, strict=True)])
    loss.sum().backward()
    assert logprobs.grad is not None
    assert logprobs.grad[0].tolist() == pytest.approx([-w * a for w, a in zip(weights, CREDIT, strict=True)])


def test_no_token_is_left_out_where_grpo_leaves_out_three():
    batch, logprobs = of_ratios()
    clipped_ratio()(Outputs(logprobs=logprobs), batch, RUN).sum().backward()
    # risen past 1.2 with A > 0, twice, and fallen below .8 with A < 0
    assert logprobs.grad is not None
    assert [g == 0 for g in logprobs.grad[0].tolist()] == [True, True, False, False, True]


def test_on_policy_it_is_reinforce():
    batch = batch_of([[("dd", {})]])
    batch.old, batch.credit = torch.tensor([[-0.5, -2.0]]), torch.tensor([[3.0, -1.0]])
    loss = clipped_weight()(Outputs(logprobs=batch.old), batch, RUN)
    assert loss[0].tolist() == [1.5, -2.0]


def test_it_stacks_on_dapo_which_filters_and_prices_length():
    recipe = registry.build("dapo+cispo", {"dapo.eps_high": None})
    assert "solved_between" in str(recipe)
    assert "overlong" in str(recipe)
    assert recipe.objective == clipped_weight()
