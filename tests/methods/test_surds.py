"""SURDS: pairs of questions, options and answers as the released code compares them, centerness, resampling, and the check."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rewardlab.core import Run
from rewardlab.data.pictures import png
from rewardlab.methods.benchmarks.surds import benchmark, centerness, figures, marks, plain, read, ways_read
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict

PICTURE = np.zeros((9, 16, 3), np.uint8)


def row(number=0, file="04_lr_vqas", answer="The car", options=("The car", "The bus", "Almost the same"), **other):
    listed = "\n".join(f"- {option}" for option in options)
    prompt = f"Task:\nlook.\n\nQuestion: \nWhich?\n\nOptions: \n{listed}\n\nMandatory Output Format:\n- none"
    return {"vqa_idx": number, "image_path": PICTURE, "prompt": prompt, "answer": answer, "category": file} | other


def told(rows, chosen):
    items = [item for r in rows for item in read(r, "")]
    verdicts = [Verdict(tuple(float(k == c) for k in range(len(i.replies)))) for i, c in zip(items, chosen, strict=True)]
    return Marks.of(items, [marks(i, v) for i, v in zip(items, verdicts, strict=True)])


def test_both_questions_of_a_pair_must_be_right_but_for_depth():
    rows = [row(k) for k in range(4)] + [row(k, "02_depth_vqas") for k in range(2)]
    found = figures(told(rows, [0, 0, 0, 1, 0, 1]))
    assert found["left or right"] == 0.5
    assert found["depth"] == 0.5
    assert found["overall"] == 0.5
    assert found["single answers"] == 0.75
    # rows 1 and 2 are right, and no pair
    assert figures(told(rows[:4], [1, 0, 0, 1]))["left or right"] == 0.0


def test_a_question_without_its_partner_is_no_pair():
    # of questions 0, 1 and 2 the first two are a pair, of which one is wrong
    found = figures(told([row(k) for k in range(3)], [0, 1, 0]))
    assert (found["left or right"], found["overall"], found["single answers"]) == (0.0, 0.0, pytest.approx(2 / 3))
    again = told([row(k) for k in range(3)], [0, 1, 0]).take(np.array([0, 1, 2, 2]))
    assert figures(again)["left or right"] == 0.0
    # nothing is told of a category that has none
    alone = figures(told([row(0), row(0, "02_depth_vqas")], [0, 0]))
    assert np.isnan(alone["left or right"])
    assert (alone["overall"], alone["depth"]) == (1.0, 1.0)


def test_a_pair_that_was_resampled_twice_counts_twice():
    found = told([row(k) for k in range(4)], [0, 0, 0, 1])
    assert figures(found.take(np.array([0, 1, 0, 1, 2, 3])))["left or right"] == pytest.approx(2 / 3)


def test_options_end_where_the_prompt_goes_on_and_answers_are_compared_without_articles():
    (item,) = read(row(answer="car."), "")
    assert item.replies == ("The car", "The bus", "Almost the same")
    assert item.worth == (1.0, 0.0, 0.0)
    assert plain(" The  Red-car. ") == "redcar"
    broken = {"none of the options": {"answer": "The tram"}, "no options": {"options": ()}, "names none": {"file": "x"}}
    for says, other in broken.items():
        with pytest.raises(ValueError, match=says):
            next(read(row(**other), ""))


def test_the_place_in_pixels_is_the_middle_of_the_box_or_a_mirror_image():
    assert centerness(2, 3, (0, 0, 4, 6)) == 1.0
    assert centerness(1, 3, (0, 0, 4, 6)) == pytest.approx((1 / 3) ** 0.5)
    assert centerness(5, 3, (0, 0, 4, 6)) == centerness(0, 3, (0, 0, 4, 6)) == 0.0
    (item,) = read(row(file="01_xy2d_vqas", image_pixel="16x9", obj_bbox=[0, 0, 12, 2]), "")
    # the mirror image at 10 lies in the box as well: 2 of 10 to the edge
    assert dict(zip(item.replies, item.worth, strict=True)) == pytest.approx(
        {"[6, 1]": 1.0, "[10, 1]": (2 / 10) ** 0.5, "[6, 8]": 0.0, "[10, 8]": 0.0}
    )
    assert marks(item, Verdict((0.0, 1.0, 0.0, 0.0)))["right"] == pytest.approx((2 / 10) ** 0.5)


def test_a_tie_for_the_first_place_and_silence_are_wrong():
    (item,) = read(row(), "")
    assert marks(item, Verdict((1.0, 1.0, 0.0)))["right"] == 0.0
    assert marks(item, Verdict())["right"] == 0.0
    assert marks(item, Verdict((None, None, None)))["right"] == 0.0
    assert marks(item, Verdict((0.1, None, 0.0)))["right"] == 1.0


def test_files_are_read_as_the_released_code_writes_them(tmp_path):
    (tmp_path / "eval_vqas" / "image").mkdir(parents=True)
    (tmp_path / "eval_vqas" / "image" / "a.webp").write_bytes(png(PICTURE))
    rows = [{k: v for k, v in row().items() if k not in ("vqa_idx", "category")} | {"image_path": "eval_vqas/image/a.webp"}] * 3
    (tmp_path / "eval_vqas" / "05_fb_vqas.json").write_text(json.dumps(rows, indent=4))
    found = benchmark.items(tmp_path / "eval_vqas")
    assert [item.id for item in found] == [f"front or behind/{k}" for k in range(3)]
    assert [item.meta["pair"] for item in found] == [0, 0, 1]
    assert len({item.cluster for item in found}) == 1


@pytest.mark.slow
def test_the_check_finds_who_does_not_read_which_way_round_is_asked():
    found = ways_read()(Run(None))
    assert (found["pairs"], found["single"]) == (0.0, 0.5)
    assert found["met"] == 1.0
    assert found["control"] < 0.4
    # a coin for each of two questions
    assert found["blind"] == pytest.approx(0.25, abs=0.08)
