"""What judges learn from, against numbers worked out by hand."""

import math
from dataclasses import replace

import pytest
import torch
from rows import batch_of, outcome, steps

from rewardlab.core import Outputs, Run
from rewardlab.errors import RewardlabError
from rewardlab.objectives.labels import label_cross_entropy, label_squared_error, language_model, mean_label_cross_entropy
from rewardlab.objectives.weighting import step_ends

RUN = Run(policy=None)

# steps end at 2 (right) and 4 (wrong) | an outcome of 1/4, at the last decision | no verdict
GROUP = [("rdddd", {"steps": steps({2: 1.0, 4: -1.0})}), ("rdd", {"steps": outcome(0.25)}), ("rdd", {"steps": outcome(None)})]
VALUE = torch.tensor([[9.0, 9.0, 2.0, 1.0, -3.0], [9.0, -1.0, 1.0, 0.0, 0.0], [9.0, 9.0, 9.0, 0.0, 0.0]])


def cost(label, value):
    p = 1 / (1 + math.exp(-value))
    return -label * math.log(p) - (1 - label) * math.log(1 - p)


def test_a_value_is_the_log_odds_of_the_label_where_it_falls():
    loss = label_cross_entropy()(Outputs(value=VALUE), batch_of([GROUP]), RUN)
    assert loss.tolist() == pytest.approx([(cost(1, 2) + cost(0, -3)) / 2, cost(0.25, 1), 0], rel=1e-5)


def test_a_value_is_the_label_itself():
    loss = label_squared_error()(Outputs(value=VALUE), batch_of([GROUP]), RUN)
    # (2 - 1)^2 and (-3 + 1)^2, their mean; (1 - 1/4)^2; nothing
    assert loss.tolist() == pytest.approx([2.5, 0.5625, 0])


def test_a_label_also_counts_at_the_decisions_before_it_that_have_none():
    batch = batch_of([GROUP])
    once, often = (label_cross_entropy(before=n)(Outputs(value=VALUE), batch, RUN).tolist() for n in (1, 9))
    assert once == pytest.approx(
        [(cost(1, 9) + cost(1, 2) + cost(0, 1) + cost(0, -3)) / 4, (cost(0.25, -1) + cost(0.25, 1)) / 2, 0]
    )
    # no further than the step before, nor into the prompt
    assert often == pytest.approx(once)


def test_an_outcome_is_the_log_odds_of_the_mean_value_before_each_decision():
    rows = [("rdd", {"a": outcome(1.0)}), ("rdrd", {"a": outcome(-1.0)}), ("rd", {"a": outcome(None)}), ("rd", {"a": outcome(0.5)})]
    value = torch.tensor([[2.0, 4.0, 99.0, 0.0], [1.0, 99.0, 3.0, 99.0], [9.0, 9.0, 0.0, 0.0], [2.0, 9.0, 0.0, 0.0]])
    loss = mean_label_cross_entropy()(Outputs(value=value), batch_of([rows]), RUN)
    # (2 + 4) / 2, right;  (1 + 3) / 2, wrong: what was only read between them has no part in it;  2, half right, so wrong
    assert loss.tolist() == pytest.approx([cost(1, 3), cost(0, 2), 0, cost(0, 2)], rel=1e-5)


def test_the_language_loss_is_a_mean_over_the_decisions_of_a_row():
    logprobs = torch.tensor([[-9.0, -1.0, -2.0, -3.0, -4.0], [-9.0, -1.0, -3.0, -9.0, -9.0], [-9.0, 0.0, 0.0, -9.0, -9.0]])
    assert language_model()(Outputs(logprobs=logprobs), batch_of([GROUP]), RUN).tolist() == [2.5, 2.0, 0.0]


def test_the_last_token_before_the_end_of_a_step_weighs_more():
    batch = batch_of([GROUP[:2]])
    with pytest.raises(RewardlabError, match='steps="newline"'):
        step_ends()(batch)
    batch.rows = [(replace(t, steps=at), score) for (t, score), at in zip(batch.rows, ((2, 4), (2,)), strict=True)]
    # six decisions, three of which weigh 5
    assert step_ends(times=5.0)(batch).mul(18).tolist() == [pytest.approx(row) for row in ([0, 5, 1, 5, 1], [0, 5, 1, 0, 0])]
