"""What is printed for people: numbers as they write them, and nothing that can be copied is ever cut."""

import contextlib
import io
import re

import pytest

from rewardlab import registry
from rewardlab.commands import cli, tables

LONG = "a_name_that_is_longer_than_any_column_of_a_narrow_terminal"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(params=[io.StringIO, Terminal], ids=["pipe", "terminal"])
def printed(request, monkeypatch):
    """What a function prints into a pipe or a terminal, both of 40 columns; and which of the two it is."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")

    def run(do) -> str:
        with contextlib.redirect_stdout(request.param()) as stream:
            do()
        return re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue())

    run.in_terminal = request.param is Terminal
    return run


def test_no_word_of_a_table_is_cut_or_split(printed):
    row = [LONG, "a few words that may be wrapped", f"/work/{LONG}.py"]
    said = printed(lambda: tables.table(("name", "idea", "file"), [row, ["b", "", ""]]))
    assert {LONG, f"/work/{LONG}.py", "wrapped"} <= set(said.split())
    assert "…" not in said


def test_cells_wrap_in_a_terminal_alone(printed):
    text = "several words " * 10 + "end"
    said = printed(lambda: tables.table(("name", "idea"), [["x", text]]))
    assert max(map(len, said.splitlines())) <= 40 if printed.in_terminal else text in said


@pytest.mark.parametrize("command", ["list", "parts"])
def test_names_and_ideas_are_complete(command, printed):
    words = printed(lambda: cli.main([command])).split()
    assert set(registry.methods() if command == "list" else ("turn_leave_one_out", "dapo/overlong")) <= set(words)
    if command == "list":
        for row in registry.rows():
            assert " ".join(row["idea"].split()) in " ".join(words)


def test_numbers_are_written_as_people_do():
    numbers = (33098.4, 33098, 9999.4, 9999.9, 1234.5, -1e6, 0.5, 3e-5, 0.0, 12, True, None, float("nan"))
    assert [tables.value(x) for x in numbers] == [
        "33,098", "33,098", "9999", "10,000", "1234", "-1,000,000", "0.5", "3e-05", "0", "12", "True", "", "nan",
    ]  # fmt: skip
    assert tables.number(33098.4, sign=True) == "+33,098"
    assert tables.number(-0.25, sign=True) == "-0.25"
    assert tables.value({"value": 33100.0, "ci95": [1e5, 2e5]}) == "33,100 [100,000, 200,000]"
    assert tables.number(float("inf")) == "inf"


def test_an_interval_that_nobody_measured_is_not_shown():
    assert tables.value({"value": 0.5, "ci95": [0.4, 0.6]}) == "0.5 [0.4, 0.6]"
    assert tables.value({"value": 0.5, "ci95": [None, None]}) == "0.5"
    assert tables.value({"correlation": 0.5, "n": 12, "ci95": [None, None], "error": 0.25}) == "correlation 0.5, n 12, error 0.25"


def test_an_interval_that_nobody_measured_is_an_empty_cell():
    assert tables.value((None, None)) == ""
    assert tables.value([0.5, 1]) == "[0.5, 1]"
    assert tables.value([]) == "[]"
