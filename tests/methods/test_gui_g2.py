"""GUI-G2: Gaussian rewards by hand, and the forms in which models point."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.vision.gui_g2 import box_alone, gaussian_coverage, gaussian_point, gui_g2, place_in, target_hit

GOLD = [100, 200, 140, 220]
"""40 wide and 20 high, its centre at (120, 210): spreads of 20 and 10."""


def said(text, boxes=GOLD):
    return Trajectory(ask("?", None, boxes=boxes), (Turn("policy", np.zeros(1, np.int64), text=text),), "end")


def value(part, text, boxes=GOLD):
    return part([[said(text, boxes)]])[0][0].value


# ---- places ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "[100,200,140,220]",
        "[100, 200, 140, 220]",
        "(100.0, 200.0, 140.0, 220.0)",
        "<answer>[100,200,140,220]</answer>",
        '```json\n[\n\t{"bbox_2d": [100, 200, 140, 220], "label": "Save"}\n]\n```',
        "<|box_start|>(100,200),(140,220)<|box_end|>",
        "[[100, 200], [140, 220]]",
        "<bbox>100 200 140 220</bbox>",
        "[140,220,100,200]",  # from the other corner
        "<think>Not [0,0,9,9], which is the menu.</think>\n<answer>[100,200,140,220]</answer>",
        "First [0,0,9,9]? <answer>[100,200,140,220]</answer>",
    ],
)
def test_boxes_as_models_write_them(text):
    assert place_in(text) == ((100, 140), (200, 220))


@pytest.mark.parametrize(
    "text",
    [
        "(120, 210)",
        "[120,210]",
        '{"point_2d": [120, 210], "label": "Save"}',
        "Action: click(start_box='(120,210)')",
        "<point>120 210</point>",
        "pyautogui.click(x=120, y=210)",
        '<point x="120" y="210" alt="Save">Save</point>',
        '{"action": "click", "x": 120, "y": 210}',
        "<answer>(120, 210)</answer>",
    ],
)
def test_points_as_models_write_them(text):
    assert place_in(text) == ((120, 120), (210, 210))


@pytest.mark.parametrize(
    "text",
    [
        *("", "Top left.", "[1, 2, 3]", "[x1,y1,x2,y2]", "<think>[1,2,3,4]", "[1,2,3,4]<answer>none</answer>"),
        # a model that goes round
        f"[{'1' * 500},{'2' * 500},3,4]",
    ],
)
def test_no_place(text):
    assert place_in(text) is None
    assert [value(part, text) for part in (gaussian_point(), gaussian_coverage(), target_hit())] == [0, 0, 0]


def test_the_first_place_counts_and_shares_of_the_screen_are_read():
    assert place_in("[1,2,3,4] or (9,9)") == ((1, 3), (2, 4))
    assert place_in("(9,9), not [1,2,3,4]") == ((9, 9), (9, 9))
    assert place_in("[.25, 0.5, -0.5, 0.75]") == ((-0.5, 0.25), (0.5, 0.75))


# ---- rewards -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "point", "coverage", "hit"),
    [
        ("[100,200,140,220]", 1.0, 1.0, 1.0),
        # a spread to the right: exp(-1/2), and exp(-20^2 / (4 (20^2 + 20^2))) = exp(-1/8)
        ("[120,200,160,220]", math.exp(-0.5), math.exp(-0.125), 1.0),
        # two spreads down, and outside: exp(-2) and exp(-1/2)
        ("[100,220,140,240]", math.exp(-2), math.exp(-0.5), 0.0),
        # the same centre and half the width: the point is right, and sqrt(2 * 10 * 20 / (10^2 + 20^2)) is covered
        ("[110,200,130,220]", 1.0, math.sqrt(0.8), 1.0),
        # a point, and a line, cover nothing
        ("(120,210)", 1.0, 0.0, 1.0),
        ("[100,210,140,210]", 1.0, 0.0, 1.0),
    ],
)
def test_rewards_by_hand(text, point, coverage, hit):
    found = [value(part, text) for part in (gaussian_point(), gaussian_coverage(), target_hit())]
    assert found == pytest.approx([point, coverage, hit])


def test_the_spread_is_the_targets():
    # ten to the right of the centre: half a spread of a target 40 wide, and four of one 5 wide
    wide, narrow = GOLD, [117.5, 200, 122.5, 220]
    assert value(gaussian_point(), "(130,210)", wide) == pytest.approx(math.exp(-0.125))
    assert value(gaussian_point(), "(130,210)", narrow) == pytest.approx(math.exp(-8))
    assert value(gaussian_point(alpha=1.0), "(130,210)", wide) == pytest.approx(math.exp(-0.03125))
    fixed = gaussian_point(sigma=10.0)
    assert value(fixed, "(130,210)", wide) == value(fixed, "(130,210)", narrow) == pytest.approx(math.exp(-0.5))
    # fixed spreads are those of both boxes: exp(-10^2 / (4 * 200)), whatever their sizes
    assert value(gaussian_coverage(sigma=10.0), "[120,200,140,220]", wide) == pytest.approx(math.exp(-0.125))


def test_shares_of_the_screen_earn_what_pixels_do():
    small = [x / 1000 for x in GOLD]
    assert value(gaussian_coverage(), "[.11,.2,.13,.22]", small) == pytest.approx(math.sqrt(0.8))
    assert value(gaussian_point(), "(0.13,0.21)", small) == pytest.approx(math.exp(-0.125))


def released(pred, gold):
    """The release's coverage, with its eps, by matrices."""
    centres = [np.array([(b[0] + b[2]) / 2, (b[1] + b[3]) / 2]) for b in (pred, gold)]
    covariances = [np.diag([((b[2] - b[0]) / 2) ** 2, ((b[3] - b[1]) / 2) ** 2]) for b in (pred, gold)]
    d, mean = centres[0] - centres[1], sum(covariances) / 2
    whole, first, second = (np.linalg.det(c) for c in (mean, *covariances))
    far = d @ np.linalg.inv(mean + 1e-8 * np.eye(2)) @ d / 8 + 0.5 * np.log(whole / np.sqrt(first * second + 1e-8))
    return round(float(np.exp(-far)), 3)


@pytest.mark.parametrize("box", [[90, 205, 150, 230], [101, 190, 111, 260], [0, 0, 400, 300], [140, 220, 100, 200]])
def test_coverage_is_the_releases_in_pixels(box):
    assert value(gaussian_coverage(), str(box)) == pytest.approx(released(box, GOLD), abs=6e-4)


def test_the_nearest_of_several_targets_counts():
    two = [GOLD, [0, 0, 10, 10]]
    assert value(gaussian_point(), "(5,5)", two) == value(target_hit(), "(5,5)", np.array(two)) == 1.0
    assert value(gaussian_point(), "(120,210)", "[[100, 200, 140, 220]]") == 1.0  # as a table of text holds it


@pytest.mark.parametrize("boxes", [[], [1, 2, 3], [1, 1, 1, 5], "somewhere", [None] * 4, 7])
def test_a_gold_box_that_is_none_is_told(boxes):
    with pytest.raises(RewardlabError, match="'boxes' of '\\?' is a gold box"):
        value(gaussian_point(), "[1,2,3,4]", boxes)
    with pytest.raises(RewardlabError, match="needs the columns 'boxes'"):
        value(gaussian_point(), "[1,2,3,4]", None)


# ---- the recipe --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("[1,2,3,4]\n", 1.0),
        ("<think>Top left, [0,0,9,9]?</think>\n<answer> [1, 2, 3, 4] </answer>", 1.0),
        ("It is [1,2,3,4]", 0.0),
        ("[1,2,3,4][1,2,3,4]", 0.0),
        ('{"bbox_2d": [1,2,3,4]}', 0.0),
        ("<think>[1,2,3,4]", 0.0),
        ("(1,2)", 0.0),
    ],
)
def test_the_form(text, want):
    assert value(box_alone(), text) == want


def credits(recipe, texts):
    group = [said(text) for text in texts]
    scores = recipe.reward([group], None)
    batch = collate([group], scores, torch.device("cpu"))
    return [s.total for s in scores[0]], recipe.credit(batch.reward, batch, Run(None))[:, 0].tolist()


def test_a_near_miss_is_better_than_a_guess_where_hits_tell_them_apart_not():
    # exact; a near miss, two spreads down; far away; and without its form, which costs 1
    texts = ["[100,200,140,220]", "[100,220,140,240]", "[0,0,9,9]", "It is at [100,200,140,220]."]
    rewards, dense = credits(gui_g2(), texts)
    want = [3.0, 1 + math.exp(-2) + math.exp(-0.5), 1.0, 2.0]
    assert rewards == pytest.approx(want)
    assert dense == pytest.approx([(x - np.mean(want)) / np.std(want, ddof=1) for x in want], abs=1e-3)
    rewards, sparse = credits(gui_g2(sparse=True), texts)
    assert rewards == [2.0, 1.0, 1.0, 1.0]
    assert sparse[1] == sparse[2] < 0
    assert credits(gui_g2(form=0.0, point=2.0, coverage=0.5), texts[-1:])[0] == [2.5]


def test_the_gold_box_may_be_named_otherwise():
    recipe = registry.build("gui_g2", {"column": "abs_box", "beta": 0.0})
    row = Trajectory(ask("?", None, abs_box=GOLD), said("[100,200,140,220]").turns, "end")
    assert recipe.reward([[row]], None)[0][0].total == 3.0
    assert "kl_to_reference" not in str(recipe.objective)
