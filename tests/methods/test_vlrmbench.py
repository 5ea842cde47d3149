"""VLRMBench: the F1 of the released code by hand, pairs and forecasts, how steps are told apart, and where pictures lie."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rewardlab.core import Run
from rewardlab.data.pictures import png
from rewardlab.methods.benchmarks.vlrmbench import benchmark, blind_checkers_found, figures, marks, read, steps_of
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict

PICTURE = np.zeros((4, 4, 3), np.uint8)


def row(task="location_error", told=(0, 1), name="1", **other):
    steps = "\n\n\n".join(f"STEP{k + 1}: step {k}" for k in range(len(told) if isinstance(told, tuple) else 3))
    return {"id": name, "image": PICTURE, "question": "?", "reasoning_error": steps, "task_gt": told, "category": task} | other


def told(rows, chances):
    items = [item for r in rows for item in read(r, "")]
    verdicts = [Verdict(steps=tuple(c)) for c in chances]
    return figures(Marks.of(items, [marks(i, v) for i, v in zip(items, verdicts, strict=True)]))


def test_the_rarer_class_weighs_more_over_all_steps_of_a_task():
    rows = [row(told=(0, 0, 0, 1)), row(told=(0, 0), name="2")]
    found = told(rows, [[(0.9, 0.4, 0.9, 0.1)], [(0.9, 0.9)]])
    # wrong: 1 hit of 2 said and 1 there; right: 4 hits of 4 said and 5 there
    bad, good = 2 * 1 / (2 + 1), 2 * 4 / (4 + 5)
    assert found["location_error"] == found["steps"] == pytest.approx((5 * bad + 1 * good) / 6)
    assert found["step accuracy"] == pytest.approx(5 / 6)


def test_who_finds_every_step_right_gets_little_and_a_chance_of_a_half_is_wrong():
    assert told([row(told=(0, 0, 0, 1))], [[(0.9,) * 4]])["steps"] == pytest.approx(1 / 4 * 6 / 7)
    assert told([row(told=(0, 1))], [[(0.9, 0.5)]])["steps"] == 1.0


def test_tasks_count_alike_and_what_was_not_judged_is_left_out():
    rows = [row(told=(0, 1)), row("detail_error", (1, 0)), row("detail_error", (0, 1), "2")]
    found = told(rows, [[(0.9, 0.1)], [(0.9, 0.1)], [None]])
    assert found["location_error"] == 1.0
    assert found["detail_error"] == 0.0
    assert found["steps"] == 0.5


def test_a_pair_is_decided_by_the_worst_step_and_ties_and_silence_lose():
    pair = row("multi_solution", None, step_list=["STEP1: a", "STEP2: b"], reasoning_error="STEP1: a\nSTEP2: c")
    for chances, right in (([(0.9, 0.8), (0.9, 0.2)], 1.0), ([(0.9, 0.2), (0.2, 0.9)], 0.0), ([(0.9, 0.8), None], 0.0), ([], 0.0)):
        assert told([pair], [chances])["multi_solution"] == right
    (item,) = read(pair, "")
    assert item.pairs == ((0, 1),)
    assert item.steps == (("STEP1: a", "STEP2: b"), ("STEP1: a", "STEP2: c"))


def test_a_forecast_is_what_is_said_of_the_last_step():
    rows = [row("foresight", True), row("foresight", False, "2"), row("foresight", False, "3")]
    assert told(rows, [[(0.1, 0.1, 0.9)], [(0.9, 0.9, 0.5)], []])["foresight"] == pytest.approx(2 / 3)
    (item,) = read(row("foresight", True, reasoning_error=["STEP1: a", "STEP2: b"]), "")
    assert item.labels == ((None, 1.0),)


@pytest.mark.parametrize("task", ["location_error", "multi_solution", "foresight"])
def test_a_row_that_was_not_made_rightly_is_left_out(task):
    whole = row(task, (0, 1), step_list=["STEP1: a"])
    assert len(list(read(whole | {"error_info": None}, ""))) == 1
    assert list(read(whole | {"error_info": "the model gave no answer"}, "")) == []


def test_steps_are_told_apart_in_texts_as_they_are_published():
    assert steps_of("STEP1: Look at STEP2: no.\n- a\n\nSTEP2:  b\nSTEP10: c") == (
        "STEP1: Look at STEP2: no.\n- a",
        "STEP2:  b",
        "STEP10: c",
    )
    assert steps_of(["STEP1: a\n\n", "STEP2: b"]) == ("STEP1: a", "STEP2: b")


def test_a_row_of_other_steps_than_labels_and_critiques_are_left_out_and_unknown_tasks_are_told():
    assert list(read(row(told=(0, 1), reasoning_error="STEP1: a"), "")) == []
    assert list(read(row("error_correction"), "")) == []
    assert next(read({k: v for k, v in row().items() if k != "category"}, "detail_error")).subset == "detail_error"
    with pytest.raises(ValueError, match="is a task"):
        list(read(row("spelling"), "rows"))


def test_pictures_lie_where_the_repository_has_them(tmp_path):
    (tmp_path / "benchmark_data").mkdir()
    (tmp_path / "meta_data" / "Image" / "dynamath").mkdir(parents=True)
    (tmp_path / "meta_data" / "Image" / "dynamath" / "a.png").write_bytes(png(PICTURE))
    path = tmp_path / "benchmark_data" / "location_error.jsonl"
    path.write_text(json.dumps(row(image=["dynamath/a.png"])))
    assert np.array_equal(np.asarray(benchmark.items(path)[0].pictures[0]), PICTURE)


@pytest.mark.slow
def test_the_check_finds_who_does_not_look():
    found = blind_checkers_found()(Run(None))
    assert found["met"] > 0.9
    assert found["control"] < 0.2
    assert found["sums"] == 1.0
    assert found["blind"] < 0.2 < 0.6 < found["looks"]
