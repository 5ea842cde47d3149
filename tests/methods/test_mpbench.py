"""MPBench: its three parts by hand, what a tie and silence come to, odd rows, and that the published table is made as ours is."""

import numpy as np
import pytest

from rewardlab.core import Run
from rewardlab.data.pictures import base64_of
from rewardlab.methods.benchmarks.mpbench import PARTS, averages, benchmark, figures, marks, read, three_parts
from rewardlab.scoreboard.choices import voted
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict
from rewardlab.scoreboard.steps import mcc


def item(**columns):
    (found,) = read({"id": "1", "question": "q", "domain": "science", **columns}, "file")
    return found


def steps(name, wrong):
    return item(id=name, steps=["a", "b", "c"], error_steps=wrong)


def answers(*given, truth="A"):
    return item(answer=truth, solutions=[{"steps": [f"s{k}", a], "answer": a} for k, a in enumerate(given)])


def search(label, candidates=("x", "y"), name="1"):
    return item(id=name, steps=["a"], candidates=list(candidates), label=label)


def figures_of(items, verdicts):
    return figures(Marks.of(items, [marks(i, v) for i, v in zip(items, verdicts, strict=True)]))


def said(*rows):
    return Verdict(steps=rows)


def test_errors_in_steps():
    items = [steps("1", [2]), steps("2", []), steps("3", [1, 3])]
    found = figures_of(items, [said((0.9, 0.1, 0.9)), said((0.9, 0.9, 0.4)), said((0.1, 0.9, 0.9))])
    # first errors: 2 of 2, right ones 0 of 1;  steps: tp 5, fp 1, tn 2, fn 1
    assert found["fei"] == 0.0
    assert found["aei"] == pytest.approx((10 / 12 + 4 / 6) / 2)
    assert found["overall"] == found["step_correctness"] == found["aei"] / 2
    # of flawed solutions alone, it is how many first errors are found
    assert figures_of(items[::2], [said((0.9, 0.1, 0.9)), said((0.9, 0.9, 0.1))])["fei"] == 0.5


def test_the_best_of_n_and_the_vote_part_where_many_agree():
    one = answers("B", "A", "A")
    found = figures_of([one], [said((0.9, 0.9), (0.6, 0.8), (0.5, 0.3))])
    # B 0.9; A 0.7 + 0.4
    assert (found["bon"], found["mv"], found["overall"]) == (0.0, 1.0, 0.5)
    # all alike: each of three is chosen as often, and the vote goes to the answer of two
    assert figures_of([one], [said((0.5, 0.5), (0.5, 0.5), (0.5, 0.5))])["bon"] == pytest.approx(2 / 3)
    # a solution without a verdict is neither chosen nor counted
    assert figures_of([one], [said((0.2, 0.2), None, None)])["mv"] == 0.0


def test_search_is_a_choice_of_the_last_step_so_that_mcc_is_twice_f1_less_one():
    items = [search(k % 2, name=str(k)) for k in range(4)]
    right = [(0.0, 0.9) if k % 2 == 0 else (0.0, 0.1) for k in range(4)]
    verdicts = [said(a, (1.0, 0.5)) for a in right]
    verdicts[3] = said((1.0, 0.9), (1.0, 0.5))
    found = figures_of(items, verdicts)
    assert (found["f1"], found["mcc"]) == (0.75, 0.5)
    tied = figures_of(items, [said((0.5, 0.5), (0.5, 0.5))] * 4)
    assert (tied["f1"], tied["mcc"]) == (0.5, 0.0)
    # of three candidates: hits 1 of 2, tp 1, fp 1, tn 3, fn 1
    three = [search(0, "xyz", "1"), search(1, "xyz", "2")]
    found = figures_of(three, [said((1, 0.9), (1, 0.1), (1, 0.2))] * 2)
    assert (found["f1"], found["mcc"]) == (0.5, pytest.approx(2 / 8))


def test_silence_is_told_wrongly():
    items = [steps("1", [2]), steps("2", []), answers("A", "B"), search(0)]
    found = figures_of(items, [Verdict()] * 4)
    assert (found["overall"], found["fei"], found["aei"], found["bon"], found["mv"]) == (-1 / 6, 0, 0, 0, 0)
    assert (found["f1"], found["mcc"]) == (0.0, -1.0)


def test_domains_are_figures_where_there_are_several():
    items = [steps("1", [2]), item(id="2", domain="mathematics", steps=["a"], error_steps=[1])]
    found = figures_of(items, [said((0.9, 0.1, 0.9)), said((0.9,))])
    assert (found["science"], found["mathematics"]) == (1.0, 0.0)


def test_the_published_rows_are_the_means_of_their_parts_and_search_in_them_is_a_choice_of_two():
    for row in benchmark.published:
        assert averages(row.figures)["overall"] == pytest.approx(row.figures["overall"], abs=1.01e-3), row.rater
        assert row.figures["mcc"] == pytest.approx(2 * row.figures["f1"] - 1, abs=2e-3), row.rater
    assert averages(benchmark.chance)["overall"] == pytest.approx(benchmark.chance["overall"], abs=1e-3)
    assert set(averages(benchmark.chance)) == {"overall", *PARTS}


def test_pictures_and_choices_are_part_of_the_prompt():
    dark, light = (base64_of(np.full((4, 4, 3), grey, np.uint8)) for grey in (0, 255))
    one = item(steps=["a"], error_steps=[], image=[dark, light], choices=["ice", "fire"])
    assert [int(np.asarray(image).mean()) for image in one.prompt[0].images] == [0, 255]
    assert one.question == "q\n(A) ice\n(B) fire"
    keys = {item(steps=["a"], error_steps=[], image=image).key("steps") for image in (dark, light, None)}
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({"steps": ["a"], "error_steps": [2]}, "error_steps"), ({"steps": [], "error_steps": []}, "error_steps"),
        ({"steps": ["a"], "candidates": ["b", "c"], "label": 2}, "label"),
        ({"steps": ["a"], "candidates": ["b"], "label": 0}, "label"),
        ({"answer": "A", "solutions": [{"steps": ["a"], "answer": "A"}] * 2}, "some are right"),
        ({"answer": "A", "solutions": [{"steps": [], "answer": "A"}, {"steps": ["b"], "answer": "B"}]}, "steps"),
    ],
)  # fmt: skip
def test_broken_rows_say_why(columns, match):
    with pytest.raises(ValueError, match=match):
        item(**columns)


def test_a_vote_by_weights_and_a_correlation_by_hand():
    assert voted([0.2, 0.5, 0.4], ["a", "b", "a"]) == "a"
    assert voted([0.2, -float("inf")], [None, "b"]) is None
    assert mcc(6, 1, 2, 3) == pytest.approx((12 - 3) / (7 * 9 * 3 * 5) ** 0.5)
    assert mcc(3, 2, 0, 0) == 0.0


@pytest.mark.slow
def test_a_rater_that_knows_the_answer_is_told_from_one_that_checks_steps():
    found = three_parts()(Run(None, seed=5))
    assert found["met"] > 0.9 > 0.5 > found["control"]
    assert found["falls_overall"] > 0.9
