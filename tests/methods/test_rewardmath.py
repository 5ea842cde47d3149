"""RewardMATH: one right solution against several wrong ones, ties, and the published forms of its rows."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rewardlab.core import Run
from rewardlab.errors import RewardlabError
from rewardlab.methods.benchmarks.rewardmath import benchmark, counted_figures
from rewardlab.scoreboard.benchmark import ROOT
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict, users
from rewardlab.scoreboard.run import scoreboard

AT_HAND = (Path(os.environ.get(ROOT, "")) / "rewardmath" / "scores.jsonl.gz").is_file()


def problem(n: int = 3) -> Item:
    return Item("0", users("x"), ("right", *("wrong " * k for k in range(1, n + 1))), (1.0,) + (0.0,) * n)


def figures(*verdicts: Verdict) -> dict[str, float]:
    items = [problem()] * len(verdicts)
    return dict(benchmark.figures(Marks.of(items, [benchmark.marks(i, v) for i, v in zip(items, verdicts, strict=True)])))


@pytest.mark.parametrize(
    ("verdict", "accuracy", "mrr", "pairs"),
    [
        (Verdict((4.0, 3.0, 2.0, 1.0)), 1, 1, 1),
        # a tie stands before the right solution: rank 2
        (Verdict((4.0, 4.0, 2.0, 1.0)), 0, 1 / 2, 2 / 3),
        (Verdict((1.0, 1.0, 1.0, 1.0)), 0, 1 / 4, 0),
        (Verdict((2.0, None, 1.0, 3.0)), 0, 1 / 3, 1 / 3),
        (Verdict(), 0, 1 / 4, 0),
        # judged in both orders: won, divided, and not readable
        (Verdict(orders={(0, 1): 1, (1, 0): 0, (0, 2): 1, (2, 0): 1, (0, 3): None, (3, 0): None}), 0, 1 / 3, 1 / 3),
    ],
)
def test_rank_of_the_right_solution(verdict, accuracy, mrr, pairs):
    assert figures(verdict) == pytest.approx({"accuracy": accuracy, "mrr": mrr, "pairs": pairs})


def test_pairs_count_alike_and_problems_count_alike():
    found = figures(Verdict((4.0, 3.0, 2.0, 1.0)), Verdict((0.0, 3.0, 2.0, 1.0)))
    assert found == pytest.approx({"accuracy": 0.5, "mrr": (1 + 1 / 4) / 2, "pairs": 0.5})


def single(k: int, right: bool, name: int = 7) -> dict:
    kind = "chosen" if right else "rejected"
    return {"problem": "p", "eval_solution": [f"step {k}", "end"], "solution_type": kind, "problem_id": name, "id": k}


def test_rows_of_single_solutions_are_put_together_wherever_they_stand(tmp_path):
    rows = [single(1, False), single(5, True, 8), single(0, True), single(6, False, 8), single(2, False)]
    (tmp_path / "direct.json").write_text(json.dumps(rows))
    first, second = benchmark.items(tmp_path / "direct.json")
    assert (first.id, second.id) == ("7", "8")
    assert first.replies == ("step 0\nend", "step 1\nend", "step 2\nend")
    assert first.worth == (1.0, 0.0, 0.0)
    assert first.steps[0] == ("step 0", "end")


def test_rows_of_pairs_hold_the_right_solution_once(tmp_path):
    pairs = [
        {"problem": "p", "eval_solution_A": a, "eval_solution_B": b, "chosen_position": place, "problem_id": 3, "id": k}
        for k, (a, b, place) in enumerate([(["r"], ["w1"], "A"), (["w2"], ["r"], "B")])
    ]
    (tmp_path / "pairs.json").write_text(json.dumps(pairs))
    (item,) = benchmark.items(tmp_path / "pairs.json")
    assert item.replies == ("r", "w1", "w2")
    assert item.pairs == ((0, 1), (0, 2))


def test_a_problem_without_a_right_solution_is_told_with_its_place(tmp_path):
    (tmp_path / "direct.json").write_text(json.dumps([single(1, False), single(2, False)]))
    with pytest.raises(RewardlabError, match="problem 7 has 0 right and 2 wrong"):
        benchmark.items(tmp_path / "direct.json")


def test_released_scores_are_read_in_their_three_forms(tmp_path):
    path = tmp_path / "scores.jsonl"
    rows = [
        {"model": "a", "index": 0, "score": [3, 1, 2]},
        {"model": "b", "index": 0, "score": ["A", "A", None], "chosen_position": ["A", "B", "A"]},
        {"model": "c", "index": 0, "score": [[0.5, 0.5], [0.9, 0.1], [0.2]]},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    found = {rater: verdict for rater, _, verdict in benchmark.outputs(path)}
    assert found["a"].scores == (3, 1, 2)
    # the second pair shows the wrong solution first, and it is preferred
    assert found["b"].orders == {(0, 1): 1.0, (2, 0): 1.0, (0, 3): None}
    assert found["c/product"].scores == pytest.approx((0.25, 0.09, 0.2))
    assert found["c/geometric_mean"].scores == pytest.approx((0.5, 0.3, 0.2))
    assert found["c/last"].scores == (0.5, 0.1, 0.2)
    # odds 1 and 1; 9 and 1/9; 1/4
    assert found["c/mean_odd"].scores == pytest.approx((1.0, (9 + 1 / 9) / 2, 0.25))
    assert found["c/mean_logit"].scores == pytest.approx((0.5, 0.5, 0.2))


def test_problems_without_texts_are_asked_of_published_outputs_alone(tmp_path):
    path, scores = tmp_path / "problems.jsonl", tmp_path / "verdicts.jsonl"
    path.write_text(json.dumps({"index": 0, "problem": "p", "solution_reference": ["human_to_GPT-4", "a", "b"]}))
    scores.write_text(json.dumps({"model": "x", "index": 0, "score": [3, 1, 2]}))
    found = scoreboard([f"outputs:{scores}"], ["rewardmath"], data=path)
    assert found["raters"]["x"]["rewardmath"]["figures"]["accuracy"]["value"] == 1.0
    with pytest.raises(RewardlabError, match="replies of RewardMATH are not among the data"):
        scoreboard(["length"], ["rewardmath"], data=path)


@pytest.mark.skipif(not AT_HAND, reason="the released scores are not at hand")
def test_the_counted_figures_come_out_of_the_released_scores():
    assert counted_figures()(Run(policy=None, seed=0)) == {"met": 1.0, "control": 0.0, "figures": 25.0}
