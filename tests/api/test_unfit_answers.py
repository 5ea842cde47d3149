"""Answers that the verifier of a task cannot compare with a reply are told of before anything is trained."""

from __future__ import annotations

import json

import pytest

from rewardlab import registry
from rewardlab.api import unfit_answers
from rewardlab.api.checking import check_columns
from rewardlab.api.unfit_answers import kind_of

TESTS = "from solution import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"tests": "assert f()"}, "code"), (json.dumps({"inputs": ["1"], "outputs": ["2"]}), "code"), (TESTS, "code"),
        (["assert add(1, 2) == 3", "assert add(2, 2) == 4"], "code"), ("SELECT name FROM items", "sql"),
        ({"query": "SELECT 1", "database": "a.db"}, "sql"), ("with t as (select 1) select * from t", "sql"),
        ([{"name": "f", "arguments": {}}], "function_calls"),
        ({"instruction_id_list": []}, "instructions"), ({"a": 1}, "json_value"),
        ("4", ""), (4, ""), (None, ""), (["Rome", "Roma"], ""), ("[1, 2]", ""), ('{"a": 1}', ""), ("{1, 2}", ""),
        ("With this we select 4", ""), ("They assert that it is so", ""), ([], ""),
    ],
)  # fmt: skip
def test_kinds_of_answers(answer, kind):
    assert kind_of(answer) == kind


def told(tmp_path, capsys, answers, method="grpo", **columns):
    unfit_answers._warn.cache_clear()
    pair = {"chosen": "a", "rejected": "b"}
    rows = [json.dumps({"prompt": f"Task {i}", "answer": answer, **pair}) + "\n" for i, answer in enumerate(answers)]
    (tmp_path / "rows.jsonl").write_text("".join(rows))
    task = registry.task(str(tmp_path / "rows.jsonl"), **columns)
    check_columns(registry.build(method), task)
    return " ".join(capsys.readouterr().err.split())


def test_a_verifier_that_cannot_compare_them_is_told_of_with_one_that_can(tmp_path, capsys):
    assert "look like tests of programs" in (said := told(tmp_path, capsys, [TESTS] * 5))
    assert "--verifier code" in said
    assert told(tmp_path, capsys, [TESTS] * 5, verifier="code") == ""
    # what asks no verifier is not concerned, and some answers may be of any kind
    assert told(tmp_path, capsys, [TESTS] * 5, method="dpo") == ""
    assert told(tmp_path, capsys, [TESTS, "4", "5", "6"]) == ""
