"""Files of rows: what is read, in which order, and that it is written whole."""

import gzip
import io
import json
import math
import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewardlab.data.files import check_out, read, rows_of, write
from rewardlab.errors import RewardlabError

ROWS = [{"prompt": "a\nb", "n": 1, "replies": ["x", "y"]}, {"prompt": "1.50", "answer": {"tests": "t"}, "empty": {}}]


def rows(path) -> list[dict]:
    return [entry.row for entry in read(path)]


def test_what_is_written_is_read_again(tmp_path):
    write(tmp_path / "a.jsonl", ROWS)
    assert rows(tmp_path / "a.jsonl") == ROWS
    write(tmp_path / "a.csv", ROWS)
    assert rows(tmp_path / "a.csv") == [
        {"prompt": "a\nb", "n": "1", "replies": '["x", "y"]', "answer": "", "empty": ""},
        {"prompt": "1.50", "n": "", "replies": "", "answer": '{"tests": "t"}', "empty": "{}"},
    ]
    write(tmp_path / "a.parquet", ROWS)
    assert rows(tmp_path / "a.parquet") == [
        {"prompt": "a\nb", "n": 1, "replies": ["x", "y"], "answer": None, "empty": None},
        {"prompt": "1.50", "n": None, "replies": None, "answer": {"tests": "t"}, "empty": "{}"},
    ]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_without_rows_has_its_columns(tmp_path, suffix):
    write(tmp_path / f"a.{suffix}", [], ["prompt", "answer"])
    assert rows(tmp_path / f"a.{suffix}") == []
    # so that a further row can be read beside it
    assert b"prompt" in (tmp_path / f"a.{suffix}").read_bytes()


def test_values_of_several_types_are_texts_in_a_parquet_file(tmp_path):
    write(tmp_path / "a.parquet", [{"answer": 4}, {"answer": "four"}, {"answer": None}])
    assert rows(tmp_path / "a.parquet") == [{"answer": "4"}, {"answer": "four"}, {"answer": None}]


def test_a_broken_row_of_a_csv_file_keeps_its_place_and_its_text(tmp_path):
    (tmp_path / "a.csv").write_text('a,b\n1,2,3\n4,"x\ny"\n5\n\n6,7\n8\n')
    entries = list(read(tmp_path / "a.csv"))
    # the line of the file on which a row begins, with its header, line breaks in cells, and blank lines
    assert [entry.place for entry in entries] == [f"line {i}" for i in (2, 3, 5, 7, 8)]
    assert [entry.raw for entry in entries] == ["1,2,3", "", "5", "", "8"]
    assert [entry.row for entry in entries] == [None, {"a": "4", "b": "x\ny"}, None, {"a": "6", "b": "7"}, None]
    assert entries[0].why == "3 cells, but 2 columns"


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.jsonl", b'{"a": 1}\n{"a": }\n', "line 2: not JSON: Expecting value at column 7"),
        # the parser stands on the next line here
        ("a.jsonl", b'{"a": 1}\n{"a":\r\n', "line 2: not JSON: Expecting value at column 6"),
        ("a.json", b'[{"a": 1},\n{"a": }]', "line 2: not JSON: Expecting value at column 7; JSON lines have the suffix .jsonl"),
        ("a.json", b'[{"a": 1},\n{"a": "\xff"}]', "line 2: not UTF-8; convert it (iconv -f latin1 -t utf8)"),
        ("a.json", b'[{"a": 1},\n{"a": NaN}]', "row 2: not JSON: NaN is not JSON"),
        ("a.json", b'[{"a": 1},\n{"a": -Infinity}]', "row 2: not JSON: -Infinity is not JSON"),
        ("a.json", b'[{"a": [1e999]}]', "row 1: not JSON: the number 1e999 is out of range"),
        ("a.json", b'[{"a": {"b": 1, "b": 2}}]', "row 1: not JSON: the key 'b' occurs twice in an object"),
        ("a.json", b'[1, {"a": 1}]', "row 1: not a JSON object"),
        ("a.json", b'[{"a": 1}] 2', "line 1: not JSON: Extra data at column 12; JSON lines have the suffix .jsonl"),
        (
            "a.json",
            b'[{"a": ' + b"[" * 100_000,
            "line 1: not JSON: the brackets of this element are not closed at column 2; JSON lines have the suffix .jsonl",
        ),
        (
            "a.csv",
            b"a,b,a\n1,2,3\n",
            "line 1: several columns are named 'a', and only one of them could be kept; give each its own name, or leave the "
            "others out",
        ),
        ("a.csv", b"a,b\n1,2\n3\n", "line 3: 1 cell, but 2 columns"),
        ("a.csv", b"a,b\n\n1,2\n3,\xff\n", "line 4: not UTF-8; convert it (iconv -f latin1 -t utf8)"),
        # one column, so that the number of cells does not tell
        (
            "a.csv",
            b'a\n1\n"2\n3\n',
            "line 3: the quote that opens in this row is not closed, so all that follows is taken for one cell",
        ),
        ("a.csv", "a,b\n1,2\n".encode("utf-16"), "line 1: not UTF-8; convert it (iconv -f utf16 -t utf8)"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_broken_line_is_told_by_its_one_number(tmp_path, name, content, told, packed):
    file = tmp_path / f"{name}{'.gz' * packed}"
    file.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(RewardlabError) as e:
        list(rows_of(file))
    assert str(e.value) == f"{file}, {told}"


def test_a_row_may_be_longer_than_any_buffer_and_a_quote_may_stand_within_a_cell(tmp_path):
    write(tmp_path / "a.csv", [{"a": "x" * 3_000_000, "b": '5" pipe'}])
    assert rows(tmp_path / "a.csv") == [{"a": "x" * 3_000_000, "b": '5" pipe'}]
    (tmp_path / "b.csv").write_text('\ufeffa,b\n5" pipe,1.50\n', "utf-8")
    assert rows(tmp_path / "b.csv") == [{"a": '5" pipe', "b": "1.50"}]


@pytest.mark.parametrize("content", ["a;b\n1,5;2\n", "a\tb\n1,5\t2\n", '"a","b"\n"1,5",2\n'])
def test_cells_may_be_separated_as_a_spreadsheet_does(tmp_path, content):
    (tmp_path / "a.csv").write_text(content)
    assert rows(tmp_path / "a.csv") == [{"a": "1,5", "b": "2"}]


def test_what_cannot_be_read_as_rows_is_refused_at_once(tmp_path):
    (tmp_path / "a.csv").touch()
    (tmp_path / "a.jsonl.zip").write_bytes(b"PK")
    for name, told in (("a.csv", "is empty"), ("a.jsonl.zip", "is packed"), ("b.csv", "there is no file"), ("", "is a folder")):
        with pytest.raises(RewardlabError, match=told):
            rows(tmp_path / name)


def test_lines_that_are_no_rows_keep_their_place_and_their_text(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"a": 1}\n\nnot json\n[1]\n{"a": \xff}\n')
    entries = list(read(tmp_path / "a.jsonl"))
    assert [entry.place for entry in entries] == [f"line {i}" for i in range(1, 6)]
    assert [entry.blank for entry in entries] == [False, True, False, False, False]
    assert [bool(entry.why) for entry in entries] == [False, False, True, True, True]
    assert [entry.raw for entry in entries[2:]] == ["not json", "[1]", '{"a": �}']


def test_a_file_that_cannot_be_finished_stays_as_it_was(tmp_path):
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        write(tmp_path / name, [{"a": "before"}])
        with pytest.raises(TypeError):
            # a key that JSON does not know, in the second row
            write(tmp_path / name, [{"a": 1}, {"a": {(1, 2): 3}}])
        assert rows(tmp_path / name) == [{"a": "before"}]
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "a.jsonl", "a.parquet"]


def test_standard_input_and_output(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"a": 1}\n')))
    write("-", rows("-"))
    assert json.loads(capsys.readouterr().out) == {"a": 1}


def test_a_table_that_is_none_is_said(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"nothing")
    with pytest.raises(RewardlabError, match=r"a\.parquet cannot be read"):
        rows(tmp_path / "a.parquet")


def test_an_element_of_a_list_is_read_as_strictly_as_a_line_and_breaks_no_other(tmp_path):
    broken = ['{"a": NaN}', '{"a": 1, "a": 2}', '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", '{"a": ' + "9" * 5000 + "}", '"]"']
    whole = ['{"a": "[\\"}"}', '{"a": [1.5, null]}']
    texts = [whole[0], *broken, whole[1]]
    (tmp_path / "a.json").write_text(" [\n" + " ,\n".join(texts) + "\n]\n")
    (tmp_path / "a.jsonl").write_text("\n".join(texts))
    elements, lines = list(read(tmp_path / "a.json")), list(read(tmp_path / "a.jsonl"))
    assert [entry.place for entry in elements] == [f"row {i}" for i in range(1, 8)]
    assert [(entry.row, entry.raw, entry.why) for entry in elements] == [(entry.row, entry.raw, entry.why) for entry in lines]
    assert [entry.row for entry in elements if entry.row] == list(map(json.loads, whole))
    (tmp_path / "b.json").write_text("[ ]")
    assert rows(tmp_path / "b.json") == []


def test_numbers_that_json_does_not_know_are_null_wherever_they_stand(tmp_path):
    """What one tool writes the next one reads."""
    row = {"a": math.nan, "b": [1.0, math.inf], "c": {"d": -math.inf}}
    write(tmp_path / "a.jsonl", [row])
    assert rows(tmp_path / "a.jsonl") == [{"a": None, "b": [1.0, None], "c": {"d": None}}]
    write(tmp_path / "a.csv", [row])
    assert rows(tmp_path / "a.csv") == [{"a": "", "b": "[1.0, null]", "c": '{"d": null}'}]
    write(tmp_path / "a.parquet", [{"b": [1.0, math.nan]}])
    assert rows(tmp_path / "a.parquet") == [{"b": [1.0, None]}]


def test_two_columns_of_one_name_in_a_parquet_file_are_refused_at_any_depth(tmp_path):
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "a.parquet")
    inner = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    pq.write_table(pa.table({"s": pa.ListArray.from_arrays([0, 1], inner)}), tmp_path / "b.parquet")
    for name, column in (("a", "a"), ("b", "s.element.x")):
        with pytest.raises(RewardlabError, match=rf"{name}\.parquet: several columns are named '{column}'"):
            rows(tmp_path / f"{name}.parquet")


@pytest.mark.parametrize("suffix", ["xlsx", "json", "txt", "gz"])
def test_rows_are_written_to_files_whose_suffix_says_how_alone(tmp_path, suffix):
    with pytest.raises(RewardlabError, match=rf"rows are written to JSON lines \(.jsonl\), .csv and .parquet files, not .{suffix}"):
        check_out(tmp_path / f"a.{suffix}")
    for name in ("a.jsonl", "a.CSV", "a.parquet", "a"):
        check_out(tmp_path / name)
