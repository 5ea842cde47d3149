"""GradeSQL: labels by execution, Yes or No of a query, and the choice among candidates."""

from __future__ import annotations

import math
import sqlite3

import pytest
import torch
from reward_runs import taught
from rows import Replies, batch_of, outcome

from rewardlab import registry
from rewardlab.core import Outputs, Run, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.reward_models.gradesql import (
    best_queries,
    candidates_of,
    first_executable,
    labelled,
    labelled_queries,
    likeliest,
    most_frequent_result,
)
from rewardlab.models.embedded import untrained
from rewardlab.verifiers.contract import Pair
from rewardlab.verifiers.sql.execution import executed

ROME = "SELECT name FROM city WHERE people > 1000;"
QUERIES = [
    "SELECT name FROM cities;",  # fails
    "SELECT name FROM city WHERE people > 9000;",  # runs, returns no rows
    "SELECT people FROM city WHERE name = 'Bari';",  # other rows
    ROME,
    "SELECT name FROM city WHERE name = 'Rome';",  # the right rows
    "SELECT name FROM city;",  # more rows
]


@pytest.fixture
def problem(tmp_path):
    """A question about a real sqlite file."""
    path = tmp_path / "city.sqlite"
    with sqlite3.connect(path) as link:
        link.executescript("CREATE TABLE city(name TEXT, people INT); INSERT INTO city VALUES ('Rome', 2800), ('Bari', 320);")
    return ask(
        "city(name TEXT, people INTEGER)\nWhich cities are large?", {"query": ROME, "database": str(path)}, candidates=QUERIES
    )


@pytest.fixture
def run():
    return Run(Replies([]), verify=registry.part("reward", "sql"))


def test_candidates_are_executed_on_a_real_file_and_judged_against_the_gold_query(problem, run):
    (found,) = candidates_of([problem], run, 8, 1.0)
    assert [c.text for c in found] == QUERIES
    assert [(c.done.runs, c.done.rows) for c in found] == [(False, False), (True, False), *[(True, True)] * 4]
    assert [c.right for c in found] == [False, False, False, True, True, False]
    # equal rows are equal results, whatever the query says
    results = [c.done.result for c in found]
    assert results[3] == results[4]
    assert len(set(results)) == 5
    assert results[0] == ""


def test_equal_results_are_bags_unless_the_query_orders_them(problem):
    texts = [
        "name FROM city",
        "name FROM city WHERE people > 0",
        "name FROM city ORDER BY people",
        "name FROM city ORDER BY -people",
    ]
    done = executed([Pair(f"SELECT {text};", problem.answer) for text in texts])
    assert done[0] == done[1]
    assert done[2] != done[3]
    with pytest.raises(RewardlabError, match="cannot be run"):
        executed([Pair("SELECT 1;", "42")])
    with pytest.raises(RewardlabError, match="cannot be run"):
        executed([Pair("SELECT 1;", {"query": "SELECT 1;", "database": "/nowhere.sqlite"})])


def test_labels_are_as_many_right_ones_as_wrong_ones_that_run(problem, run):
    (found,) = candidates_of([problem], run, 8, 1.0)
    rows = labelled(found, 9, "key")
    # right ones: two; wrong ones: the failing one is no example, and what returns nothing comes last
    assert sorted(rows) == sorted([(QUERIES[2], 0.0), (QUERIES[5], 0.0), (ROME, 1.0), (QUERIES[4], 1.0)])
    assert [y for _, y in labelled(found, 1, "key")] == [1.0, 0.0]
    assert labelled([c for c in found if c.right], 9, "key") == []
    assert labelled([*found, *found], 9, "key") == rows


def test_a_right_query_without_rows_is_no_example(problem, run):
    empty = ask("?", {**problem.answer, "query": "SELECT name FROM city WHERE people > 8000;"}, candidates=QUERIES[1:3])
    (found,) = candidates_of([empty], run, 8, 1.0)
    assert [c.right for c in found] == [True, False]
    assert labelled(found, 9, "key") == []


def test_problems_without_both_kinds_are_replaced(problem, run):
    one_kind = ask("?", problem.answer, candidates=[ROME])
    run.more_problems = lambda n: [problem] * n
    (group,) = labelled_queries(most=1)([one_kind], run)
    assert [t.problem.meta["right"] for t in group] == [[1.0, 0.0]] * 2
    assert group[0].reply in (ROME, QUERIES[4])
    assert run.metrics["usable"] == 0.5
    assert run.metrics["runs"] == pytest.approx(6 / 7)
    with pytest.raises(RewardlabError, match="both a right query and a wrong one"):
        labelled_queries()([one_kind], Run(Replies([]), verify=run.verify))
    with pytest.raises(RewardlabError, match="name a task"):
        labelled_queries()([problem], Run(Replies([])))


def test_the_policy_writes_candidates_where_the_row_has_none(problem, run):
    asked = ask(problem.question, problem.answer)
    wrote = Run(Replies([ROME, QUERIES[0], QUERIES[5]]), verify=run.verify)
    (found,) = candidates_of([asked], wrote, 3, 1.0)
    assert [c.right for c in found] == [True, False, False]


def test_the_loss_is_the_cross_entropy_of_yes_and_no():
    batch = batch_of([[("rd", {"": outcome(1)}), ("rd", {"": outcome(0)})]])
    value = torch.tensor([[9.0, 2.0], [9.0, -1.0]])
    ((scale, leaf),) = registry.build("gradesql").also[-1].recipe.objective.terms()
    p = [math.exp(v) / (math.exp(v) + 1) for v in (2.0, -1.0)]  # the softmax over the logits of Yes and No, V apart
    assert (scale * leaf(Outputs(value=value), batch, Run(None))).tolist() == pytest.approx([-math.log(p[0]), -math.log(1 - p[1])])


def test_three_choices_among_candidates(problem, run):
    (found,) = candidates_of([problem], run, 8, 1.0)
    assert first_executable(found) == 2
    assert first_executable(found[:2]) == 1
    assert first_executable(found[:1] * 2) == 0
    assert most_frequent_result(found) == 3
    assert most_frequent_result(found[:1]) == 0
    # a failing query is never chosen before one that returns rows, whatever its score
    assert likeliest(found, [9, 8, 1, 2, 3, 3]) == 4
    assert likeliest(found[:2], [9, 8]) == 1
    assert likeliest(found[:1] * 2, [1, 2]) == 1


def test_best_of_n_counts_each_choice_on_the_same_candidates(problem, run):
    policy = untrained()
    model = policy.copy("reward", value_head=True)
    torch.nn.init.normal_(model.model.value_head, generator=torch.Generator().manual_seed(1))
    habit = ask(problem.question, problem.answer, candidates=[QUERIES[5], QUERIES[5], QUERIES[0], ROME])
    found = best_queries(n=8)([problem, habit], Run(policy, models={"reward": model}, verify=run.verify))
    # of the first the majority is right and the first executable is wrong; of the second both are wrong
    assert (found["majority"], found["executable"], found["n"]) == (0.5, 0.0, 2)
    assert found["pass@1"] == pytest.approx((2 / 6 + 1 / 4) / 2)
    assert found["pass@8"] == 1.0
    assert found["over_majority"] == found["orm"] - 0.5


def test_it_learns_from_a_users_rows_and_the_run_is_a_reward_model(tmp_path):
    after, scores = taught("gradesql", tmp_path, ["SELECT title FROM album;", "SELECT MAX(price) FROM album;"])
    assert after["orm"] == 1.0
    assert scores[0] != scores[1]


def test_the_world_brings_candidates_of_a_teacher_with_habits_and_the_same_problems():
    plain, told = (registry.task(f"queries:languages=1,test_size=40{more}") for more in ("", ",candidates=8"))
    assert [p.prompt for p in told.test] == [p.prompt for p in plain.test]
    assert all(len(p.meta["candidates"]) == 8 for p in told.test)
    found = candidates_of(told.test, Run(Replies([]), verify=registry.part("reward", "sql")), 8, 1.0)
    right = [c.right for row in found for c in row]
    assert 0.2 < sum(right) / len(right) < 0.8
