"""ViLBench: best of N by hand, ties and silence, the indicator, and questions on which steps decide."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab.core import Run
from rewardlab.methods.benchmarks.vilbench_vilprm import (
    benchmark,
    figures,
    indicator,
    marks,
    read,
    steps_where_they_matter,
)
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict

PICTURE = np.zeros((4, 4, 3), np.uint8)


def row(correct=(True, False, True), name="1", dataset="MMStar", **other):
    responses = [{"steps": [f"step {k}", f"end {k}"], "correct": c} for k, c in enumerate(correct)]
    return {"id": name, "image": PICTURE, "question": "?", "dataset": dataset, "responses": responses} | other


def told(rows, scores):
    items = [item for r in rows for item in read(r, "")]
    return figures(Marks.of(items, [marks(i, Verdict(s)) for i, s in zip(items, scores, strict=True)]))


def test_the_best_of_n_counts_and_equal_ones_share_their_chance():
    rows = [row(), row((False, False), "2", "MathVista"), row((True, False), "3", "MathVista")]
    found = told(rows, [(0.1, 0.9, 0.9), (1.0, 0.0), (1.0, 0.0)])
    assert found["overall"] == pytest.approx((0.5 + 0 + 1) / 3)
    assert (found["MMStar"], found["MathVista"]) == (0.5, 0.5)
    assert found["one sample"] == pytest.approx((2 / 3 + 0 + 1 / 2) / 3)
    assert found["oracle"] == pytest.approx(2 / 3)


def test_a_reply_without_a_score_is_chosen_last_and_none_at_all_is_wrong():
    assert told([row()], [(None, -5.0, None)])["overall"] == 0.0
    assert told([row()], [(-5.0, None, None)])["overall"] == 1.0
    assert told([row()], [()])["overall"] == 0.0


def test_steps_are_kept_for_process_rewards_and_one_response_is_no_choice():
    (item,) = read(row(), "")
    assert item.steps[1] == ("step 1", "end 1")
    assert item.replies[1] == "step 1\nend 1"
    assert len(item.pictures) == 1
    with pytest.raises(ValueError, match="several responses"):
        next(read(row((True,)), ""))
    assert {i.id for r in benchmark.example for i in benchmark.read(r, "")} == {"1", "2"}


def test_the_indicator_by_hand():
    # steps lead by 0.8 - 0.2, ends by 0.5 - 0.75
    assert indicator((1, 0, 0), (0.8, 0.1, 0.3), (0.5, 1.0, 0.5)) == pytest.approx(0.6 + 0.25)
    assert indicator((1, 1), (0.8, 0.1), (0.5, 1.0)) == 0.0


@pytest.mark.slow
def test_what_pilots_find_holds_for_others_and_what_noise_finds_does_not():
    found = steps_where_they_matter()(Run(None))
    assert found["met"] > found["control"] + 0.1
    assert found["by noise"] == pytest.approx(found["control"], abs=0.1)
    assert found["blind"] == pytest.approx(found["one sample"], abs=0.1)
    assert found["prm"] > found["blind"] + 0.2
