"""Pictures of leagues, and levels in words."""

from __future__ import annotations

import math
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from rewardlab.comparisons.levels import change, shown, span, times
from rewardlab.comparisons.plots import Axis, axis, curves, scatter, spread

SHARE = {"scale": "share", "better": "higher"}
LOG = {"scale": "log", "better": "lower", "unit": "tokens"}


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.0, 1.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]), (3.3, 3.7, [3.3, 3.4, 3.5, 3.6, 3.7]), (0, 470, [0, 100, 200, 300, 400])],
)
def test_ticks_are_round_numbers(low, high, expected):
    assert Axis(low, high, 0, 100).ticks() == pytest.approx(expected)


def test_an_axis_of_what_is_never_negative_begins_at_0():
    assert axis([0.0, 10.0], 0, 1).low == 0
    assert axis([-1.0, 10.0], 0, 1).low < -1
    assert axis([5.0, 5.0], 0, 1).high > 5


def test_labels_do_not_cover_one_another():
    heights = spread([100, 101, 102, 100])
    placed = sorted(heights)
    assert all(b - a >= 14 for a, b in pairwise(placed))
    # in the order of what they stand beside
    assert heights[0] < heights[1] < heights[2]


def test_pictures_are_well_formed_and_name_every_member():
    drawn = curves({"a<b": [0.1, 0.5], "c": [0.2, 0.3], "no curve": []}, ["a<b", "c", "no curve"], "updates", "right")
    text = "".join(ElementTree.fromstring(drawn).itertext())
    assert "a<b" in text
    assert "no curve" not in text
    points = [{"member": "a", "x": 1.0, "y": 0.5, "at": None}, {"member": "a", "x": 2.0, "y": 0.6, "at": 0.25}]
    both = [*points, {"member": "b", "x": 3.0, "y": 0.7, "at": None}]
    assert "0.25" in "".join(ElementTree.fromstring(scatter(both, ["a", "b"], "x", "y")).itertext())
    assert scatter([], ["a"], "x", "y") == curves({}, [], "x", "y") == ""


def test_levels_and_differences_as_people_say_them():
    assert (shown(0.613, SHARE), change(0.1, SHARE), change(-0.1, SHARE)) == ("61.3%", "+10.0 points", "-10.0 points")
    assert shown(math.log(29.8), LOG) == "29.8 tokens"
    # an effect above 0 is better: here, shorter
    assert change(-math.log(0.8), LOG) == "-20%"
    assert span(-math.log(0.9), -math.log(0.7), LOG) == "-30% to -10%"
    assert span(0.01, 0.05, SHARE) == "+1.0 to +5.0"
    assert (times(50.0, 40.0), times(None, 40.0), shown(None, SHARE)) == ("1.25x", "–", "–")
