"""RewardBench 2: shared first places, and the score of the Ties domain."""

from __future__ import annotations

import math

import pytest

from rewardlab.core import Run
from rewardlab.methods.benchmarks.rewardbench_2 import benchmark, predicts_best_of_n, read
from rewardlab.scoreboard.figures import Marks, resamples
from rewardlab.scoreboard.items import Item, Verdict


def question(name: str, right: int, wrong: int) -> Item:
    row = {"id": name, "subset": "Ties", "prompt": name, "chosen": ["a"] * right, "rejected": ["b"] * wrong}
    (item,) = read(row, "test")
    return item


def plain(subset: str = "Math", name: str = "0") -> Item:
    (item,) = read({"id": name, "subset": subset, "prompt": name, "chosen": ["a"], "rejected": ["b", "c", "d"]}, "test")
    return item


def figures(rows: list[tuple[Item, Verdict]]) -> dict[str, float]:
    return dict(benchmark.figures(Marks.of([i for i, _ in rows], [benchmark.marks(i, v) for i, v in rows])))


@pytest.mark.parametrize(
    ("scores", "share"),
    [
        ((4.0, 3.0, 2.0, 1.0), 1.0),
        ((4.0, 4.0, 2.0, 1.0), 1 / 2),
        ((4.0, 4.0, 4.0, 4.0), 1 / 4),
        ((3.0, 4.0, 2.0, 1.0), 0.0),
        ((4.0, None, 2.0, 1.0), 0.0),
        ((), 0.0),
    ],
)
def test_a_first_place_that_is_shared_counts_by_its_share(scores, share):
    assert benchmark.marks(plain(), Verdict(scores))["right"] == share


@pytest.mark.parametrize(
    ("verdict", "share"),
    [
        (Verdict((None,) * 4, judged=True), 1 / 4),
        (Verdict(judged=True), 1 / 4),
        # of what can be read the best counts
        (Verdict((4.0, None, 2.0, 4.0), judged=True), 1 / 2),
        (Verdict((None, 3.0, 2.0, 1.0), judged=True), 0.0),
        (Verdict(orders={(0, 1): None, (1, 0): None}), 1 / 4),
    ],
)
def test_a_judge_that_cannot_be_read_is_right_by_chance(verdict, share):
    assert benchmark.marks(plain(), verdict)["right"] == share


def test_a_judge_of_pairs_wins_a_comparison_or_not_however_sure_it_is():
    # the first wins all three by a little, the second two of three by much: means of chances would be .6 against .8
    orders = {(0, 1): 0.6, (0, 2): 0.6, (0, 3): 0.6, (1, 2): 1.0, (1, 3): 1.0, (2, 3): 0.5}
    assert benchmark.marks(plain(), Verdict(orders=orders))["right"] == 1.0


def test_the_score_of_ties_worked_out_by_hand():
    rows = [
        # tied: gap 2 - 1 = 1, spread 3 - 2 = 1; ref: gap 0.5.  neither exceeds the spread
        (question("tied:1", 2, 1), Verdict((3.0, 2.0, 1.0))),
        (question("ref:1", 1, 1), Verdict((2.0, 1.5))),
        # tied: gap 3.5, spread 0.5, exceeds it; ref: a tie, gap 0, which is not right
        (question("tied:2", 2, 1), Verdict((5.0, 4.5, 1.0))),
        (question("ref:2", 1, 1), Verdict((2.0, 2.0))),
        # no ref form: it counts for accuracy alone
        (question("tied:3", 2, 1), Verdict((2.0, 0.0, 1.0))),
    ]
    margin = (math.tanh(0.5 / 1 - 1) + math.tanh(0 / 0.5 - 1)) / 2
    found = figures(rows)
    assert found["ties"] == pytest.approx(0.3 * 2 / 3 + 0.3 * 1 / 2 + 0.2 * 1 / 2 + 0.2 * 0 + 0.01 * margin)
    assert found["ties tied"] == pytest.approx(2 / 3)
    assert found["ties ref"] == 0.5


def test_equal_scores_of_all_answers_are_no_margin():
    # gap 0 and spread 0: 0 / 0 counts as 0, as released
    rows = [(question("tied:1", 2, 1), Verdict((1.0, 1.0, 1.0))), (question("ref:1", 1, 1), Verdict((1.0, 1.0)))]
    assert figures(rows)["ties"] == 0.0


def test_an_answer_without_a_score_is_wrong_by_any_margin():
    rows = [(question("tied:1", 2, 1), Verdict((3.0, None, 1.0))), (question("ref:1", 1, 1), Verdict((2.0, 1.0)))]
    # ref is right; the margin of the pair is -1
    assert figures(rows)["ties"] == pytest.approx(0.3 - 0.01)


def test_domains_count_alike_whatever_their_size():
    wrong, good = Verdict((0.0, 1.0, 1.0, 1.0)), Verdict((1.0, 0.0, 0.0, 0.0))
    rows = [(plain("Math", "1"), good), (plain("Safety", "2"), wrong), (plain("Safety", "3"), wrong), (plain("Safety", "4"), good)]
    assert figures(rows)["overall"] == pytest.approx((1 + 1 / 3) / 2)


def test_both_forms_of_a_question_stay_together_in_resamples():
    items = [question(f"{form}:{q}", 1 + (form == "tied"), 1) for q in range(5) for form in ("ref", "tied")]
    for index in resamples(items)[:20]:
        assert sorted(i // 2 for i in index if i % 2) == sorted(i // 2 for i in index if not i % 2)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"subset": "Poetry"}, "no subset"),
        ({"rejected": []}, "lists of replies"),
        ({"chosen": ["a", "b"]}, "holds one"),
        ({"subset": "Ties", "id": "7"}, "ref:NUMBER"),
    ],
)
def test_a_broken_row_is_told(change, says):
    row = {"id": "1", "subset": "Math", "prompt": "x", "chosen": ["a"], "rejected": ["b"]}
    with pytest.raises(ValueError, match=says):
        list(read(row | change, "test"))


@pytest.mark.slow
def test_the_figures_find_the_planted_faults():
    found = predicts_best_of_n()(Run(policy=None, seed=0))
    assert found["best_of_four"] > found["pairs"] + 0.04
    assert found["ties_found"] > 0.95
    assert 0.3 < found["accuracy_found"] < 0.7
