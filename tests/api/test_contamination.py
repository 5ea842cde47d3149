"""Rows that a model has seen: the columns and the summary of a file, what is refused, and a killed call that resumes."""

from __future__ import annotations

import json

import pytest

from rewardlab import api
from rewardlab.commands import cli
from rewardlab.data.files import read, write
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained

ROWS = [
    {"question": f"Start with {i} . Add 2 . Then add 3 . Then add 4 . Then subtract 1 .", "answer": str(i + 8), "id": i}
    for i in range(5)
]
SMALL = {"batch": 2, "max_new": 6, "device": "cpu", "prompt_column": "question"}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("d.jsonl", ROWS)


def rows(path: str) -> list[dict]:
    return [entry.row for entry in read(path) if entry.row]


def test_each_row_gets_its_columns_and_the_whole_its_shares():
    told = api.contamination_file("d.jsonl", "o.jsonl", model=untrained(), keep_texts=True, **SMALL)
    found = rows("o.jsonl")
    assert [row["id"] for row in found] == [0, 1, 2, 3, 4]
    assert all(row["completed"] is False and 0 <= row["rouge_l"] < 1 and row["answered"] in (True, False) for row in found)
    assert all(isinstance(row["continuation"], str) for row in found)
    assert (told["completed"], told["completed_of"], told["rows"], told["shown"]) == (0.0, 5, 5, 0.6)
    assert told["completed_ci95"][0] == pytest.approx(0.0, abs=1e-9)
    assert 0.3 < told["completed_ci95"][1] < 0.6
    assert told["answered"] == sum(row["answered"] for row in found) / 5


def test_a_stopped_call_resumes_and_gives_the_same(monkeypatch):
    policy = untrained()
    api.contamination_file("d.jsonl", "whole.jsonl", model=policy, **SMALL)
    calls, extend = [], policy.extend

    def twice(*args):
        calls.append(len(args[0]))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return extend(*args)

    monkeypatch.setattr(policy, "extend", twice)
    with pytest.raises(KeyboardInterrupt):
        api.contamination_file("d.jsonl", "d2.jsonl", model=policy, **SMALL)
    told = api.contamination_file("d.jsonl", "d2.jsonl", model=policy, **SMALL)
    assert told["resumed_batches"] == 1
    assert rows("d2.jsonl") == rows("whole.jsonl")


def test_rows_without_answers_say_what_is_completed():
    write("d.jsonl", [{k: v for k, v in row.items() if k != "answer"} for row in ROWS])
    told = api.contamination_file("d.jsonl", "o.jsonl", model=untrained(), **SMALL)
    assert told["completed_of"] == 5
    assert "answered" not in told
    assert [row["answered"] for row in rows("o.jsonl")] == [None] * 5


def test_what_cannot_be_is_refused():
    with pytest.raises(RewardlabError, match="shown"):
        api.contamination_file("d.jsonl", "o.jsonl", model=untrained(), shown=0, **SMALL)
    write("d.jsonl", [row | {"completed": 1} for row in ROWS])
    with pytest.raises(RewardlabError, match="completed, which would be overwritten"):
        api.contamination_file("d.jsonl", "o.jsonl", model=untrained(), **SMALL)


def test_the_command_and_the_filter_that_leaves_seen_rows_out(capsys):
    common = ["--model", "untrained", "--prompt-column", "question", "--max-new", "4", "--shown", "0.5", "--json"]
    assert cli.main(["data", "contamination", "d.jsonl", "--out", "o.jsonl", *common]) == 0
    assert json.loads(capsys.readouterr().out)["completed"] == 0.0
    found = rows("o.jsonl")
    found[1]["completed"] = True
    write("o.jsonl", found)
    assert cli.main(["data", "filter", "o.jsonl", "--between", "completed=:0.5", "--out", "kept.jsonl"]) == 0
    assert [row["id"] for row in rows("kept.jsonl")] == [0, 2, 3, 4]
