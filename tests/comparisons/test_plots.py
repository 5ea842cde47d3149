"""Pictures of leagues, and levels in words."""

from __future__ import annotations

import math
from itertools import combinations, pairwise, product
from xml.etree import ElementTree

import pytest

from rewardlab.comparisons.levels import axis_of, change, plotted_at, shown, span, times
from rewardlab.comparisons.plots import Axis, Spot, axis, curves, labelled, scatter, spread, through

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


def test_labels_stand_beside_their_points_and_cover_neither_points_nor_one_another():
    close = [Spot(200 + 3 * i, 100 + 2 * i, f"method_{i}", "#000", 12) for i in range(6)]
    root = ElementTree.fromstring(f"<svg>{labelled([*close, Spot(560, 200, 'far_right', '#000', 12)])}</svg>")
    boxes = [(float(one.attrib["x"]), float(one.attrib["y"]), 0.58 * 12 * len(one.text or "")) for one in root.iter("text")]
    assert len(boxes) == 7
    for (x1, y1, wide1), (x2, y2, wide2) in combinations(boxes, 2):
        assert abs(y1 - y2) >= 11.9 or x1 + wide1 <= x2 or x2 + wide2 <= x1
    for (x, y, wide), spot in product(boxes, close):
        assert not (x < spot.x < x + wide and y - 10 < spot.y < y)
    # those that had to move away are joined to their points
    assert list(root.iter("line"))


def test_axes_are_in_what_people_read():
    length = LOG | {"says": "length of right replies"}
    assert plotted_at(math.log(30), length) == pytest.approx(30)
    assert axis_of(length) == "length of right replies, tokens (lower is better)"
    assert (plotted_at(0.5, SHARE), plotted_at(None, SHARE)) == (50, None)
    assert axis_of({"says": "right replies", "scale": "share", "unit": ""}) == "right replies, %"


def test_a_line_goes_through_settings_in_their_order_and_through_the_member_where_it_lies():
    line = through([(0.0, 5.0, 8.0), (0.0, 3.0, None), (0.0, 1.0, 2.0), (0.0, 2.0, 4.0)])
    assert line == [(0, 1), (0, 2), (0, 3), (0, 5)]
    assert through([(1.0, 1.0, None)]) == [(1, 1)]
