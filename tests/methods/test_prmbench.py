"""PRMBench: scores of steps counted by hand, its odd rows, and its size."""

import collections

import pytest

from rewardlab.errors import RewardlabError
from rewardlab.methods.benchmarks.prmbench import benchmark, figures, marks, read
from rewardlab.scoreboard.benchmark import rows_of
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict


def item(idx, category, wrong, steps=("a", "b", "c", "d")):
    row = {"idx": idx, "classification": category, "modified_question": "q", "modified_process": list(steps), "error_steps": wrong}
    (found,) = read(row, "file")
    return found


def figures_of(items, chances):
    verdicts = [Verdict(steps=(c,)) if c is not None else Verdict() for c in chances]
    return figures(Marks.of(items, [marks(i, v) for i, v in zip(items, verdicts, strict=True)]))


def test_the_two_sums_that_circulate_differ():
    items = [item("1", "redundency", [2]), item("2", "circular", [1, 2, 3]), item("3", "circular", [4])]
    found = figures_of(items, [(0.9, 0.9, 0.9, 0.1), (0.1, 0.2, 0.5, 0.9), (0.9, 0.9, 0.9, 0.1)])
    # redundency: tp 2, fp 1, tn 0, fn 1; circular: tp 4, fp 0, tn 4, fn 0
    assert found["redundency"] == pytest.approx((4 / 6 + 0) / 2)
    assert found["circular"] == 1.0
    assert found["mean_of_categories"] == found["simplicity"] == pytest.approx((1 / 3 + 1) / 2)
    assert found["f1"] == pytest.approx(12 / 14)
    assert found["negative_f1"] == pytest.approx(8 / 10)
    assert found["prm_score"] == pytest.approx((12 / 14 + 8 / 10) / 2)
    assert found["first_error"] == pytest.approx(2 / 3)
    assert found["step_accuracy"] == pytest.approx(10 / 12)


def test_a_category_without_wrong_steps_is_scored_by_its_right_ones_alone():
    items = [item("1", "multi_solutions", []), item("2", "deception", [1])]
    found = figures_of(items, [(0.9, 0.9, 0.1, 0.9), (0.1, 0.9, 0.9, 0.9)])
    assert found["multi_solutions"] == pytest.approx(6 / 7)
    assert found["sensitivity"] == pytest.approx((6 / 7 + 1) / 2)


def test_a_solution_without_a_verdict_is_left_out_as_in_the_released_code():
    items = [item("1", "circular", [2]), item("2", "circular", [1])]
    assert figures_of(items, [(0.9, 0.1, 0.9, 0.9), None])["prm_score"] == 1.0
    # fewer chances than steps are no verdict
    assert marks(items[0], Verdict(steps=((0.9, 0.1),))) == {}


def test_a_chance_of_one_half_says_wrong():
    assert marks(item("1", "circular", [2]), Verdict(steps=((0.5, 0.5, 0.51, 0.51),)))["fn"] == 1.0


def test_an_error_beyond_the_last_step_marks_nothing():
    assert item("1", "circular", [2, 9]).labels == ((1.0, 0.0, 1.0, 1.0),)


@pytest.mark.slow
def test_the_published_set_is_read_whole():
    try:
        files = benchmark.files()
    except RewardlabError:
        pytest.skip("PRMBench is not at hand: set REWARDLAB_DATA")
    found = [i for path in files for _, row in rows_of(path) for i in read(row, path.name)]
    assert len(found) == 6216
    assert sum(len(i.steps[0]) for i in found) == 83456
    assert collections.Counter(i.subset for i in found)["multi_solutions"] == 165
    # five rows have the number of another of their category, and the released code leaves them out
    assert len({i.id for i in found}) == len(benchmark.items()) == 6211
