"""Credit against numbers worked out by hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rewardlab.core import Batch, Run
from rewardlab.credit.group import center, leave_one_out, scale_by_std, whiten
from rewardlab.credit.value import BLOCK, discounted_sums, gae, lambda_return, over_decisions, to_go

RUN = Run(policy=None)
EVENT = dict[int, float]


def batch_of(rows: list[tuple[str, EVENT]], groups: list[int], value: list[list[float]] | None = None) -> Batch:
    """Rows as (pattern of `r`ead and `d`ecided positions, rewards by position); groups: their sizes."""
    shape = len(rows), max(len(p) for p, _ in rows)
    mask, given, reward = torch.zeros(shape, dtype=torch.bool), torch.zeros(shape, dtype=torch.bool), torch.zeros(shape)
    for i, (pattern, events) in enumerate(rows):
        mask[i, : len(pattern)] = torch.tensor([c == "d" for c in pattern])
        for t, r in events.items():
            reward[i, t], given[i, t] = r, True
    return Batch(
        ids=torch.zeros(shape, dtype=torch.long),
        mask=mask,
        length=torch.tensor([len(p) for p, _ in rows]),
        old=torch.zeros(shape),
        reward=reward,
        rewarded=given,
        group=torch.repeat_interleave(torch.arange(len(groups)), torch.tensor(groups)),
        columns={} if value is None else {"value": torch.tensor(value)},
    )


def credit_of(part, batch: Batch) -> list[list[float]]:
    return [pytest.approx(row, abs=1e-6) for row in part(batch.reward, batch, RUN).tolist()]


# ---- relative to the group -------------------------------------------------------------------------------------------

# Two groups, of three and of two rows; the last row has no verdict.
#   group 0: outcomes 1, 0, 1/2, mean 1/2, deviations 1/2, -1/2, 0, unbiased std sqrt((1/4 + 1/4 + 0) / 2) = 1/2
#   group 1: one outcome, 2, which is its own mean; nothing to compare it with
OUTCOMES = batch_of([("rdd", {2: 1.0}), ("rdd", {2: 0.0}), ("rd", {1: 0.5}), ("rrd", {2: 2.0}), ("rdd", {})], [3, 2])

# Process rewards: the mean of a group is over its events, however many each row has.
#   group 0: events 1, 3 in row 0 and 5 in row 1: mean 3, deviations -2, 0, 2, std sqrt((4 + 0 + 4) / 2) = 2
#   group 1: events -1 (a step) and 1 (the outcome) in one row: mean 0, std sqrt((1 + 1) / 1) = sqrt(2)
STEPS = batch_of([("rddd", {1: 1.0, 3: 3.0}), ("rdd", {2: 5.0}), ("rdrd", {1: -1.0, 3: 1.0})], [2, 1])


def test_center():
    assert credit_of(center(), OUTCOMES) == [[0, 0, 0.5], [0, 0, -0.5], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert credit_of(center(), STEPS) == [[0, -2, 0, 0], [0, 0, 2, 0], [0, -1, 0, 1]]


def test_scale_by_std():
    part = center() >> scale_by_std(eps=1e-12)
    batch = batch_of([("rdd", {2: 1.0}), ("rdd", {2: 0.0}), ("rd", {1: 0.5})], [3])
    assert credit_of(part, batch) == [[0, 0, 1], [0, 0, -1], [0, 0, 0]]
    assert credit_of(part, STEPS) == [[0, -1, 0, 0], [0, 0, 1, 0], [0, -(0.5**0.5), 0, 0.5**0.5]]
    # eps is added to the std:  1/2 / (1/2 + 1/2) = 1/2;  a group of one event has std 0:  0 / (0 + 1/2) = 0
    assert credit_of(center() >> scale_by_std(eps=0.5), OUTCOMES) == [[0, 0, 0.5], [0, 0, -0.5], [0] * 3, [0] * 3, [0] * 3]


def test_equal_rewards_give_no_credit():
    batch = batch_of([("rd", {1: 0.7}), ("rd", {1: 0.7}), ("rd", {1: 0.7})], [3])
    for part in (center(), center() >> scale_by_std(), leave_one_out()):
        assert credit_of(part, batch) == [[0, 0]] * 3


def test_leave_one_out():
    # group 0: 1 - (0 + 1/2)/2 = 3/4;  0 - (1 + 1/2)/2 = -3/4;  1/2 - (1 + 0)/2 = 0;  group 1: nobody to compare with
    assert credit_of(leave_one_out(), OUTCOMES) == [[0, 0, 0.75], [0, 0, -0.75], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    # row 0 is measured against 5, row 1 against (1 + 3)/2 = 2, row 2 has no others
    assert credit_of(leave_one_out(), STEPS) == [[0, -4, 0, -2], [0, 0, 3, 0], [0, 0, 0, 0]]


def test_whiten():
    # decided positions of judged rows hold 0, 1, 2, 3: mean 3/2, unbiased variance (9 + 1 + 1 + 9)/4 / 3 = 5/3;
    # 3/2 / sqrt(5/3) = 1.161895, 1/2 / sqrt(5/3) = 0.387298; what is only read, and the row without verdict, stay out
    batch = batch_of([("rdd", {1: 0.0, 2: 1.0}), ("ddr", {0: 2.0, 1: 3.0}), ("rdd", {})], [3])
    a = batch.reward + torch.tensor([[9.0, 0, 0], [0, 0, 9.0], [9.0, 9.0, 9.0]])
    expected = [[0, -1.161895, -0.387298], [0.387298, 1.161895, 0], [0, 0, 0]]
    assert torch.allclose(whiten()(a, batch, RUN), torch.tensor(expected), atol=1e-5)


def test_whiten_counts_every_row_where_there_is_no_reward_at_all():
    batch = batch_of([("rdd", {}), ("rdd", {})], [2])
    a = torch.tensor([[0.0, 1, 1], [0, -1, -1]])
    # mean 0, unbiased variance 4/3
    assert torch.allclose(whiten()(a, batch, RUN), a * 0.75**0.5)


# ---- over time -------------------------------------------------------------------------------------------------------

# Two turns of two decisions, what the environment says in between, and a second row that stops earlier.
#   row 0: decisions at 2, 3 | 6, 7; a step reward of 1/2 at 3, the outcome 1 at 7
#   row 1: decisions at 1 | 4; the outcome -1 at 4
TURNS = [("rrddrrdd", {3: 0.5, 7: 1.0}), ("rdrrdr", {4: -1.0})]


def test_to_go():
    assert credit_of(to_go(), batch_of(TURNS, [2])) == [[0, 0, 1.5, 1.5, 0, 0, 1, 1], [0, -1, 0, 0, -1, 0, 0, 0]]


def test_to_go_discounts_per_decision_not_per_token_read():
    # row 0: 1;  .9 * 1;  1/2 + .9 * .9 = 1.31;  .9 * 1.31 = 1.179.   row 1: -1;  .9 * -1
    expected = [[0, 0, 1.179, 1.31, 0, 0, 0.9, 1], [0, -0.9, 0, 0, -1, 0, 0, 0]]
    assert credit_of(to_go(gamma=0.9), batch_of(TURNS, [2])) == expected


# The state before a decision is valued where the text before it ends:
#   row 0: decisions at 1, 2 | 4, values before them V(0) = .5, V(1) = .2, V(3) = .4; reward 1 at 4, and 1/2 for the step at 2
#   row 1: no verdict
CRITIC = batch_of([("rddrd", {2: 0.5, 4: 1.0}), ("rddrd", {})], [2], value=[[0.5, 0.2, 7.0, 0.4, 7.0], [0.5, 0.2, 7.0, 0.4, 7.0]])


def test_gae_with_lambda_one_is_the_return_minus_the_value():
    # returns 3/2, 3/2, 1
    assert credit_of(gae(lam=1.0), CRITIC) == [[0, 1.0, 1.3, 0, 0.6], [0] * 5]


def test_gae_with_lambda_zero_is_one_step_of_surprise():
    # gamma .9:  0 + .9 * .2 - .5 = -.32;  .5 + .9 * .4 - .2 = .66;  1 - .4 = .6
    assert credit_of(gae(gamma=0.9, lam=0.0), CRITIC) == [[0, -0.32, 0.66, 0, 0.6], [0] * 5]


def test_gae_in_between():
    # gamma lam = .45:  .6;  .66 + .45 * .6 = .93;  -.32 + .45 * .93 = .0985
    assert credit_of(gae(gamma=0.9, lam=0.5), CRITIC) == [[0, 0.0985, 0.93, 0, 0.6], [0] * 5]


def test_lambda_return_is_gae_plus_the_value_and_teaches_nothing_without_a_verdict():
    assert credit_of(lambda_return(gamma=0.9, lam=0.5), CRITIC) == [[0, 0.5985, 1.13, 0, 1.0], [0, 0.5, 0.2, 0, 0.4]]
    assert credit_of(lambda_return(lam=1.0), CRITIC)[0] == [0, 1.5, 1.5, 0, 1.0]


def test_a_chain_runs_from_left_to_right():
    # the outcomes less their mean, spread over the decisions
    batch = batch_of([("rdd", {2: 1.0}), ("rdrd", {3: 0.0})], [2])
    assert credit_of(center() >> to_go(), batch) == [[0, 0.5, 0.5, 0], [0, -0.5, 0, -0.5]]


# ---- sums of any length ----------------------------------------------------------------------------------------------


def plain_sums(x: Tensor, decay: float) -> Tensor:
    y, after = torch.zeros_like(x), torch.zeros(len(x), dtype=x.dtype)
    for t in reversed(range(x.shape[1])):
        after = x[:, t] + decay * after
        y[:, t] = after
    return y


@pytest.mark.parametrize("width", [0, 1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 77])
@pytest.mark.parametrize("decay", [0.0, 0.5, 0.95, 0.9999, 1.0])
def test_discounted_sums_are_those_of_a_plain_loop(width, decay):
    x = torch.randn(2, width, generator=torch.Generator().manual_seed(width), dtype=torch.float64)
    assert torch.allclose(discounted_sums(x, decay), plain_sums(x, decay), atol=1e-9)


@settings(max_examples=20)
@given(st.integers(1, 3 * BLOCK), st.floats(0, 1), st.integers(0, 2**31))
def test_sums_over_decisions_skip_what_is_read(width, decay, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(3, width, generator=generator, dtype=torch.float64)
    mask = torch.rand(3, width, generator=generator) < torch.rand(3, 1, generator=generator)
    expected = torch.zeros_like(x)
    for i in range(3):
        expected[i, mask[i]] = plain_sums(x[i : i + 1, mask[i]], decay)[0]
    assert torch.allclose(over_decisions(x, mask, decay), expected, atol=1e-9)


def test_sums_in_single_precision_stay_close():
    x = torch.randn(2, 5000, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(discounted_sums(x, 0.999), plain_sums(x.double(), 0.999).float(), atol=1e-3)
