"""Multimodal RewardBench: categories and their parts, means over pairs and over categories, pictures, and who is blind."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rewardlab.core import Run
from rewardlab.data.pictures import png
from rewardlab.errors import RewardlabError
from rewardlab.methods.benchmarks.multimodal_rewardbench import (
    CATEGORIES,
    ROWS,
    benchmark,
    blind_raters_found,
    figures,
    marks,
    read,
)
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict

PICTURE = np.zeros((4, 4, 3), np.uint8)


def row(name="x_1", category="vqa", better="Output1", **other):
    return {
        "ID": name,
        "Text": "?",
        "Image": PICTURE,
        "Output1": "a",
        "Output2": "b",
        "Better": better,
        "Category": category,
        **other,
    }


def test_parts_are_told_by_the_id_as_in_the_released_code():
    names = {
        ("pairs_3", "safety"): "safety/bias", ("hateful_3", "safety"): "safety/toxicity",
        ("mathvista_1", "reasoning"): "reasoning/math", ("EMMA-Coding_1", "reasoning"): "reasoning/coding",
        ("nocaps_1", "open_generation/correctness_task"): "correctness",
    }  # fmt: skip
    for (name, category), subset in names.items():
        assert next(read(row(name, category), "")).subset == subset


def test_pairs_count_alike_overall_and_categories_in_the_macro_mean():
    rows = [row(f"v_{k}") for k in range(4)] + [row("math_1", "reasoning"), row("emma_1", "reasoning"), row("pairs_1", "safety")]
    items = [item for r in rows for item in read(r, "")]
    scores = [(1.0, 0.0)] * 3 + [(0.0, 1.0)] + [(1.0, 0.0), (0.0, 1.0)] + [(1.0, 1.0)]
    told = figures(Marks.of(items, [marks(i, Verdict(s)) for i, s in zip(items, scores, strict=True)]))
    assert told["overall"] == pytest.approx(4 / 7)
    # 3 of 4, 1 of 2, and a tie, which a reward model loses
    assert told["macro"] == pytest.approx((3 / 4 + 1 / 2 + 0) / 3)
    assert (told["vqa"], told["reasoning"], told["safety"]) == (0.75, 0.5, 0.0)
    assert (told["reasoning/math"], told["reasoning/coding"]) == (1.0, 0.0)


def test_an_undecided_order_of_a_judge_is_half_a_win():
    (item,) = read(row(better="Output2"), "")
    assert marks(item, Verdict(orders={(0, 1): 0.0, (1, 0): None}))["right"] == pytest.approx(0.75)
    assert marks(item, Verdict())["right"] == 0.0


def test_published_figures_overall_lie_between_those_of_the_categories():
    for overall, *each in ROWS.values():
        assert len(each) == len(CATEGORIES)
        assert min(each) < overall < max(each)


def test_pictures_stand_beside_the_file_and_a_missing_one_is_told(tmp_path):
    (tmp_path / "images" / "vqa").mkdir(parents=True)
    (tmp_path / "images" / "vqa" / "1.png").write_bytes(png(PICTURE))
    rows = [row("a_1", Image="images/vqa/1.png"), row("a_2", Image="images/vqa/2.png")]
    path = tmp_path / "all_data.json"
    path.write_text(json.dumps(rows[:1]))
    (item,) = benchmark.items(path)
    assert np.array_equal(np.asarray(item.pictures[0]), PICTURE)
    path.write_text(json.dumps(rows))
    with pytest.raises(RewardlabError, match=r"row 2.*there is no picture.*2\.png"):
        benchmark.items(path)
    path.write_text(json.dumps([row("a_1", better="A", Image="images/vqa/1.png")]))
    with pytest.raises(RewardlabError, match="Output1 or Output2"):
        benchmark.items(path)


@pytest.mark.slow
def test_who_does_not_look_stays_near_chance_where_the_picture_decides():
    told = blind_raters_found()(Run(None))
    assert told["blind"] == pytest.approx(0.5, abs=0.06)
    assert told["seeing"] == pytest.approx(0.8, abs=0.05)
    assert told["met"] > 0.8
    assert told["control"] < 0.2
