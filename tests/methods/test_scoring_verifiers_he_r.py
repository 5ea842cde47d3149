"""Scoring verifiers: figures by hand with ties, the released formats, graded mutants of a problem of ours, tests as a rater."""

from __future__ import annotations

import json
import random

import pytest

from rewardlab.errors import RewardlabError
from rewardlab.methods.benchmarks.scoring_verifiers_he_r import benchmark, figures, marks, outputs, read
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict
from rewardlab.scoreboard.kept import Kept
from rewardlab.scoreboard.raters import load_rater
from rewardlab.tasks.graded import graded_rows, spread, varied

PROBLEM = {
    "task_id": "own/0", "prompt": "def above(xs, least):\n", "entry_point": "above",
    "canonical_solution": "    n = 0\n    for x in xs:\n        if x >= least and x > 0:\n            n = n + 1\n"
    "    return n + 0\n",
    "test": "def check(candidate):\n    assert candidate([1, 2, 3], 2) == 2\n    assert candidate([], 1) == 0\n"
    "    assert candidate([5, 5, 1], 5) == 2\n    assert candidate([-1, 4, 0], -2) == 1\n",
}  # fmt: skip


def row(*shares: float, task: str = "t"):
    solutions = [
        {"rank": k, "average_test_score": s, "solution": {"canonical_solution": f"pass  # {k}"}} for k, s in enumerate(shares, 1)
    ]
    return {"task_id": task, "prompt": f"do {task}", "all_solutions": solutions}


def told(rows, scores):
    items = [item for r in rows for item in read(r, "HE-R")]
    return figures(Marks.of(items, [marks(i, Verdict(tuple(s))) for i, s in zip(items, scores, strict=True)]))


def test_the_figures_of_the_released_code_by_hand():
    # the best is one of two at the top, the worst alone at the bottom; ranks 1.5 1.5 3 against 1 2 3: rho = sqrt(3)/2, tau-b
    # = 2/sqrt(2*3)
    found = told([row(1.0, 0.5, 0.0)], [(0.75, 0.75, 0.25)])
    assert (found["top1"], found["bottom1"]) == (0.5, 1.0)
    assert found["spearman"] == pytest.approx(0.75**0.5)
    assert found["kendall"] == pytest.approx(2 / 6**0.5)
    assert found["mae"] == pytest.approx((0.25 + 0.25 + 0.25) / 3)
    assert found["mae_scaled"] == pytest.approx((0 + 0.5 + 0) / 3)
    assert found["r2"] == pytest.approx(1 - 3 * 0.0625 / 0.5)


def test_equal_scores_are_worth_nothing_in_correlation_and_a_share_of_chance_in_accuracy():
    found = told([row(1.0, 0.5, 0.25, 0.0)], [(0.0,) * 4])
    assert (found["top1"], found["bottom1"], found["spearman"], found["kendall"]) == (0.25, 0.25, 0.0, 0.0)


def test_errors_are_over_programs_and_the_rest_over_problems():
    rows = [row(1.0, 0.0, task="a"), row(1.0, 0.6, 0.4, 0.0, task="b")]
    found = told(rows, [(0.0, 1.0), (1.0, 0.6, 0.4, 0.0)])
    assert (found["top1"], found["mae"]) == (0.5, pytest.approx(2 / 6))


def test_every_figure_is_told_of_each_set():
    items = [item for name in ("HE-R", "MBPP-R") for item in read(row(1.0, 0.0), name)]
    found = figures(Marks.of(items, [marks(i, Verdict(s)) for i, s in zip(items, [(1.0, 0.0), (0.25, 0.5)], strict=True)]))
    # of MBPP-R: errors 0.75 and 0.5; 1 - (0.5625 + 0.25) / 0.5
    expected = {"top1": (1, 0), "bottom1": (1, 0), "spearman": (1, -1), "kendall": (1, -1), "mae": (0, 0.625), "r2": (1, -0.625)}
    for name, (one, other) in expected.items():
        assert (found[f"{name} HE-R"], found[f"{name} MBPP-R"]) == pytest.approx((one, other))
    assert (found["mae_scaled HE-R"], found["mae_scaled MBPP-R"]) == (0.0, 1.0)
    assert found["mae"] == pytest.approx(1.25 / 4)


def test_of_programs_that_pass_as_much_r2_is_1_as_released():
    assert told([row(0.1, 0.1, 0.1)], [(0.9, 0.5, 0.1)])["r2"] == 1.0


def test_scores_that_are_no_shares_have_only_the_scaled_error():
    found = told([row(1.0, 0.0), row(1.0, 0.5, 0.0)], [(1.0, 0.0), (-3.0, -5.0, -7.0)])
    assert "mae" not in found
    assert found["mae_scaled"] == 0.0


def test_a_program_without_a_score_loses_its_problem():
    assert told([row(1.0, 0.5), row(1.0, 0.5)], [(1.0, None), (1.0, 0.0)])["top1"] == 0.5


def test_rows_of_mbpp_and_broken_ranks():
    mbpp = {
        "task_id": 2, "text": "Add two numbers.", "test_list": ["assert add(1, 2) == 3"],
        "all_solutions": [{"rank": 1, "average_test_score": 1.0, "solution": {"code": "def add(a, b): return a + b"}}],
    }  # fmt: skip
    (item,) = read(mbpp, "MBPP-R")
    assert (item.id, item.replies, item.meta["test_list"]) == (
        "MBPP-R/2",
        ("def add(a, b): return a + b",),
        mbpp["test_list"],
    )
    broken = row(1.0, 0.5)
    broken["all_solutions"][1]["rank"] = 3
    with pytest.raises(ValueError, match="ranks"):
        list(read(broken, "HE-R"))


def test_the_file_that_the_released_evaluation_reads(tmp_path):
    rows = [
        {"dataset": "HE_plus", "task_id": "HumanEval/0", "rank": 2, "average_test_score": 0.3},
        {"dataset": "HE_plus", "task_id": "HumanEval/0", "rank": 1, "average_test_score": 0.9},
        {"dataset": "MBPP_base", "task_id": 7, "rank": 1, "reward": {"reward_score": -4.5}, "average_test_score": 0.1},
    ]
    (path := tmp_path / "o3.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert list(outputs(path)) == [
        ("o3", "HE-R+/HumanEval/0", Verdict((0.9, 0.3))),
        ("o3", "MBPP-R/7", Verdict((-4.5,))),
    ]


# ---- graded mutants, and tests as a rater -------------------------------------------------------------------------------


def test_solutions_are_spread_as_the_released_filter_does():
    # targets 0.75, 0.5 and 0.25 of 1 to 0; the lowest is in any case
    assert spread([0.9, 0.8, 0.7, 0.45, 0.3, 0.2, 0.0], 4) == [1, 3, 4, 6]
    # 0.05 stands for the lowest, rather than 0
    assert 4 not in spread([0.9, 0.6, 0.3, 0.05, 0.0], 3)
    assert spread([0.5, 0.2], 4) == [0, 1]


@pytest.fixture(scope="module")
def graded():
    rows = graded_rows([PROBLEM], plus=8, tests=8)
    assert len(rows) == 1
    return rows[0]


def test_mutants_have_the_shares_that_were_measured_and_the_right_one_is_first(graded):
    (item,) = read(graded, "own")
    assert item.worth[0] == 1.0
    assert item.replies[0] == PROBLEM["prompt"] + PROBLEM["canonical_solution"]
    assert 3 <= len(item.replies) <= 5
    assert list(item.worth) == sorted(set(item.worth), reverse=True)
    assert all(reply.startswith(PROBLEM["prompt"]) for reply in item.replies)


def test_what_a_writer_expects_who_has_misread_the_problem_is_what_a_wrong_program_returns(graded):
    (item,) = read(graded, "own")
    good, misread = (load_rater(f"tests:{name}").judge([item], benchmark)[0].scores for name in ("unit_tests", "misread_tests"))
    assert good[0] == 1.0
    assert good.index(max(good)) == 0
    assert misread[0] < 1.0
    assert 1.0 in misread[1:]


def test_tests_as_a_rater_count_what_holds_of_the_first_k():
    given = row(1.0, 0.5) | {"unit_tests": ["\nassert f(1) == 2\n", "assert f(0) == (", "assert f(2) == 9", "assert f(3) == 4"]}
    for s, body in zip(given["all_solutions"], ("x + 1", "1 // x"), strict=True):
        s["solution"]["canonical_solution"] = f"def f(x):\n    return {body}\n"
    (item,) = read(given, "own")
    ask = {k: load_rater(f"tests:unit_tests?k={k}").judge([item], benchmark)[0].scores for k in (1, 3, 4)}
    # the second is no Python: nothing passes it
    assert ask == {1: (1.0, 0.0), 3: (1 / 3, 0.0), 4: (0.5, 0.0)}
    (verdict,) = load_rater("tests:no_such_column").judge([item], benchmark)
    assert verdict.scores == (None, None)
    assert "no_such_column" in verdict.why
    with pytest.raises(RewardlabError, match="list of texts"):
        load_rater("tests:unit_tests").judge([next(read(given | {"unit_tests": [1]}, "own"))], benchmark)


def test_verdicts_are_kept_under_the_tests_that_were_run(tmp_path):
    rater = load_rater("tests:unit_tests?k=1")
    kept = Kept(rater, tmp_path)
    (one,), (other,) = (list(read(row(1.0, 0.5) | {"unit_tests": [f"assert {x}"]}, "own")) for x in ("True", "False"))
    kept.add([one], benchmark, [Verdict((1.0, 1.0))])
    assert kept.of([one, other], benchmark) == [Verdict((1.0, 1.0)), None]


def test_inputs_are_varied_within_their_types():
    rng = random.Random(0)
    for value in (3, 2.5, "abc", [1, "a", [2.0]], True, (1, 2)):
        made = [varied(value, rng) for _ in range(30)]
        assert {type(x) for x in made} == {type(value)}
        assert any(x != value for x in made)
    assert varied({1: 2}, rng) == {1: 2}
