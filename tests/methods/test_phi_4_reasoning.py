"""Phi-4-reasoning: right replies earn less beyond a length, wrong ones the shorter they are."""

from __future__ import annotations

import math

import pytest
from lengths import credits, group_of, reply, run_at, totals

from rewardlab import registry
from rewardlab.api.measuring import measured
from rewardlab.errors import RewardlabError
from rewardlab.methods.shaping.phi_4_reasoning import scaled

SMALL = {"right_until": 4, "wrong_from": 8, "longest": 12}
RUN = run_at()


def of(accuracy: float, repetition: float = 0.0) -> float:
    return 8 / 13 * accuracy + 1 / 13 * repetition


@pytest.mark.parametrize(
    ("length", "right", "wrong"),
    [
        # right: (len - 25600) / 6144 of half a period;  wrong: len / 3702
        (0, 1.0, -1.0),
        (1_851, 1.0, -0.75),
        (3_702, 1.0, -0.5),
        (25_600, 1.0, -0.5),
        (28_672, 0.75, -0.5),
        (31_744, 0.5, -0.5),
        (40_000, 0.5, -0.5),
    ],
)
def test_the_published_curve(length, right, wrong):
    assert scaled(length, True, 25_600, 3_702, 31_744) == pytest.approx(right)
    assert scaled(length, False, 25_600, 3_702, 31_744) == pytest.approx(wrong)


def test_length_pulls_right_and_wrong_replies_apart():
    # right: 4 tokens, p = 0; 8 tokens, p = 1/2: 3/4; 12 tokens: 1/2.  wrong: 4 tokens, p = 1/2: -3/4; 8 and 10 tokens: -1/2
    group = group_of("rrrwww?", (4, 8, 12, 4, 8, 10, 5))
    found = totals(registry.build("phi_4_reasoning", SMALL), [group], RUN)[0]
    assert found == pytest.approx([of(1), of(0.75), of(0.5), of(-0.75), of(-0.5), of(-0.5), None])


def test_a_reply_that_was_cut_off_or_thinks_in_no_block_earns_that_whatever_it_answers():
    cut, thought = reply(4, stop="length"), reply(4, "<think>2+2</think>4")
    group = [cut, reply(4, "5", stop="length"), reply(4, "?", stop="length"), thought, reply(4, "<think></think>4"), reply(4)]
    found = totals(registry.build("phi_4_reasoning", SMALL), [group], RUN)[0]
    assert found == pytest.approx([of(-0.5), of(-0.5), None, of(1), of(1), of(1)])
    found = totals(registry.build("phi_4_reasoning", {**SMALL, "think": True}), [group], RUN)[0]
    assert found == pytest.approx([of(-1), of(-1), None, of(1), of(-1), of(-1)])


def test_repetition_costs_right_and_wrong_replies_alike():
    # one token 10 times: one 5-gram, 6 times of 6: max(1/6, 6 / (10/5)) = 3;  right: p = (10 - 4) / 8 = 3/4
    right = 0.5 + 0.25 * (1 + math.cos(0.75 * math.pi))
    found = totals(registry.build("phi_4_reasoning", SMALL), [[reply([7] * 10), reply([7] * 10, "5")]], RUN)[0]
    assert found == pytest.approx([of(right, -3), of(-0.5, -3)])


def test_the_credit_of_all_right_and_of_all_wrong():
    """Where GRPO's credit is 0, the shorter right and the longer wrong reply get the credit."""
    recipe = registry.build("phi_4_reasoning", SMALL)
    # rewards differ by 1/4 * 8/13 = .15385: +-.07692 from the mean, std .10879;  / (std + 1e-4) = .70646
    right, wrong = group_of("rr", (4, 8)), group_of("ww", (4, 8))
    assert credits(recipe, [right, wrong], RUN) == pytest.approx([0.70646, -0.70646, -0.70646, 0.70646], abs=1e-4)
    # one reply has nothing to be compared with
    assert credits(recipe, [group_of("r", (4,))], RUN) == [0.0]


def test_it_is_measured_by_what_it_gets_right_and_grades_the_reward_of_a_base():
    task = registry.task("arithmetic", test_size=4)
    assert measured(registry.build("phi_4_reasoning"), task).measure.name == "accuracy"
    stacked = registry.build("gdpo+phi_4_reasoning", {"gdpo.form": ".*4"})
    assert "accuracy_by_length(correct() + 1 * format_ok(" in str(stacked.reward)


def test_entropy_is_paid_for_beside_the_clipped_ratio():
    assert "0.001 * negative_entropy()" in str(registry.build("phi_4_reasoning").objective)
    assert registry.build("phi_4_reasoning", {"entropy": 0.0}).objective == registry.build("grpo").objective


def test_lengths_that_make_no_sense_together_are_refused():
    with pytest.raises(RewardlabError, match=r"longest \(8\) must be above right_until \(8\)"):
        registry.build("phi_4_reasoning", {"right_until": 8, "longest": 8})
