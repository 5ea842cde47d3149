"""W-REINFORCE: wrong replies in full, right ones for a tenth, nothing compared."""

from __future__ import annotations

import pytest
import torch
from lengths import credits, group_of, run_at
from rows import batch_of, outcome, steps

from rewardlab import registry
from rewardlab.core import Outputs, Run
from rewardlab.credit.sign_credit import sign_credit
from rewardlab.methods.objectives.nsr_w_reinforce import nsr_w_reinforce

RUN = Run(policy=None)


def test_the_advantages_of_mixed_all_right_all_wrong_and_single_groups():
    groups = [group_of("rw?", [2, 6, 9]), group_of("rr", [1, 5]), group_of("ww", [1, 5]), group_of("r", [3])]
    assert credits(nsr_w_reinforce(), groups, run_at()) == pytest.approx([0.1, -1, 0, 0.1, 0.1, -1, -1, 0.1])
    assert credits(nsr_w_reinforce(positive=0.0), groups, run_at()) == pytest.approx([0, -1, 0, 0, 0, -1, -1, 0])
    assert credits(nsr_w_reinforce(positive=1.0, negative=0.0), groups, run_at()) == pytest.approx([1, 0, 0, 1, 1, 0, 0, 1])


def test_wrong_is_wrong_at_0_and_at_minus_1_and_what_is_read_gets_nothing():
    rows = [("rddrd", outcome(0.0)), ("rd", outcome(-1.0)), ("rd", steps({1: 0.5})), ("rd", outcome(None))]
    batch = batch_of([[(pattern, {"a": term}) for pattern, term in rows]])
    found = sign_credit(positive=0.1, negative=2.0)(batch.reward, batch, RUN)
    assert found[0].tolist() == [0, -2, -2, 0, -2]
    assert found[1:, 1].tolist() == pytest.approx([-2, 0.1, 0])
    # nothing is compared: what else is in the group changes nothing
    alone = batch_of([[(pattern, {"a": term})] for pattern, term in rows])
    assert torch.equal(sign_credit(positive=0.1, negative=2.0)(alone.reward, alone, RUN), found)


def test_the_loss_counts_every_token_of_the_batch_alike():
    batch, recipe = batch_of([[("rd", {"a": outcome(1.0)}), ("rddd", {"a": outcome(0.0)})]]), nsr_w_reinforce(bonus=0.0)
    batch.credit, batch.old = recipe.credit(batch.reward, batch, RUN), torch.zeros(2, 4)
    loss = recipe.objective(Outputs(logprobs=torch.full((2, 4), 0.0953102)), batch, RUN)  # a ratio of 1.1
    # -(1.1 * .1) and three of 1.1
    assert float((loss * recipe.weighting(batch)).sum()) == pytest.approx((-0.11 + 3.3) / 4, rel=1e-4)
    assert str(nsr_w_reinforce().objective) == "clipped_ratio() + 0.001 * negative_entropy()"


def test_the_gradient_of_a_wrong_token_gives_to_the_others_in_proportion_to_their_probabilities():
    logits, recipe = torch.tensor([2.0, 1.0, 0.0, -1.0], requires_grad=True), nsr_w_reinforce(bonus=0.0)
    batch = batch_of([[("rd", {"a": outcome(0.0)})]])
    said = logits.log_softmax(0)[0].expand(1, 2)
    batch.credit, batch.old = recipe.credit(batch.reward, batch, RUN), said.detach()
    (recipe.objective(Outputs(logprobs=said), batch, RUN) * recipe.weighting(batch)).sum().backward()
    p = logits.detach().softmax(0).tolist()
    # what descent adds to each logit: -(1 - p_0) to the token, p_k to the others
    assert (-logits.grad).tolist() == pytest.approx([p[0] - 1, *p[1:]])


def test_one_reply_is_enough():
    recipe = registry.build("nsr_w_reinforce", {"n": 1, "minibatches": 1}).validate()
    assert recipe.rows_per_problem == 1
    assert nsr_w_reinforce().update.minibatches == 4
