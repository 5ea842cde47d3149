"""Socratic-PRMBench: patterns and their scores by hand, its odd rows, and its study."""

import numpy as np
import pytest

from rewardlab.core import Run
from rewardlab.evals.process import prm_score
from rewardlab.methods.benchmarks.socratic_prmbench import benchmark, figures, marks, read, unseen_patterns
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict


def item(idx, category, wrong, file="file", steps=("a", "b", "c", "d")):
    row = {"idx": idx, "classification": category, "modified_question": "q", "modified_process": list(steps), "error_steps": wrong}
    (found,) = read(row, file)
    return found


def figures_of(items, chances):
    verdicts = [Verdict(steps=(c,)) if c is not None else Verdict() for c in chances]
    return figures(Marks.of(items, [marks(i, v) for i, v in zip(items, verdicts, strict=True)]))


def test_steps_are_pooled_for_the_headline_and_categories_averaged_for_a_pattern():
    items = [
        item("1", "premise_unsoundness", [2]),
        item("2", "conclusion_invalidity", [4]),
        item("3", "Regather Redundancy", [1, 2]),
    ]
    found = figures_of(items, [(0.9, 0.1, 0.9, 0.9), (0.9, 0.9, 0.1, 0.9), (0.1, 0.9, 0.9, 0.9)])
    # conclusion: tp 2, fp 1, tn 0, fn 1;  regather: tp 2, fp 1, tn 1, fn 0
    first, second, third = 1.0, (4 / 6) / 2, (4 / 5 + 2 / 3) / 2
    assert found["deduction"] == pytest.approx((first + second) / 2)
    assert found["regather"] == found["regather/Regather Redundancy"] == pytest.approx(third)
    assert found["lowest_pattern"] == found["deduction"]
    # together: tp 7, fp 2, tn 2, fn 1
    assert found["prm_score"] == pytest.approx((14 / 17 + 4 / 7) / 2)
    assert (found["accuracy_right"], found["accuracy_wrong"]) == (7 / 8, 2 / 4)
    assert found["step_accuracy"] == 9 / 12
    assert found["first_error"] == 2 / 3


def test_a_published_recall_of_both_kinds_bounds_its_score():
    """The paper's recalls of right and wrong steps come to its PRM-Score at its share of wrong steps, 3.0 of 8.7 a solution."""
    for row in benchmark.published:
        right, wrong = row.figures["accuracy_right"], row.figures["accuracy_wrong"]
        tp, tn = 5.7 * right, 3.0 * wrong
        score = prm_score(tp, 3.0 - tn, tn, 5.7 - tp)["prm_score"]
        assert score == pytest.approx(row.figures["prm_score"], abs=0.03), row.rater


def test_a_solution_without_a_verdict_is_left_out():
    items = [item("1", "integration_a", [2]), item("2", "integration_a", [1])]
    assert figures_of(items, [(0.9, 0.1, 0.9, 0.9), None])["prm_score"] == 1.0


@pytest.mark.parametrize("wrong", [[], [9], [0], ["2"], None])
def test_rows_that_list_no_step_that_is_there_mark_nothing(wrong):
    assert item("1", "integration_a", wrong).labels == ((1.0, 1.0, 1.0, 1.0),)


def test_the_pattern_is_that_of_the_category_or_else_of_the_file():
    assert item("1", "Detection Error", [1]).subset == "verification/Detection Error"
    assert item("1", "inconsistency", [1], "Integration_Inconsistency").subset == "integration/inconsistency"
    assert item("1", "inconsistency", [1], "all").subset == "inconsistency"
    # one that names no pattern counts in the headline alone
    found = figures_of([item("1", "inconsistency", [1], "all")], [(0.1, 0.9, 0.9, 0.9)])
    assert found["prm_score"] == 1.0
    assert np.isnan(found["lowest_pattern"])


@pytest.mark.slow
def test_an_unseen_pattern_is_found_by_its_own_score_and_hidden_by_the_aggregate():
    found = unseen_patterns()(Run(None, seed=7))
    assert found["unseen"] < 0.6 < 0.8 < found["seen"]
    assert found["aggregate"] > found["unseen"] + 0.2
