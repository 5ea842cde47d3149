"""Tests of programs that a model writes for the rows of a file, and the choice among programs by them."""

import json

import pytest
from served_model import serving

from rewardlab import registry
from rewardlab.api import search, written_tests_file
from rewardlab.commands import cli
from rewardlab.data.files import read, write
from rewardlab.errors import RewardlabError

ROWS = [
    {"prompt": "Write add(a, b).", "answer": {"tests": "assert add(1, 1) == 2"}, "draft": "def add(a, b):\n    return a"},
    {"prompt": "Read a and b, and print their sum.", "answer": {"io": [["1 1\n", "2\n"]]}, "draft": ""},
    {"prompt": "", "answer": {"tests": "assert False"}, "draft": ""},
]
WRONG, RIGHT = "def add(a, b):\n    return a", "def add(a, b):\n    return a + b"


class Model:
    """A server's model: it writes tests, some of them none, and programs, a wrong one first."""

    def __init__(self):
        self.calls = 0

    def __call__(self, body):
        self.calls += 1
        asked = body["messages"][-1]["content"]
        if "unit test" in asked:
            return [f"```python\nassert add({self.calls}, 2) == {self.calls + 2}\n```", "I would test it."][self.calls % 3 == 0]
        if "line of JSON" in asked:
            return f'["{self.calls} 1", "{self.calls + 1}"]'
        return [WRONG, RIGHT][self.calls % 2]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("d.jsonl", ROWS)


def rows(path: str) -> list[dict]:
    return [entry.row for entry in read(path) if entry.row]


def test_the_command_adds_tests_by_a_served_model(capsys):
    with serving(Model()) as served:
        line = ["data", "tests", "d.jsonl", "--model", served.name, "--tests", "6", "--out", "o.jsonl", "--program-column", "draft"]
        assert cli.main([*line, "--max-new", "50", "--json"]) == 0
        asked = [body["messages"][-1]["content"] for body in served.asked]
    document = json.loads(capsys.readouterr().out)
    functions, pairs = rows("o.jsonl")
    assert [functions["prompt"], pairs["prompt"]] == [ROWS[0]["prompt"], ROWS[1]["prompt"]]
    assert 2 <= len(functions["generated"]) <= 6
    assert all(test.startswith("assert add(") for test in functions["generated"])
    assert len(pairs["generated"]) == 6
    assert all(isinstance(test, list) and len(test) == 2 for test in pairs["generated"])
    assert document["tests"] == len(functions["generated"]) + 6
    assert document["dropped"] == {"no problem": 1}
    # the draft is shown where there is one, and the gold tests never
    assert any(text.endswith("### Program\ndef add(a, b):\n    return a") for text in asked)
    assert not any("add(1, 1)" in text for text in asked)


def test_programs_are_chosen_by_what_was_written():
    model = Model()
    with serving(model) as served:
        written_tests_file("d.jsonl", "o.jsonl", model=served.name, tests=4, max_new=50)
        tested = rows("o.jsonl")[0]
        write("one.jsonl", [tested, {**tested, "prompt": "Write a function add of a and b."}])
        settings = {"coderm_8b.probe": "", "coderm_8b.writer": "", "coderm_8b.n": 4}
        task = registry.task("one.jsonl", verifier="code")
        found = search("coderm_8b", task, model=served.name, settings=settings, problems=1, max_new=50, out="a.jsonl")
    assert found["results"][0]["accuracy"]["value"] == 1.0
    assert rows("a.jsonl")[0]["answer"] == RIGHT


def test_what_cannot_be_done_is_said():
    write("had.jsonl", [{**ROWS[0], "generated": []}])
    with pytest.raises(RewardlabError, match="have a column generated already"):
        written_tests_file("had.jsonl", "o.jsonl", model="untrained")
    with pytest.raises(RewardlabError, match=r"no row of d\.jsonl has a column program"):
        written_tests_file("d.jsonl", "o.jsonl", model="untrained", program_column="program")
    assert cli.main(["data", "tests", "d.jsonl", "--model", "untrained", "--temperature", "0", "--out", "o.jsonl"]) == 2
