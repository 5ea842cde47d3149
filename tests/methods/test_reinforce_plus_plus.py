"""REINFORCE++: the KL in the reward, and advantages over the whole batch."""

from __future__ import annotations

import pytest
import torch
from rows import batch_of, outcome

from rewardlab import registry
from rewardlab.core import Batch, Outputs, Run
from rewardlab.credit.kl import less_kl
from rewardlab.credit.value import to_go
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.reinforce_plus_plus import squared_log_ratio

RUN = Run(policy=None)


def two_rows(*more) -> Batch:
    """A right reply of two tokens with log(pi_old / ref) of 1 and 2, a wrong one of one token with 0; what is read has 9."""
    rows = [[("rdd", {"a": outcome(1.0)})], [("rd", {"a": outcome(0.0)})], *more]
    batch = batch_of(rows, {"ref": [[-9.0, -2.0, -3.0], [-9.0, 0.0], *[[-9.0, -5.0]] * len(more)]})
    batch.old = torch.zeros(batch.mask.shape)
    batch.old[0, 1:] = torch.tensor([-1.0, -1.0])
    return batch


def test_every_token_pays_for_its_own_kl_and_that_of_what_follows():
    # beta .1: rewards -.1, 1 - .2 | 0; sums to go .7, .8 | 0
    batch = two_rows()
    assert less_kl(beta=0.1)(batch.reward, batch, RUN)[batch.mask].tolist() == pytest.approx([-0.1, 0.8, 0])
    assert (less_kl(beta=0.1) >> to_go())(batch.reward, batch, RUN)[batch.mask].tolist() == pytest.approx([0.7, 0.8, 0])


WHITE = [0.458831, 0.688247, -1.147079]


def test_advantages_are_whitened_over_the_tokens_of_all_problems():
    # .7, .8, 0: mean .5; deviations .2, .3, -.5; squares .04 + .09 + .25 = .38 over 2: std .435890
    batch = two_rows()
    credit = registry.build("reinforce_plus_plus", {"beta": 0.1}).credit(batch.reward, batch, RUN)
    assert credit[batch.mask].tolist() == pytest.approx(WHITE, abs=1e-5)
    assert credit[~batch.mask].abs().max() == 0


def test_a_reply_without_a_verdict_moves_nothing():
    batch = two_rows([("rd", {"a": outcome(None)})])
    credit = registry.build("reinforce_plus_plus", {"beta": 0.1}).credit(batch.reward, batch, RUN)
    assert credit[batch.mask].tolist() == pytest.approx([*WHITE, 0.0], abs=1e-5)


# rewards 1, 0 | 1, 1, one token each: the group's mean leaves 1/2, -1/2 | 0, 0; variance of those (1/4 + 1/4) / 3 = 1/6
GROUPS = batch_of([[("rd", {"a": outcome(1.0)}), ("rd", {"a": outcome(0.0)})], [("rd", {"a": outcome(1.0)})] * 2])


def test_with_the_baseline_the_group_gives_the_mean_and_the_batch_the_deviation():
    credit = registry.build("reinforce_plus_plus", {"baseline": True, "n": 2}).credit(GROUPS.reward, GROUPS, RUN)
    assert credit[:, 1].tolist() == pytest.approx([0.5 * 6**0.5, -0.5 * 6**0.5, 0, 0], abs=1e-5)


def test_without_it_problems_are_not_told_apart():
    # 1, 0, 1, 1: mean 3/4, variance (3/16 + 9/16) / 3 = 1/4
    credit = registry.build("reinforce_plus_plus", {"beta": 0.0}).credit(GROUPS.reward, GROUPS, RUN)
    assert credit[:, 1].tolist() == pytest.approx([0.5, -1.5, 0.5, 0.5], abs=1e-5)


def test_the_kl_of_the_baseline_variant_by_hand():
    # (log pi - log ref)^2 / 2: (-1 + 3)^2 / 2 = 2, (-1 + .5)^2 / 2 = 1/8; gradients 2 and -1/2
    batch = batch_of([[("dd", {})]], {"ref": [[-3.0, -0.5]]})
    logprobs = torch.full((1, 2), -1.0, requires_grad=True)
    loss = squared_log_ratio()(Outputs(logprobs=logprobs), batch, RUN)
    assert loss[0].tolist() == [2.0, 0.125]
    loss.sum().backward()
    assert logprobs.grad is not None
    assert logprobs.grad[0].tolist() == [2.0, -0.5]


def test_on_policy_its_gradient_is_that_of_the_kl():
    """Exactly, over all tokens: sum pi d/dz (log pi - log ref)^2 / 2 = d/dz KL(pi || ref)."""
    z = torch.tensor([0.3, -0.2, 1.0], dtype=torch.float64, requires_grad=True)
    ref = torch.tensor([0.1, 0.5, -0.4], dtype=torch.float64).log_softmax(0)
    log_pi = z.log_softmax(0)
    [kl] = torch.autograd.grad((log_pi.exp() * (log_pi - ref)).sum(), z, retain_graph=True)
    batch = batch_of([[("ddd", {})]])
    batch.columns["ref"] = ref[None]
    [ours] = torch.autograd.grad(
        (log_pi.exp().detach() * squared_log_ratio()(Outputs(logprobs=log_pi[None]), batch, RUN)[0]).sum(), z
    )
    assert torch.allclose(ours, kl)
    assert float(kl.abs().max()) > 0.1


def test_the_reference_is_left_out_where_nothing_asks_for_it():
    assert "ref" in registry.build("reinforce_plus_plus").needs
    assert "ref" in registry.build("reinforce_plus_plus", {"baseline": True, "n": 4}).needs
    assert "ref" not in registry.build("reinforce_plus_plus", {"beta": 0.0}).needs


def test_a_baseline_of_one_reply_is_refused():
    with pytest.raises(RewardlabError, match="n of 2 or more"):
        registry.build("reinforce_plus_plus", {"baseline": True})
