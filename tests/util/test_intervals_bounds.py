"""Means with their bounds by name."""

import numpy as np
import pytest

from rewardlab.util.intervals import with_bounds


def test_bounds_stand_beside_the_mean_of_several_values_alone():
    assert with_bounds("gain", np.array([3.0])) == {"gain": 3.0}
    # t of one degree of freedom is 12.706; the standard error of 1 and 3 is 1
    found = with_bounds("gain", np.array([1.0, 3.0]))
    assert found == pytest.approx({"gain": 2.0, "gain.low": 2 - 12.706, "gain.high": 2 + 12.706}, abs=1e-3)
