"""THR: tokens are told apart by what their update does to the right replies."""

from __future__ import annotations

import math

import pytest
import torch
from rows import batch_of, outcome

from rewardlab import registry
from rewardlab.core import Run
from rewardlab.credit.group import center, scale_by_std
from rewardlab.credit.value import to_go
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.credit.token_hidden_reward import (
    check,
    hidden_reward,
    steer_by_hidden_reward,
    surprise,
    token_hidden_reward,
)
from rewardlab.policies.text import TextPolicy


class Coin:
    """Two tokens, equally likely everywhere: e - pi is (1/2, -1/2) or its opposite, their product 1/2 or -1/2."""

    gradient_products, _for_head = TextPolicy.gradient_products, TextPolicy._for_head

    def vocabulary_head(self):
        return torch.zeros(2, 1)


def batch(verdicts=(1.0, 0.0), more=()):
    """A right reply 0, whose state is 1, and a wrong one 0 1, whose states are 2 and 1."""
    made = batch_of([[("rd", {"a": outcome(verdicts[0])}), ("rdd", {"a": outcome(verdicts[1])}), *more]])
    made.ids = torch.tensor([[9, 0, 9], [9, 0, 1], [9, 1, 9]])[: len(made)]
    # the state before a token predicts it; those of no decision must not be read
    made.columns["policy.hidden"] = torch.tensor([[1.0, 50, 50], [2, 1, 50], [4, 50, 50]])[: len(made), :, None]
    return made


def test_thr_by_hand():
    b = batch()
    a = torch.where(b.mask, torch.tensor([[3.0], [-2.0]]), 0.0)
    # 1/2 * 1 * 1;   -(1/2 * 2 * 1);   -(-1/2 * 1 * 1): the sign of A counts, not its size
    assert hidden_reward()(a, b, Run(policy=Coin())).tolist() == [[0, 0.5, 0], [0, -1.0, 0.5]]


def test_all_right_replies_are_summed_and_rows_without_a_verdict_are_not_among_them():
    b = batch((1.0, 0.0), [("rd", {"a": outcome(1.0)})])
    a = (center() >> to_go())(b.reward, b, Run(policy=None))
    # sources 0 with h 1 and 1 with h 4: on token 0 with h 1: 1/2 - 2 = -3/2; on 1 with h 4: -2 + 8; on the wrong 0 with h 2: 1 - 4
    assert hidden_reward()(a, b, Run(policy=Coin())).tolist() == [[0, -1.5, 0], [0, 3.0, -1.5], [0, 6.0, 0]]
    unjudged = batch((1.0, 0.0), [("rd", {"a": outcome(None)})])
    a = (center() >> to_go())(unjudged.reward, unjudged, Run(policy=None))
    assert hidden_reward()(a, unjudged, Run(policy=Coin())).tolist() == [[0, 0.5, 0], [0, -1.0, 0.5], [0, 0, 0]]


def test_groups_do_not_mix():
    first, second = batch(), batch()
    both = batch_of([[("rd", {"a": outcome(1.0)}), ("rdd", {"a": outcome(0.0)})]] * 2)
    both.ids = torch.cat([first.ids, 1 - second.ids.clamp(max=1)])
    both.columns["policy.hidden"] = torch.cat([first.columns["policy.hidden"], second.columns["policy.hidden"]])
    a = (center() >> to_go())(both.reward, both, Run(policy=None))
    assert hidden_reward()(a, both, Run(policy=Coin())).tolist() == [[0, 0.5, 0], [0, -1.0, 0.5]] * 2


@pytest.mark.parametrize("p", [0.1, -0.3])
def test_the_credit_of_the_whole_recipe(p):
    b, run = batch(), Run(policy=Coin())
    found = token_hidden_reward(p=p).credit(b.reward, b, run)
    size = 0.5 / (math.sqrt(0.5) + 1e-4)
    assert found[b.mask].tolist() == pytest.approx([(1 + p) * size, -(1 - p) * size, -(1 + p) * size])
    assert run.metrics["thr_positive"] == pytest.approx(2 / 3)


def test_decisions_of_little_effect_are_not_trained():
    # tau is 1/2 times beta, the mean of the only right reply; |THR| is 1/2, 1 and 1/2
    size = 0.5 / (math.sqrt(0.5) + 1e-4)
    for beta, kept in ((1.0, [1, 1, 1]), (1.5, [0, 1, 0]), (3.0, [0, 0, 0]), (None, [1, 1, 1])):
        b, run = batch(), Run(policy=Coin())
        found = token_hidden_reward(p=0.0, beta=beta).credit(b.reward, b, run)
        assert found[b.mask].tolist() == pytest.approx([k * x for k, x in zip(kept, [size, -size, -size], strict=True)])
        assert run.metrics["thr_kept"] == pytest.approx(sum(kept) / 3)
    # the least of two right replies' means, -1.5, leaves out nothing
    b = batch((1.0, 0.0), [("rd", {"a": outcome(1.0)})])
    assert (token_hidden_reward(p=0.0).credit(b.reward, b, Run(policy=Coin())) != 0).equal(b.mask)
    # without a right reply nothing is known of its effects
    b = batch()
    wrong = torch.where(b.mask, -1.0, 0.0)
    assert steer_by_hidden_reward()(wrong, b, Run(policy=Coin())).equal(wrong)


@pytest.mark.parametrize("verdicts", [(1.0, 1.0), (0.0, 0.0), (1.0, None)])
def test_where_nothing_can_be_compared_there_is_no_credit(verdicts):
    b = batch(verdicts)
    assert not token_hidden_reward().credit(b.reward, b, Run(policy=Coin())).any()


def test_it_stands_on_any_credit():
    base = grpo().but(credit=center() >> to_go())
    assert str(token_hidden_reward(base).credit).startswith(str(base.credit))
    assert "policy.hidden" in registry.build("dapo+token_hidden_reward", {"p": -0.1}).needs


def test_the_claim_asks_its_own_thr():
    settings = check.by.settings
    assert settings["predictors"] == {"thr": hidden_reward(), "surprise": surprise()}
    assert settings["credit"] == center() >> scale_by_std() >> to_go()
