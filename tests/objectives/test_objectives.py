"""Objectives and weightings against numbers worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from rewardlab.core import Batch, Outputs, Run, objective, weighting
from rewardlab.engine.loss import losses_of, weigh, weight_of
from rewardlab.errors import RewardlabError
from rewardlab.objectives.pairs import dpo_loss, preference_loss
from rewardlab.objectives.ratio import clipped_ratio, imitate, policy_gradient
from rewardlab.objectives.regularise import kl_to_reference, negative_entropy, value_error
from rewardlab.objectives.weighting import constant_length, row_mean, token_mean

RUN = Run(policy=None)


def batch_of(*patterns: str, sizes: tuple[int, ...] | None = None, credit: list | None = None, **columns: list) -> Batch:
    """Rows of `r`ead and `d`ecided positions; `sizes` of the groups, one by default."""
    shape = len(patterns), max(map(len, patterns))
    mask = torch.zeros(shape, dtype=torch.bool)
    for i, pattern in enumerate(patterns):
        mask[i, : len(pattern)] = torch.tensor([c == "d" for c in pattern])
    sizes = sizes or (len(patterns),)
    old = torch.tensor(columns.pop("old", torch.zeros(shape).tolist()))
    return Batch(
        ids=torch.zeros(shape, dtype=torch.long),
        mask=mask,
        length=torch.tensor([len(p) for p in patterns]),
        old=old,
        reward=torch.zeros(shape),
        rewarded=torch.zeros(shape, dtype=torch.bool),
        group=torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes)),
        credit=None if credit is None else torch.tensor(credit),
        columns={k: torch.tensor(v) for k, v in columns.items()},
    )


def values(part, batch: Batch, **out) -> list[float]:
    """One loss per unit; of the first row, if the unit is a token."""
    found = part(_outputs(out), batch, RUN)
    return _near((found[0] if part.unit == "token" else found).tolist())


def losses(part, batch: Batch, **out) -> dict[str, float]:
    """What each term adds to the loss."""
    found = losses_of(part, _outputs(out), weigh(batch, part, None), RUN)
    return _near({k: float(v) for k, v in found.items()})


def _outputs(out: dict) -> Outputs:
    return Outputs(**{k: torch.as_tensor(v) for k, v in out.items()})


def _near(x):
    return pytest.approx(x, abs=1e-6)


# ---- ratios ----------------------------------------------------------------------------------------------------------

RATIOS = [1.5, 0.5, 1.5, 0.5, 1.1, 5.0]
CREDIT = [1.0, 1.0, -1.0, -1.0, 2.0, -1.0]


def ratios() -> tuple[Batch, Tensor]:
    old = [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]
    logprobs = torch.tensor([old]) + torch.tensor([RATIOS]).log()
    return batch_of("dddddd", credit=[CREDIT], old=[old]), logprobs.requires_grad_()


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        # min(1.5, 1.2) = 1.2;  min(.5, .8) = .5;  min(-1.5, -1.2) = -1.5;  min(-.5, -.8) = -.8;  1.1 * 2;  min(-5, -1.2)
        (clipped_ratio(eps=0.2), [-1.2, -0.5, 1.5, 0.8, -2.2, 5.0]),
        # only the upper bound moves:  min(1.5, 1.4)
        (clipped_ratio(eps=0.2, eps_high=0.4), [-1.4, -0.5, 1.5, 0.8, -2.2, 5.0]),
        # where credit is negative the loss is at most dual * |A| = 3
        (clipped_ratio(eps=0.2, dual=3.0), [-1.2, -0.5, 1.5, 0.8, -2.2, 3.0]),
    ],
)
def test_clipped_ratio(part, expected):
    batch, logprobs = ratios()
    assert values(part, batch, logprobs=logprobs) == expected


def test_clipping_stops_the_gradient_only_where_it_would_push_further():
    batch, logprobs = ratios()
    clipped_ratio(eps=0.2, dual=3.0)(Outputs(logprobs=logprobs), batch, RUN).sum().backward()
    # d(-ratio A) = -ratio A where it is free:  clipped, -.5, 1.5, clipped, -2.2, bounded
    assert logprobs.grad[0].tolist() == pytest.approx([0, -0.5, 1.5, 0, -2.2, 0])


def test_policy_gradient_and_imitation():
    batch = batch_of("ddd", credit=[[2.0, -1.0, 0.0]])
    assert values(policy_gradient(), batch, logprobs=[[-0.5, -1.5, -2.0]]) == [1.0, -1.5, 0.0]
    assert values(imitate(), batch, logprobs=[[-0.5, -1.5, -2.0]]) == [0.5, 1.5, 2.0]


# ---- what holds in place ---------------------------------------------------------------------------------------------


def test_kl_to_reference():
    # ref/pi = 2:  2 - log 2 - 1;   1:  0;   1/4:  1/4 + log 4 - 1
    batch = batch_of("ddd", ref=[[math.log(0.4), -1.0, math.log(0.1)]])
    expected = [1 - math.log(2), 0, math.log(4) - 0.75]
    assert values(kl_to_reference(), batch, logprobs=[[math.log(0.2), -1.0, math.log(0.4)]]) == expected


def test_negative_entropy():
    assert values(negative_entropy(), batch_of("ddd"), entropy=[[0.0, 1.0, 2.0]]) == [0, -1, -2]


# Decisions at 1 and 2 are valued before they are made, at 0 and 1. Returns: 1 and 0.
#   said now .9 and .1; before the update .5 and .5
#   free:     (.9 - 1)^2 / 2 = .005;   (.1 - 0)^2 / 2 = .005
#   clipped to .5 +- .2:  .7 and .3:   (.7 - 1)^2 / 2 = .045;   (.3 - 0)^2 / 2 = .045, the worse of the two counts
@pytest.mark.parametrize(("clip", "expected"), [(None, 0.005), (0.2, 0.045), (0.5, 0.005)])
def test_value_error(clip, expected):
    batch = batch_of("rdd", credit=[[0.0, 1.0, 0.0]], value=[[0.5, 0.5, 9.0]])
    found = value_error(clip=clip)(Outputs(value=torch.tensor([[0.9, 0.1, 9.0]])), batch, RUN)
    assert found[0, 1:].tolist() == pytest.approx([expected, expected], abs=1e-6)


# ---- pairs -----------------------------------------------------------------------------------------------------------

# Two pairs of replies of unequal length; only decided positions count.
PAIRS = ("rdd", "rdr", "rdd", "rrd")


def test_dpo_loss():
    # log-ratio sums: .5 + .5 = 1 and -1 | 0 and 2;  margins 2 and -2;  -log sigmoid(.1 * 2) = log(1 + e^-.2)
    logprobs = [[9.0, -0.5, -0.5], [9.0, -2.0, 9.0], [9.0, -1.0, -1.0], [9.0, 9.0, -1.0]]
    ref = [[0.0, -1.0, -1.0], [0.0, -1.0, 0.0], [0.0, -1.0, -1.0], [0.0, 0.0, -3.0]]
    batch = batch_of(*PAIRS, sizes=(2, 2), ref=ref)
    expected = [math.log1p(math.exp(-0.2)), math.log1p(math.exp(0.2))]
    assert values(dpo_loss(beta=0.1), batch, logprobs=logprobs) == expected
    assert losses(dpo_loss(beta=0.1), batch, logprobs=logprobs) == {"dpo_loss": sum(expected) / 2}


def test_preference_loss_reads_the_last_position_of_each_row():
    batch = batch_of("rdd", "rd", "rd", "rdd", sizes=(2, 2))
    value = [[9.0, 9.0, 2.0], [9.0, 0.5, 9.0], [9.0, 0.0, 9.0], [9.0, 9.0, 1.0]]
    # margins 3/2 and -1
    assert values(preference_loss(), batch, value=value) == [math.log1p(math.exp(-1.5)), math.log1p(math.e)]


def test_preference_loss_by_what_the_labels_say():
    batch = batch_of("rdd", "rd", "rd", "rdd", "rd", "rd", sizes=(2, 2, 2))
    batch = replace(batch, reward=torch.tensor([[0, 0, 3.0], [0, 1, 0], [0, 0.5, 0], [0, 0, 0.5], [0, 0, 0], [0, 0, 0]]))
    batch = replace(batch, rewarded=batch.mask)
    value = [[9.0, 9.0, 2.0], [9.0, 0.5, 9.0], [9.0, 0.0, 9.0], [9.0, 9.0, 1.0], [9.0, 0.5, 9.0], [9.0, 0.0, 9.0]]

    def less(gap: float) -> float:
        return math.log1p(math.exp(-gap))

    # gaps of scores 3/2, -1, 1/2, of rewards 2, 0, 0: 1.5 - 2, and the other two are as by their order
    assert values(preference_loss(labels="margins"), batch, value=value) == [less(-0.5), less(-1), less(0.5)]
    # three votes of four, a tie, and no vote at all, which is a tie too
    votes = [0.75 * less(1.5) + 0.25 * less(-1.5), (less(-1) + less(1)) / 2, (less(0.5) + less(-0.5)) / 2]
    assert values(preference_loss(labels="votes"), batch, value=value) == votes
    # without the 3 of the first pair the table holds 0 and 1, by which the label would be turned round: it teaches nothing instead
    half = replace(batch, reward=batch.reward.clone(), rewarded=batch.rewarded.clone())
    half.reward[0], half.rewarded[0] = 0.0, False
    assert values(preference_loss(labels="margins"), half, value=value) == [0, less(-1), less(0.5)]
    assert values(preference_loss(labels="votes"), half, value=value) == [0, *votes[1:]]
    assert values(preference_loss(), half, value=value) == [less(1.5), less(-1), less(0.5)]
    # sums of scores 5/2, 1, 1/2
    centered = [less(1.5) + 0.1 * 6.25, less(-1) + 0.1, less(0.5) + 0.1 * 0.25]
    assert values(preference_loss(center=0.1), batch, value=value) == centered


@pytest.mark.parametrize("sizes", [(3, 1), (4,), (1, 2, 1)])
def test_pairwise_objectives_refuse_what_is_no_pair(sizes):
    batch = batch_of(*PAIRS, sizes=sizes, ref=torch.zeros(4, 3).tolist())
    with pytest.raises(RewardlabError, match="groups of two rows"):
        dpo_loss()(Outputs(logprobs=torch.zeros(4, 3)), batch, RUN)
    with pytest.raises(RewardlabError, match="groups of two rows"):
        preference_loss()(Outputs(value=torch.zeros(4, 3)), batch, RUN)


# ---- how units add up ------------------------------------------------------------------------------------------------

# Rows of one, three and no decisions, in groups of two and one.
ROWS = ("rdr", "ddd", "rrr")


def weights(unit: str, how=None) -> list:
    batch = batch_of(*ROWS, sizes=(2, 1))

    @objective(unit=unit)
    def part(out, batch, run):
        return None

    return weight_of(weigh(batch, part(), how), unit).tolist()


@weighting(unit="row")
def longest_first(batch):
    return batch.mask.sum(1) / 10


@weighting(unit="group")
def by_group(batch):
    return torch.tensor([0.75, 0.25])


@pytest.mark.parametrize(
    ("unit", "how", "expected"),
    [
        ("token", None, [[0, 0.25, 0], [0.25, 0.25, 0.25], [0, 0, 0]]),
        ("token", token_mean(), [[0, 0.25, 0], [0.25, 0.25, 0.25], [0, 0, 0]]),
        # two rows have decisions
        ("token", row_mean(), [[0, 1 / 2, 0], [1 / 6, 1 / 6, 1 / 6], [0, 0, 0]]),
        # three rows, ten tokens each
        ("token", constant_length(length=10), [[0, 1 / 30, 0], [1 / 30, 1 / 30, 1 / 30], [0, 0, 0]]),
        ("row", None, [1 / 3] * 3),
        ("row", longest_first(), [0.1, 0.3, 0.0]),
        ("row", token_mean(), [1 / 3] * 3),
        ("group", None, [0.5, 0.5]),
        ("group", by_group(), [0.75, 0.25]),
        ("batch", None, 1.0),
    ],
)
def test_weights_of_each_unit(unit, how, expected):
    assert torch.allclose(torch.tensor(weights(unit, how)), torch.tensor(expected))


@pytest.mark.parametrize("how", [token_mean(), row_mean(), constant_length(length=8)])
def test_a_batch_without_decisions_weighs_nothing(how):
    batch = batch_of("rr", "rr")
    assert float(how(batch).sum()) == 0.0


@objective(unit="row")
def length(out, batch, run, *, by=1.0):
    return by * batch.mask.sum(1).float()


@objective(unit="group")
def spread(out, batch, run):
    return torch.tensor([10.0, 20.0])


@objective(unit="batch")
def everything(out, batch, run):
    return torch.tensor(7.0)


def test_sums_add_weighted_terms_of_different_units_by_name():
    batch = batch_of(*ROWS, sizes=(2, 1))
    part = imitate() + 0.1 * length() + 2 * (spread() + 0.5 * everything()) + length(by=3.0)
    # imitate: mean over four decisions of 1, 2, 3, 6;  length: (.1 + 3) * mean(1, 3, 0);  spread: 2 * 15;  everything: 2 * .5 * 7
    logprobs = [[-99.0, -1.0, -99.0], [-2.0, -3.0, -6.0], [-99.0, -99.0, -99.0]]
    expected = {"imitate": 3.0, "length": 3.1 * 4 / 3, "spread": 30.0, "everything": 7.0}
    assert losses(part, batch, logprobs=logprobs) == expected
    alone = [losses(p, batch, logprobs=logprobs) for p in (imitate(), length(), spread(), everything())]
    assert alone == [{"imitate": 3.0}, {"length": 4 / 3}, {"spread": 15.0}, {"everything": 7.0}]


def test_a_scaled_sum_is_the_sum_of_the_scaled():
    batch = batch_of("dd", ref=[[-1.0, -2.0]], credit=[[1.0, -1.0]], old=[[-1.0, -1.0]])
    a, b = clipped_ratio(), kl_to_reference()
    # ratios e^.5, clipped to 1.2, and e^-.5, clipped to .8:  mean(-1.2, .8) = -.2;  kl of log-ratio -.5 at both
    first, second = -0.2, math.exp(-0.5) + 0.5 - 1
    said = {"logprobs": [[-0.5, -1.5]]}
    assert losses(a, batch, **said) == {"clipped_ratio": first}
    assert losses(a + 0.1 * b, batch, **said) == {"clipped_ratio": first, "kl_to_reference": 0.1 * second}
    assert losses(3 * (a + 0.1 * b), batch, **said) == {"clipped_ratio": 3 * first, "kl_to_reference": 0.3 * second}


def test_positions_that_were_only_read_never_count_even_if_not_finite():
    batch = batch_of("rd")
    assert losses(imitate(), batch, logprobs=[[-math.inf, -2.0]]) == {"imitate": 2.0}


@pytest.mark.parametrize(
    ("unit", "shape", "expected"),
    [("token", (3,), r"\(3, 3\)"), ("row", (3, 3), r"\(3,\)"), ("group", (3,), r"\(2,\)"), ("batch", (1,), r"\(\)")],
)
def test_a_loss_of_the_wrong_shape_is_refused(unit, shape, expected):
    @objective(unit=unit)
    def crooked(out, batch, run):
        return torch.zeros(shape)

    batch = batch_of(*ROWS, sizes=(2, 1))
    with pytest.raises(RewardlabError, match=rf"crooked\(\) gave shape .*; its unit '{unit}' has {expected}"):
        losses_of(crooked(), Outputs(), weigh(batch, crooked(), None), RUN)
