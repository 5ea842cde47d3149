"""The rows that a method says it reads: columns, template rows, what is missing, and the command that runs it on them."""

import ast
import shlex

import pytest

from rewardlab import registry
from rewardlab.commands import cli
from rewardlab.data.columns import PAIRS, PROBLEMS, Column, Data
from rewardlab.errors import RewardlabError

HINTED = Data(
    answer="the gold answer",
    hint="a first step",
    note=Column("read by some settings alone", optional=True),
    rows=[{"prompt": "1 + 1?", "answer": "2", "hint": "add"}, {"prompt": "2 + 1?", "answer": "3", "hint": "count"}],
)


def test_plain_rows_stand_where_these_columns_will_do():
    assert Data(answer="the gold answer").rows == list(PROBLEMS)
    assert Data(chosen="good", rejected="bad").rows == list(PAIRS)
    assert Data(answer="gold", solution=Column("a way to it", optional=True)).rows == list(PROBLEMS)
    with pytest.raises(RewardlabError, match="give template rows"):
        Data(answer="gold", hint="a first step")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"prompt": "a", "answer": "1"}, {"prompt": "b", "answer": "2", "hint": "h"}], "row 1 lacks hint"),
        ([{"prompt": "a", "hint": "h", "x": 1}, {"prompt": "b", "hint": "h"}], "row 1 has columns that are not described: x"),
        ([{"prompt": "a", "hint": "h"}, {"prompt": "a", "hint": "i"}], "two different prompts"),
    ],
)
def test_template_rows_hold_what_is_described(rows, message):
    with pytest.raises(RewardlabError, match=message):
        Data(hint="a first step", answer=Column("gold", optional=True), rows=rows)


def test_all_that_is_missing_is_named_with_its_place():
    rows = [
        ("line 1", {"prompt": "a"}),
        ("line 2", {"prompt": "b", "answer": 0, "first": "x"}),
        ("line 3", {"prompt": "c", "hint": None}),
    ]
    assert HINTED.missing(rows) == {"answer": ["line 1", "line 3"], "hint": ["line 1", "line 2", "line 3"]}
    said = str(HINTED.refuse("hinter", {"answer": ["line 1"], "hint": [f"line {i}" for i in range(5)]}))
    assert "hinter needs 2 columns" in said
    assert "hint: a first step (none at line 0; line 1; line 2; and 2 more)" in said
    assert "rewardlab show hinter --rows" in said


def test_a_part_may_name_another_column():
    data = Data(hint=Column("a first step", setting="column"), rows=[{"prompt": p, "hint": "h"} for p in "ab"])
    row = [("line 1", {"prompt": "a", "first": "x"})]
    assert list(data.missing(row)) == ["hint"]
    assert data.missing(row, {"column": "first"}) == {}


def test_it_is_read_from_a_file_without_importing_it_and_kept_as_json():
    text = 'Data(answer="gold", hint=Column("a step", optional=True), settings={"judge": "copy:policy"})'
    read = Data.of(ast.parse(text, mode="eval").body)
    assert Data.from_json(read.to_json()).to_json() == read.to_json()
    assert read.columns["hint"] == Column("a step", optional=True)
    with pytest.raises(ValueError, match="must be a literal"):
        Data.of(ast.parse("Data(answer=GOLD)", mode="eval").body)


def test_a_stack_reads_what_either_method_reads():
    both = HINTED | Data(
        answer=Column("gold", optional=True), chosen="good", rejected="bad", rows=[{**r, "answer": "x"} for r in PAIRS]
    )
    assert both.required == ["prompt", "answer", "hint", "chosen", "rejected"]
    assert all(row.keys() >= {"hint", "chosen"} for row in both.rows)


@pytest.mark.parametrize("name", sorted(row["name"] for row in registry.rows() if row["data"] and not row["data"]["refuses"]))
def test_the_command_that_is_shown_is_one_that_the_command_line_takes(name):
    data = registry.data_of(name)
    verb = "train" if registry.build(name).learns else "answer"
    _, word, *rest = shlex.split(data.command(name, verb))
    args = cli.parse(cli.module_of(word), word, rest)
    assert (args.task, args.verifier or "") == ("rows.jsonl", data.verified_by)


@pytest.mark.parametrize("value", [float("nan"), "high", None, [1]])
def test_where_a_number_is_needed_another_value_is_named_with_its_place(value):
    """NaN would stand as 0 in the table of rewards."""
    data = Data(
        chosen="good",
        rejected="bad",
        chosen_score=Column("how good", optional=True, needed_with=("labels", "margins"), number=True),
    )
    rows = [("line 1", {"prompt": "a", "chosen": "x", "rejected": "y", "chosen_score": "4"})]
    rows += [("line 2", rows[0][1] | {"chosen_score": value})]
    assert data.missing(rows) == {}
    missing = data.missing(rows, {"labels": "margins"})
    assert missing == {"chosen_score": ["line 2"]}
    assert "chosen_score: how good (no number at line 2)" in str(data.refuse("any", missing))
    assert Data.from_json(data.to_json()).columns["chosen_score"].number


def test_a_column_that_a_setting_names_and_no_row_has_is_told():
    data = Data(reply="a reply", named_by="attributes", rows=[{"prompt": p, "reply": "r"} for p in "ab"])
    rows = [("line 1", {"prompt": "a", "kind": 3, "brief": "x"}), ("line 2", {"prompt": "b", "kind": None})]
    settings = {"attributes[0]": "kind", "attributes[1]": "brief", "attributes[2]": "typo", "fields[0]": "reply"}
    assert data.unrated(rows, settings) == ["brief", "typo"]
    assert (data | HINTED).unrated(rows, settings) == (HINTED | data).unrated(rows, settings) == ["brief", "typo"]
    assert HINTED.unrated(rows, settings) == []


def test_what_an_older_version_cached_is_read():
    document = HINTED.to_json()
    old = {name: document[name] for name in ("columns", "rows", "settings", "verified_by", "refuses")}
    old["columns"] = {name: column[:4] for name, column in document["columns"].items()}
    assert Data.from_json(old).to_json() == document


def test_a_column_that_some_rows_must_have_is_told_where_none_has():
    data = Data(gold=Column("true where verified", some=True), rows=[{"prompt": "a", "gold": True}, {"prompt": "b"}])
    assert data.required == ["prompt"]
    # rows to measure on may lack it
    assert data.missing([("line 1", {"prompt": "a"})]) == {}
    assert data.nowhere([{"prompt": "a"}, {"prompt": "b", "gold": True}]) == {}
    assert data.nowhere([{"prompt": "a", "gold": "1"}]) == {}
    for value in (None, False, "false", " ", 0):
        lacking = data.nowhere([{"prompt": "a", "gold": value}, {"prompt": "b"}])
        assert lacking == {"gold": []}
    assert "gold: true where verified (none in any row)" in str(data.refuse("skywork", lacking))
    assert Data.from_json(data.to_json()).columns["gold"].some


def test_in_a_stack_a_column_is_needed_as_strictly_as_one_of_them_says():
    def data(**columns):
        return Data(**columns, rows=[{"prompt": "a", "gold": True}, {"prompt": "b", "gold": True}])

    needed, some, optional = data(gold="g"), data(gold=Column("g", some=True)), data(gold=Column("g", optional=True))
    for one, other in ((needed, some), (some, needed), (needed, optional), (optional, needed)):
        assert "gold" in (one | other).required
    assert all(stack.columns["gold"].some for stack in (some | optional, optional | some))
