"""GDPO: rewards are normalised one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rows import Replies, batch_of, outcome

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.credit.group import whiten_events
from rewardlab.evals.term_means import term_means
from rewardlab.rewards.format import format_ok
from rewardlab.verifiers.match import final_number

RUN = Run(policy=None)


def two(right: float, formed: float):
    return {"correct": outcome(right), "format_ok": outcome(formed)}


# One group, (right, formed): (1, 0), (0, 1), (0, 1), (0, 0); and a second group in which nothing varies.
#   right:  1 0 0 0   mean 1/4, deviations 3/4 -1/4 -1/4 -1/4, unbiased variance (9 + 3)/16 / 3 = 1/4, std 1/2
#           3/2 -1/2 -1/2 -1/2
#   formed: 0 1 1 0   mean 1/2, deviations -1/2 1/2 1/2 -1/2, variance 1/3, std .577350
#           -.866025 .866025 .866025 -.866025
#   sum:    .633975  .366025  .366025  -1.366025,  second group: 0
GROUPS = [
    [("rdd", two(1, 0)), ("rd", two(0, 1)), ("rdd", two(0, 1)), ("rddd", two(0, 0))],
    [("rd", two(1, 1)), ("rd", two(1, 1)), ("rd", two(1, 1)), ("rd", two(1, 1))],
]
SUMS = [0.633975, 0.366025, 0.366025, -1.366025, 0, 0, 0, 0]


def of_rows(name: str, settings: dict, weight: float = 1.0) -> list[float]:
    """The credit at the first decision of each row; every decision of a row has the same."""
    groups = [[(p, {k: outcome(t.value, weight if k == "format_ok" else 1.0) for k, t in r.items()}) for p, r in g] for g in GROUPS]
    batch = batch_of(groups)
    credit = registry.build(name, settings).credit(batch.reward, batch, RUN)
    assert torch.allclose(credit, torch.where(batch.mask, credit[:, 1:2], 0.0))
    return credit[:, 1].tolist()


def test_each_reward_is_normalised_before_they_are_added_and_the_sum_over_the_replies_of_the_batch():
    # squares of the sums: .401924 + 2 * .133975 + 1.866025 = 2.535898; mean 0; over 8 - 1: .362271, std .601890
    assert of_rows("gdpo", {}) == pytest.approx([x / 0.601890 for x in SUMS], abs=1e-3)


def test_grpo_gives_one_advantage_to_what_gdpo_tells_apart():
    summed = of_rows("gdpo", {"decoupled": False})
    assert summed[0] == summed[1]
    decoupled = of_rows("gdpo", {})
    assert decoupled[0] > decoupled[1] + 0.1


def test_the_weight_of_a_reward_survives_its_normalisation():
    # with weight 2: 3/2 - 2 * .866025 = -.232051;  -1/2 + 2 * .866025 = 1.232051;  -1/2 - 2 * .866025 = -2.232051
    found = of_rows("gdpo", {"weight": 2.0}, weight=2.0)
    assert [x / found[1] for x in found[:4]] == pytest.approx([-0.188345, 1, 1, -1.811655], abs=1e-3)


def test_replies_count_once_however_long():
    # events 1, -1 (rows of one and three decisions): mean 0, unbiased variance 2
    batch = batch_of([[("rd", {"a": outcome(1.0)}), ("rddd", {"a": outcome(-1.0)})]])
    found = whiten_events()(batch.reward, batch, RUN)
    assert found[0, 1] == pytest.approx(0.5**0.5)
    assert found[1, 3] == pytest.approx(-(0.5**0.5))
    assert found[1, :3].tolist() == [0, 0, 0]


def test_a_reply_without_a_verdict_gets_no_credit():
    with_it = batch_of([[*GROUPS[0], ("rd", {"correct": outcome(None), "format_ok": outcome(1)})], GROUPS[1]])
    credit = registry.build("gdpo").credit(with_it.reward, with_it, RUN)
    assert credit[4].tolist() == [0, 0, 0, 0]


def test_a_reply_counts_as_earned_where_it_earns_every_term():
    # right and formed, right alone, formed alone, neither: all 1/4, each term 1/2
    run = Run(Replies(["1+1=2", "2", "1+1=3", "3"]))
    reward = final_number() + 0.5 * format_ok(pattern=r"\d\+.+")
    found = term_means(reward=reward)([ask("1+1?", "2")] * 4, run)
    assert found["all"] == 0.25
    assert found["final_number"] == found["format_ok"] == 0.5


def test_the_form_asked_for_by_default_is_one_that_replies_of_real_models_have():
    texts = ("<think>\n1 + 1 is 2.\n</think>\nThe answer is \\boxed{2}.", "The answer is \\boxed{2}.", "<think>1 + 1 is 2.</think>")
    group = [Trajectory(ask("1+1?", "2"), (Turn("policy", np.zeros(1, np.int64), text=text),)) for text in texts]
    run = Run(policy=None, verify=final_number())
    scores = registry.build("gdpo").reward([group], run)[0]
    # right and formed, right alone, and neither: a thought without an answer after it
    assert [s.terms["format_ok"].value for s in scores] == [1, 0, 0]
    assert scores[0].total == 2
