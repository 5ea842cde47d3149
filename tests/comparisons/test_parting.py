"""Where a reward goes on rising while replies get worse."""

import pytest

from rewardlab.comparisons.parting import parting, smooth

RISE = [0.1 * i for i in range(10)]


def test_truth_that_falls_under_a_rising_reward_parts_from_it_at_its_peak():
    truth = [0.2, 0.3, 0.4, 0.5, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
    # means of three neighbours are highest around the fifth of ten stretches: the middle of a run
    assert parting({"truth": truth, "reward": RISE}, 40, 0.03) == pytest.approx(18.0)
    # where the reward falls as well, training failed in another way
    assert parting({"truth": truth, "reward": truth}, 40, 0.03) is None


def test_a_small_fall_is_none():
    truth = [*RISE[:9], 0.7]
    assert parting({"truth": truth, "reward": RISE}, 40, 0.1) is None
    assert parting({"truth": RISE, "reward": RISE}, 40, 0.01) is None


def test_what_training_does_not_log_cannot_part():
    assert parting({"reward": RISE}, 40, 0.03) is None
    assert parting({"truth": [0.5, 0.1], "reward": [0.1, 0.5]}, 2, 0.03) is None
    assert smooth([1.0, 2.0, 3.0, 7.0]).tolist() == pytest.approx([2.0, 4.0])
