"""Objects in columns of Arrow tables, to which Arrow adds a null for every key that another row has."""

from __future__ import annotations

import json

import pytest

from rewardlab import registry
from rewardlab.backends.reward_functions import as_trl_reward, as_verl_reward
from rewardlab.backends.verl.rewards import problem_of
from rewardlab.core import Trajectory, Turn
from rewardlab.data.tables import Table
from rewardlab.tasks.records import records

CALLS = [
    {"name": "book", "arguments": {"city": "Bern", "guests": [{"name": "Ann"}, {"name": "Bo", "age": 3}]}},
    {"name": "add", "arguments": {"numbers": [1, 2], "options": {"round": True}}},
    {"name": "stop", "arguments": {"options": {"deep": {"now": "yes"}}, "guests": [{"age": 4}]}},
]
ROWS = [{"prompt": f"q{i}", "answer": [gold], "note": None if i else "n"} for i, gold in enumerate(CALLS)]


def parquet(folder, rows):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), folder / "mine.parquet")
    return str(folder / "mine.parquet")


def saved(folder, rows):
    datasets = pytest.importorskip("datasets", reason="needs the extra 'data'")
    datasets.Dataset.from_list(rows).save_to_disk(str(folder / "saved"))
    return str(folder / "saved")


def lines(folder, rows):
    (folder / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder / "mine.jsonl")


def problems(path, **options):
    task = records(path=path, **options)
    return sorted((*task.train.problems, *task.test), key=lambda p: p.question)


def judged(problem, reply, verifier):
    row = Trajectory(problem).plus(Turn("policy", [1], text=reply), "end")
    return registry.part("reward", verifier)([[row]], None)[0][0].value


@pytest.mark.parametrize("keep", [parquet, saved, lines])
def test_gold_calls_of_different_arguments_stay_as_they_are(tmp_path, keep):
    found = problems(keep(tmp_path, ROWS))
    assert [p.answer for p in found] == [[gold] for gold in CALLS]
    assert [p.meta for p in found] == [{"note": "n"}, {"note": None}, {"note": None}]
    for right, problem in enumerate(found):
        paid = [judged(problem, json.dumps(gold), "function_calls") for gold in CALLS]
        assert paid == [float(i == right) for i in range(3)]


@pytest.mark.parametrize("keep", [parquet, saved])
def test_a_column_within_a_column_and_nulls_in_lists(tmp_path, keep):
    truths = [{"a": [1, None, 3]}, {"b": [{"c": None, "d": [{"e": 1}, {"f": 2}]}]}]
    rows = [{"prompt": f"q{i}", "reward_model": {"style": "rule", "ground_truth": truth}} for i, truth in enumerate(truths)]
    found = [p.answer for p in problems(keep(tmp_path, rows))]
    # what stood in a list keeps its place
    assert found == [{"a": [1, None, 3]}, {"b": [{"d": [{"e": 1}, {"f": 2}]}]}]


@pytest.mark.parametrize("keep", [parquet, saved, lines])
def test_tests_of_one_kind_beside_tests_of_another(tmp_path, keep):
    golds = [{"tests": "assert f(1) == 1", "io": None}, {"tests": None, "io": [["1\n", "1\n"]]}]
    found = problems(keep(tmp_path, [{"prompt": f"q{i}", "answer": gold} for i, gold in enumerate(golds)]))
    assert [judged(p, reply, "code") for p, reply in zip(found, ("def f(x): return x", "print(input())"), strict=True)] == [1, 1]


def test_the_data_tools_read_rows_without_them(tmp_path):
    assert [row["answer"] for row in Table.load(parquet(tmp_path, ROWS)).rows] == [[gold] for gold in CALLS]


def test_rewards_for_other_frameworks_read_rows_without_them(tmp_path):
    import pyarrow.parquet as pq

    padded = pq.read_table(parquet(tmp_path, ROWS)).to_pylist()
    gold, reply = padded[0]["answer"], json.dumps(CALLS[0])
    assert None in gold[0]["arguments"].values()
    reward = registry.part("reward", "correct")
    verify = registry.part("reward", "function_calls")
    assert as_trl_reward(reward, verify)(["q"], [reply], answer=[gold]) == [1.0]
    assert as_verl_reward(reward, verify)("mine", reply, gold) == {"score": 1.0}
    row = {"raw_prompt": [{"role": "user", "content": "q"}], "reward_model": {"ground_truth": gold}, "extra_info": {"a": gold[0]}}
    problem = problem_of(row)
    assert (problem.answer, problem.meta) == ([CALLS[0]], {"a": CALLS[0]})
