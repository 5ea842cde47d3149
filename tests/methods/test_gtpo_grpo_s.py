"""GTPO and GRPO-S: what replies earn goes by the entropy at their tokens."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rows import batch_of, outcome

from rewardlab.core import Run
from rewardlab.methods.credit.gtpo_grpo_s import gtpo_grpo_s

RUN = Run(policy=None)


def credit_of(rows, table, **settings):
    batch = batch_of([[(pattern, {"a": outcome(v)}) for pattern, v in group] for group in rows], {"policy.entropy": table})
    found = gtpo_grpo_s(**settings).credit(batch.reward, batch, RUN)
    assert not found[~batch.mask].any()
    return batch, found


def normal(values) -> list[float]:
    x = np.array(values)
    return ((x - x.mean()) / (x.std(ddof=1) + 1e-4)).tolist()


def test_tokens_by_hand():
    # two right replies, entropies 3 1 and 1: at the first token 3/4 and 1/4 of 2: 1.15 and 1.05; at the second 1/1 of 1: 1.1
    # two wrong ones, 4 and 1 (inverse 1/4 and 1): 1/5 and 4/5 of 2: -1.04 and -1.16; then 0.5 alone: -1.1
    # the fourth reads a token between its two decisions; the last has no verdict
    rows = [[("rdd", 1.0), ("rd", 1.0), ("rd", 0.0), ("rdrd", 0.0), ("rd", None)]]
    entropy = [[9, 3, 1, 9], [9, 1, 9, 9], [9, 4, 9, 9], [9, 1, 9, 0.5], [9, 7, 9, 9]]
    batch, found = credit_of(rows, entropy)
    expected = normal([1.15, 1.1, 1.05, -1.04, -1.16, -1.1])
    assert found[batch.mask][:-1].tolist() == pytest.approx(expected, abs=1e-4)
    assert found[batch.mask][-1] == 0


def test_right_is_above_wrong_and_with_no_weight_of_entropy_all_tokens_alike():
    rows = [[("rdd", 1.0), ("rd", 0.0)]]
    batch, found = credit_of(rows, [[0, 0.1, 5], [0, 3, 0]], entropy=0.0)
    assert found[batch.mask].tolist() == pytest.approx(normal([1, 1, -1]), abs=1e-4)


def test_replies_by_hand():
    # means 2 and 1: 2/3 and 1/3 of 2 right ones: 1 + .4/3 and 1 + .2/3
    # wrong ones 1/2 and 1/4 (inverse 2 and 4): -1 - .2/3, -1 - .4/3
    rows = [[("rdd", 1.0), ("rd", 1.0), ("rd", 0.0), ("rdd", -1.0), ("rd", None)]]
    entropy = [[9, 3, 1], [9, 1, 9], [9, 0.5, 9], [9, 0.5, 0], [9, 1, 9]]
    _, found = credit_of(rows, entropy, level="reply")
    expected = normal([1 + 0.4 / 3, 1 + 0.2 / 3, -1 - 0.2 / 3, -1 - 0.4 / 3])
    assert found[:4, 1].tolist() == pytest.approx(expected, abs=1e-4)
    assert found[0, 2] == found[0, 1]
    assert not found[4].any()


def test_apart_right_and_wrong_have_a_mean_and_a_deviation_each():
    rows = [[("rdd", 1.0), ("rd", 1.0), ("rd", 0.0), ("rdrd", 0.0), ("rd", None)]]
    entropy = [[9, 3, 1, 9], [9, 1, 9, 9], [9, 4, 9, 9], [9, 1, 9, 0.5], [9, 7, 9, 9]]
    batch, found = credit_of(rows, entropy, apart=True)
    expected = [*normal([1.15, 1.1, 1.05]), *normal([-1.04, -1.16, -1.1]), 0]
    assert found[batch.mask].tolist() == pytest.approx(expected, abs=2e-3)
    rows = [[("rdd", 1.0), ("rd", 1.0), ("rd", 0.0), ("rdd", -1.0), ("rd", None)]]
    entropy = [[9, 3, 1], [9, 1, 9], [9, 0.5, 9], [9, 0.5, 0], [9, 1, 9]]
    _, found = credit_of(rows, entropy, level="reply", apart=True)
    expected = [*normal([1 + 0.4 / 3, 1 + 0.2 / 3]), *normal([-1 - 0.2 / 3, -1 - 0.4 / 3]), 0]
    assert found[:, 1].tolist() == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("level", ["token", "reply"])
def test_certain_tokens_all_right_all_wrong_and_single_replies(level):
    # entropies of 0 weigh as much as each other
    _, found = credit_of([[("rd", 1.0), ("rd", 1.0)], [("rd", 0.0), ("rd", 0.0)], [("rd", 1.0)]], [[0, 0.0]] * 5, level=level)
    assert torch.isfinite(found).all()
    assert found.abs().max() < 0.01
    # among right replies alone the one that hesitated is preferred; among wrong ones it is the one that did too
    _, found = credit_of([[("rd", 1.0), ("rd", 1.0)], [("rd", 0.0), ("rd", 0.0)]], [[0, 2], [0, 1], [0, 2], [0, 1]], level=level)
    assert found[0, 1] > 0.5 > -0.5 > found[1, 1]
    assert found[2, 1] > 0.5 > -0.5 > found[3, 1]


@pytest.mark.parametrize("level", ["token", "reply"])
def test_groups_do_not_mix(level):
    one, other = [("rdd", 1.0), ("rd", 0.0)], [("rd", 0.0), ("rd", 1.0), ("rdd", 1.0)]
    h_one, h_other = [[0, 1, 2], [0, 3, 0]], [[0, 1, 0], [0, 5, 0], [0, 2, 4]]
    together = credit_of([one, other], [*h_one, *h_other], level=level)[1]
    torch.testing.assert_close(together[:2], credit_of([one], h_one, level=level)[1])
    torch.testing.assert_close(together[2:], credit_of([other], h_other, level=level)[1])
