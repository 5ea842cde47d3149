"""CANON: each half of a group is compared with the other."""

from __future__ import annotations

import pytest
import torch
from lengths import credits, group_of, run_at
from rows import batch_of, outcome

from rewardlab.core import Run
from rewardlab.methods.baselines.dr_grpo import dr_grpo
from rewardlab.methods.credit.canon import canon, half_group_baseline_by_entropy

RUN = Run(policy=None)


def of(kinds, lengths, **settings):
    return credits(canon(metric="length", **settings), [group_of(kinds, lengths)], run_at())


def test_each_half_is_compared_with_the_other_by_hand():
    # lengths 9 2 5 3: low 2 3 (right, right: mean 1), high 5 9 (wrong, right: mean 1/2)
    assert of("rrwr", [9, 2, 5, 3]) == pytest.approx([0, 0.5, -1, 0.5])
    # with its own half: low 1 - 1, high 1 - 1/2 and 0 - 1/2
    assert of("rrwr", [9, 2, 5, 3], mu=0.0) == pytest.approx([0.5, 0, -0.5, 0])
    # alpha 1/2: high .5 r - 1, low r - .25
    assert of("rrwr", [9, 2, 5, 3], alpha=0.5) == pytest.approx([-0.5, 0.75, -1, 0.75])
    # the same where length pays: the direction is not given
    assert of("rrwr", [2, 9, 3, 5]) == pytest.approx([0, 0.5, -1, 0.5])


def test_half_and_half_is_the_mean_of_the_group():
    groups = [group_of("rrwr", [9, 2, 5, 3]), group_of("wwww", [1, 2, 3, 4]), group_of("rrrr", [1, 1, 1, 1])]
    assert credits(canon(metric="length", mu=0.5), groups, run_at()) == pytest.approx(credits(dr_grpo(), groups, run_at()))


def test_ties_odd_numbers_missing_verdicts_and_single_rows():
    # equal lengths: the first two are the lower half
    assert of("rwrr", [4, 4, 4, 4]) == pytest.approx([0, -1, 0.5, 0.5])
    # three: one below (right), two above (wrong, right)
    assert of("rwr", [1, 2, 3]) == pytest.approx([0.5, -1, 0])
    # no verdict: in no half; low (1: right), high (9: wrong)
    assert of("?rw?", [1, 1, 9, 9]) == pytest.approx([0, 1, -1, 0])
    assert of("?r", [1, 2]) == of("r?", [1, 2]) == [0, 0]
    assert of("??", [1, 2]) == [0, 0]


def test_entropy_is_the_mean_over_decided_tokens_alone():
    # means 1 (two tokens; what is read has 9), 2, 3, 0: low are the fourth and the first
    rows = [("rddr", 1.0), ("rd", 0.0), ("rd", 0.0), ("rd", 0.0)]
    entropy = [[9, 0.5, 1.5, 9], [9, 2], [9, 3], [9, 0]]
    batch = batch_of([[(pattern, {"a": outcome(v)}) for pattern, v in rows]], {"policy.entropy": entropy})
    found = half_group_baseline_by_entropy()(batch.reward, batch, RUN)
    assert found[:, 1].tolist() == pytest.approx([1, -0.5, -0.5, 0])
    # alpha 1/4 is of the lower half: .25 r - 0 there, and r - .25 / 2 in the upper one
    assert half_group_baseline_by_entropy(alpha=0.25)(batch.reward, batch, RUN)[:, 1].tolist() == pytest.approx(
        [0.25, -0.125, -0.125, 0]
    )
    assert not found[~batch.mask].any()
    assert torch.equal(canon().credit(batch.reward, batch, RUN), found)
    assert "policy.entropy" in canon().needs
    assert "policy.entropy" not in canon(metric="length").needs
