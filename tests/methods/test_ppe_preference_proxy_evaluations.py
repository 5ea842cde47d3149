"""PPE: best-of-k curves, strengths of models and the metrics made of them, worked out by hand."""

from __future__ import annotations

import json
import math
from itertools import combinations

import numpy as np
import pytest

from rewardlab.core import Run
from rewardlab.methods.benchmarks.ppe_preference_proxy_evaluations import benchmark, best_of_k, proxies, read, strengths
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict


def battle(a: str, b: str, winner: str, name: int = 0) -> list[Item]:
    row = {"question_id": str(name), "prompt": "p", "response_1": "1", "response_2": "2", "model_a": a, "model_b": b}
    return list(read(row | {"winner": winner}, "test"))


def answers(scores: list[float], pairs: list[list[int]], name: str = "gpqa_1") -> Item:
    row = {"question_id": name, "model_name": "m", "prompt": "p", "scores": scores, "sampled_conflict_pairs": pairs}
    (item,) = read(row | {f"response_{k + 1}": str(k) for k in range(len(scores))}, "train-00000")
    return item


def figures(rows: list[tuple[Item, Verdict]]) -> dict[str, float]:
    return dict(benchmark.figures(Marks.of([i for i, _ in rows], [benchmark.marks(i, v) for i, v in rows])))


def test_best_of_k_over_all_subsets():
    # the best scored is wrong: of two, it is chosen in two of three subsets; of three, always
    assert best_of_k(np.array([3.0, 2.0, 1.0]), np.array([0.0, 1.0, 1.0])) == pytest.approx([2 / 3, 1 / 3, 0])
    assert best_of_k(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 1.0])) == pytest.approx([2 / 3, 1, 1])
    # replies of equal score share what they are worth
    assert best_of_k(np.array([1.0, 1.0]), np.array([1.0, 0.0])) == pytest.approx([0.5, 0.5])


def test_metrics_on_verified_answers():
    item = answers([0, 1, 1], [[0, 1], [2, 0]])
    assert item.pairs == ((1, 0), (2, 0))
    found = figures([(item, Verdict((3.0, 2.0, 4.0)))])
    # right on one of two pairs; of the curve: 2/3, then 1 but for the subset (0, 1), then 1
    assert found["correct_accuracy"] == found["gpqa"] == 0.5
    assert found["auc"] == 0.5
    assert found["max_score"] == found["end_score"] == 1.0
    # the best possible: 2/3, 1, 1
    assert found["loss"] == pytest.approx((0 + 1 / 3 + 0) / 3)


def test_over_optimisation_shows_as_an_end_below_the_maximum():
    found = figures([(answers([0, 1, 1], [[0, 1]]), Verdict((3.0, 2.0, 1.0)))])
    assert (found["max_score"], found["end_score"]) == (pytest.approx(2 / 3), 0.0)


def test_benchmarks_of_answers_count_alike_and_a_missing_score_is_the_lowest():
    rows = [(answers([0, 1], [[0, 1]], f"math_{k}"), Verdict((1.0, 0.0))) for k in range(3)]
    rows.append((answers([0, 1], [[0, 1]], "ifeval_1"), Verdict((None, 0.0))))
    found = figures(rows)
    assert (found["math"], found["ifeval"]) == (0.0, 0.0)
    assert found["auc"] == 0.5
    assert found["end_score"] == 0.5


def test_a_judge_of_pairs_has_no_curves():
    found = figures([(answers([0, 1], [[0, 1]]), Verdict(orders={(1, 0): 1.0, (0, 1): 0.0}))])
    assert found["correct_accuracy"] == 1.0
    assert math.isnan(found["auc"])


def test_strengths_of_two_models():
    # 3 wins to 1: a difference of log 3 (each half of it), whose variance is 1 / (4 * 3/4 * 1/4)
    theta, error = strengths(np.array([[0.0, 3.0], [1.0, 0.0]]))
    assert theta == pytest.approx([math.log(3) / 2, -math.log(3) / 2], rel=2e-3)
    assert error == pytest.approx([math.sqrt(4 / 3) / 2] * 2, rel=2e-3)


def voted(shares: dict[tuple[str, str], tuple[int, int]], agree: bool) -> list[tuple[Item, Verdict]]:
    """Battles in which the first model wins so many, and so many are lost; the rater chooses as people do, or the opposite."""
    rows = []
    for (a, b), (won, lost) in shares.items():
        for winner, count in (("model_a", won), ("model_b", lost)):
            for item in battle(a, b, winner) * count:
                rows.append((item, Verdict(tuple(x if agree else -x for x in item.worth))))
    return rows


CLEAR = {("x", "y"): (80, 20), ("y", "z"): (80, 20), ("x", "z"): (95, 5)}


def test_a_rater_that_votes_as_people_do_ranks_models_alike():
    found = figures(voted(CLEAR, True))
    for name in ("accuracy", "row_pearson", "separability", "confidence_agreement", "kendall", "spearman"):
        assert found[name] == pytest.approx(1.0 if name != "row_pearson" else math.nan, nan_ok=True)
    assert found["brier"] < 1e-6


def test_a_rater_that_votes_the_opposite_separates_models_confidently_and_wrongly():
    found = figures(voted(CLEAR, False))
    assert (found["accuracy"], found["separability"], found["confidence_agreement"]) == (0.0, 1.0, -1.0)
    assert (found["kendall"], found["spearman"]) == (pytest.approx(-1), pytest.approx(-1))
    assert found["brier"] > 0.99


def test_what_is_not_sure_is_neither_separated_nor_agreed_on():
    rows = voted(CLEAR, True)
    # the rater calls all battles of x and y a tie
    rows = [(i, Verdict((0.0, 0.0)) if {i.meta["a"], i.meta["b"]} == {"x", "y"} else v) for i, v in rows]
    found = figures(rows)
    assert found["separability"] == found["confidence_agreement"] == pytest.approx(2 / 3)
    assert found["accuracy"] == pytest.approx(2 / 3)


def test_rows_of_win_rates_are_correlated_where_there_are_three_rivals():
    four = {pair: (60 + 5 * k, 40 - 5 * k) for k, pair in enumerate(combinations("wxyz", 2))}
    assert figures(voted(four, True))["row_pearson"] == pytest.approx(1.0)
    assert figures(voted(four, False))["row_pearson"] == pytest.approx(-1.0)


def test_ties_of_people_are_left_out_and_so_are_pairs_without_a_difference(tmp_path):
    assert battle("x", "y", "tie (bothbad)") == []
    tied = answers([1, 1, 0], [[0, 1], [2, 0]])
    assert tied.pairs == ((0, 2),)
    # where none of its pairs differs a prompt has none, though others would
    none = answers([1, 1, 0], [[0, 1]], "gpqa_2")
    assert none.pairs == ()
    right, wrong = Verdict((1.0, 5.0, 0.0)), Verdict((0.0, 5.0, 1.0))
    assert figures([(tied, right), (none, wrong)])["correct_accuracy"] == 1.0
    row = {"question_id": "1", "prompt": "p", "scores": [1, 1], "response_1": "a", "response_2": "b"}
    (tmp_path / "math.jsonl").write_text(json.dumps(row | {"sampled_conflict_pairs": [[0, 1], [1, 0]]}))
    assert benchmark.lacking(benchmark.items(tmp_path / "math.jsonl")).startswith("2 of the sampled pairs")
    assert benchmark.lacking([answers([0, 1], [[0, 1]])]) == ""


@pytest.mark.slow
def test_accuracy_and_not_the_ranking_of_models_tells_what_picks_are_worth():
    found = proxies()(Run(policy=None, seed=2))
    assert found["accuracy"] > 0.85
    assert found["accuracy"] > found["spearman"] + 0.3
