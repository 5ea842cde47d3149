"""Lp-Reg: rare tokens of failed replies are held up, unless they are noise."""

from __future__ import annotations

import math

import pytest
import torch
from rows import batch_of, outcome

from rewardlab import registry
from rewardlab.core import Outputs, Recipe, Run, Score, Trajectory, ask
from rewardlab.engine.collate import add_columns, collate
from rewardlab.engine.update import backward
from rewardlab.methods.objectives.lp_reg import NOISE, claim, hold_up_rare_tokens, lp_reg, proxy_logprob
from rewardlab.models.embedded import untrained
from rewardlab.objectives.ratio import clipped_ratio
from rewardlab.objectives.weighting import token_mean


def test_the_proxy_leaves_out_noise_and_scales_up_the_rest():
    # of .8: noise is below .016;  .01 goes, .99 is left
    logits = torch.tensor([[0.8, 0.15, 0.04, 0.01]]).log().expand(4, 4) + 3.0
    found = proxy_logprob(logits, torch.arange(4))["proxy_logprob"].tolist()
    assert found == pytest.approx([math.log(0.8 / 0.99), math.log(0.15 / 0.99), math.log(0.04 / 0.99), NOISE])


def loss_of(now, target, credit, share=0.5):
    """One row of these log-probabilities after a token that is read."""
    made = batch_of([[("r" + "d" * len(now), {"a": outcome(0.0)})]], {"policy.proxy_logprob": [[0, *target]]})
    made.credit, run = torch.tensor([[0.0, *credit]]), Run(policy=None)
    said = torch.tensor([[math.nan, *now]], requires_grad=True)
    loss = hold_up_rare_tokens(share=share)(Outputs(logprobs=said), made, run)
    loss.backward()
    return loss.item(), said.grad[0, 1:].tolist(), run.metrics["protected"]


def test_the_loss_by_hand():
    # four failed tokens, half of them: -5 and -4; of -6 the reply was right.  gap 1 at -4: e - 2, gradient -(e - 1); -5 is noise
    loss, gradient, share = loss_of([-1, -5, -6, -4, -2], [-0.9, NOISE, -5, -3, -1.9], [-1, -1, 2, -1, -1])
    assert loss == pytest.approx((math.e - 2) / 5)
    assert gradient == pytest.approx([0, 0, 0, -(math.e - 1) / 5, 0])
    assert share == pytest.approx(0.2)


def test_what_is_above_its_proxy_is_let_fall_and_a_large_gap_is_bounded():
    assert loss_of([-3, -1], [-4, -1], [-1, -1])[:2] == (0, [0, 0])
    # e^3 - 3 - 1 = 16: 10, and no gradient
    loss, gradient, _ = loss_of([-5, -1], [-2, -1], [-1, -1])
    assert loss == pytest.approx(10 / 2)
    assert gradient == [0, 0]
    # one whose exponential would be infinite
    assert loss_of([-120, -1], [-2, -1], [-1, -1])[:2] == (pytest.approx(5), [0, 0])


@pytest.mark.parametrize(("credit", "share"), [([1, 1], 0.5), ([-1, -1], 0.1), ([0, 0], 1.0)])
def test_nothing_to_protect(credit, share):
    assert loss_of([-5, -1], [-4, -0.9], credit, share) == (0, [0, 0], 0)


def test_in_an_update_the_columns_are_the_policys_before_it():
    policy = untrained()
    problem = ask("2+3?", "5")
    asked = policy.read([Trajectory(problem)] * 2, [problem.prompt] * 2)
    batch, run = collate([policy.write(asked, ["5", "a wrong reply"])], [[Score(1.0), Score(0.0)]], policy.device), Run(policy)
    recipe = lp_reg(share=1.0, beta=100.0)
    add_columns(batch, recipe.needs, run, 16, recipe.objective.per_token)
    batch.old = policy.evaluate(batch).logprobs.detach()
    batch.credit = recipe.credit(batch.reward, batch, run)

    def gradient(objective, tokens):
        policy.model.zero_grad()
        backward(policy, batch, Recipe(objective=objective, weighting=token_mean()), run, tokens)
        return torch.cat([p.grad.flatten() for p in policy.parameters()])

    proxy, plain = batch.columns["policy.proxy_logprob"], gradient(clipped_ratio(eps=1.0, eps_high=9.0), 64)
    kept = batch.mask & (proxy > NOISE)
    assert kept.any()
    assert (proxy >= batch.old - 1e-5)[kept].all()
    # where the proxy is the policy, nothing is held
    batch.columns["policy.proxy_logprob"] = batch.old
    assert torch.allclose(gradient(recipe.objective, 64), plain, atol=1e-5)
    batch.columns["policy.proxy_logprob"] = batch.old + 0.5
    held = gradient(recipe.objective, 64)
    assert not torch.allclose(held, plain, atol=1e-3)
    # however the batch is cut
    assert torch.allclose(gradient(recipe.objective, 16), held, atol=1e-3)


def test_without_a_weight_it_is_the_plain_loss():
    assert lp_reg(beta=0.0).objective == clipped_ratio(eps=1.0, eps_high=9.0)
    assert lp_reg().update.minibatches == 1


def test_the_claim_makes_several_updates_under_one_proxy_on_both_sides():
    held, plain = (registry.build("lp_reg", dict(settings)) for settings in (claim.settings, claim.versus_settings))
    assert held.update == plain.update
    assert held.update.minibatches == 8
    assert [leaf.name for leaf in held.objective.leaves()] == ["clipped_ratio", "hold_up_rare_tokens"]
    assert plain.objective == clipped_ratio(eps=1.0, eps_high=9.0)


def test_kappa_is_a_setting_that_reaches_the_proxy():
    # of .8: noise is below .08 at kappa = .1, so .04 goes too
    logits = torch.tensor([[0.8, 0.15, 0.04, 0.01]]).log().expand(4, 4)
    (function,) = lp_reg(kappa=0.1).objective.per_token
    found = function(logits, torch.arange(4))["proxy_logprob"].tolist()
    assert found == pytest.approx([math.log(0.8 / 0.95), math.log(0.15 / 0.95), NOISE, NOISE])
    (function,) = lp_reg().objective.per_token
    assert function(logits, torch.arange(4))["proxy_logprob"][2] == pytest.approx(math.log(0.04 / 0.99))
