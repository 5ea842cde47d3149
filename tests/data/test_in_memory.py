"""Rows that are given in Python in the place of a file."""

from __future__ import annotations

import json

import datasets
import numpy as np
import pandas
import pyarrow
import pytest

import rewardlab
from rewardlab import RewardlabError, api, task
from rewardlab.checks import pairs as rehearse
from rewardlab.comparisons import completing
from rewardlab.comparisons.compare import resume
from rewardlab.data.in_memory import GivenRows
from tests.helpers import in_process

ROWS = [{"prompt": f"Say {i}", "answer": i, "level": i % 3} for i in range(20)]
SMALL = {"max_new": 4, "eval_problems": 2, "eval_every": 0, "device": "cpu", "steps": 1}
FORMS = {
    "a list of dicts": lambda: ROWS,
    "a tuple": lambda: tuple(ROWS),
    "a generator": lambda: (row for row in ROWS),
    "columns": lambda: {name: [row[name] for row in ROWS] for name in ROWS[0]},
    "columns of NumPy": lambda: {name: np.array([row[name] for row in ROWS]) for name in ROWS[0]},
    "a data frame": lambda: pandas.DataFrame(ROWS),
    "a filtered data frame": lambda: pandas.DataFrame([*ROWS, ROWS[0]]).drop_duplicates(),
    "a dataset": lambda: datasets.Dataset.from_list(ROWS),
    "a table of Arrow": lambda: pyarrow.Table.from_pylist(ROWS),
    "a split": lambda: {"train": ROWS},
}


def of(problems):
    return sorted((p.question, p.answer, p.meta["level"]) for p in problems)


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)
def test_rows_of_every_form_are_the_problems_that_a_file_of_them_holds(make, tmp_path):
    (file := tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    given, read = task(make()), task(file)
    assert of(given.train.problems) == of(read.train.problems)
    assert of(given.test) == of(read.test)
    assert (given.name, given.columns, given.source) == ("rows", read.columns, None)
    assert all(type(p.answer) is int for p in given.test)


SPLITS = {"train": ROWS[:6], "validation": ROWS[6:8]}


@pytest.mark.parametrize(
    "make",
    [
        lambda: task(SPLITS),
        lambda: task({name: pandas.DataFrame(rows) for name, rows in SPLITS.items()}),
        lambda: task(datasets.DatasetDict({name: datasets.Dataset.from_list(rows) for name, rows in SPLITS.items()})),
        lambda: task(ROWS[:6], test=ROWS[6:8]),
    ],
)
def test_splits_are_told_apart_as_those_of_a_folder_are(make):
    made = make()
    assert (len(made.train.problems), [p.question for p in made.test]) == (6, ["Say 6", "Say 7"])


def test_columns_are_named_and_options_checked_as_for_a_file():
    renamed = [{"question": row["prompt"], "result": row["answer"]} for row in ROWS]
    assert task(renamed, prompt_column="question", answer_column="result", test_share=0.5).columns == ("prompt", "answer")
    with pytest.raises(RewardlabError, match=r"row 1: no column 'prompt'; did you mean 'question' \(--prompt-column question\)"):
        task(renamed)
    with pytest.raises(RewardlabError, match="unknown option of the task records 'prompt_colum'"):
        task(renamed, prompt_colum="question")


def test_conversations_and_pairs_are_read_as_those_of_a_file():
    talk = [{"messages": [{"role": "user", "content": f"Hi {i}"}, {"role": "assistant", "content": "Ho"}]} for i in range(4)]
    assert task(talk).test[0].meta["solution"] == "Ho"
    assert task({"messages": [row["messages"] for row in talk]}).test[0].meta["solution"] == "Ho"


BAD = {
    "a hole of pandas": (pandas.DataFrame({"prompt": ["a", "b"], "answer": [1.0, None]}), "row 2: the problem has no answer"),
    "an empty prompt": ([*ROWS, {"prompt": " ", "answer": 1}], "row 21: the prompt is empty"),
    "a column missing": ([*ROWS, {"prompt": "a"}], "row 21: the problem has no answer"),
    "a text among rows": ([*ROWS, "a"], "row 21: expected an object with columns, found str"),
    "a number for a name": ([{0: "a", 1: "b"}], "row 1: the name of a column must be a text, not 0"),
    "half a character": ([{"prompt": "a\ud83d", "answer": 1}], "row 1: the column 'prompt' holds half of a character"),
    "a set": ([{"prompt": "a", "answer": {1}}], "row 1: the column 'answer' holds a set, which no file"),
    "two columns of a name": (pandas.DataFrame([[1, 2]], columns=["prompt", "prompt"]), "two columns .* named 'prompt'"),
    "columns of two lengths": ({"prompt": ["a"], "answer": [1, 2]}, "as long as one another"),
    "one prompt": (ROWS[:1], "at least two different prompts are needed"),
    "a number": (5, "a task is a name, a file of problems, or rows"),
    "nothing": (None, "a task is a name, a file of problems, or rows"),
}


@pytest.mark.parametrize(("rows", "says"), BAD.values(), ids=BAD)
def test_bad_rows_are_refused_with_their_place(rows, says):
    with pytest.raises(RewardlabError, match=says):
        task(rows)


def test_a_task_stays_what_it_is():
    made = task(ROWS)
    assert task(made) is made
    with pytest.raises(RewardlabError, match="system: only for problems that are read"):
        task(made, system="Be brief.")


def test_rows_are_trained_on_resumed_measured_answered_searched_and_compared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(completing, "run_all", in_process.run_all)
    monkeypatch.setattr(rehearse, "run_all", in_process.run_all)
    rows = pandas.DataFrame(ROWS).rename(columns={"prompt": "question"})
    given = {"prompt_column": "question", "device": "cpu", "max_new": 4}
    run = rewardlab.train("grpo", "untrained", rows, settings={"n": 2, "problems": 2}, **SMALL | given, seed=1, out="run")
    assert json.loads((run.out / "config.json").read_text())["task"] == "rows"
    assert rewardlab.resume("run", rows, steps=2).summary["steps"] == 2
    with pytest.raises(RewardlabError, match="trained on other problems"):
        rewardlab.resume("run", rows[1:], steps=3)
    # a run's columns go for other rows too
    assert rewardlab.evaluate("run", rows, k=(1,), problems=2)["task"] == "rows"
    assert rewardlab.answer("majority_vote", "untrained", rows, problems=2, **given)["task"] == "rows"
    assert api.search("best_of_n", rows, model="untrained", problems=2, settings={"n": 2}, **given)["task"] == "rows"
    assert rewardlab.plan("grpo", "untrained", rows, **given)["columns"] == ["prompt", "answer", "level"]
    compared = rewardlab.compare(["grpo", "rloo"], task=rows, model="untrained", seeds=[0], jobs=1, out="c", steps=1, **given)
    assert compared["task"] == "rows"
    assert [json.loads(line) for line in (tmp_path / "c" / "rows.jsonl").read_text().splitlines()] == rows.to_dict("records")
    # another process can complete it
    assert resume("c", seeds=[0, 1], jobs=1)["seeds"] == [0, 1]


def test_several_splits_become_a_folder_and_what_no_json_holds_is_refused(tmp_path):
    given = GivenRows.of({"train": ROWS[:3], "test": ROWS[3:5]})
    folder = given.written(tmp_path / "rows")
    assert sorted(file.name for file in folder.iterdir()) == ["test.jsonl", "train.jsonl"]
    assert of(task(folder).test) == of(task({"train": ROWS[:3], "test": ROWS[3:5]}).test)
    with pytest.raises(RewardlabError, match="rows, row 2: the column 'scan' holds bytes"):
        GivenRows.of([{"prompt": "a"}, {"prompt": "b", "scan": [b"x"]}]).written(tmp_path / "other")
    with pytest.raises(RewardlabError, match="row 1"):
        GivenRows.of([3]).written(tmp_path / "third")
