"""Tasks for a shell that a model writes: what is wrong with them is found by running them, and by attempts."""

import json

import pytest
from served_model import serving

from rewardlab.api import terminal_tasks_file
from rewardlab.api.terminal_tasks import fault_of
from rewardlab.commands import cli
from rewardlab.data.files import read, write
from rewardlab.errors import RewardlabError
from rewardlab.sandbox import ProgramRun, Sandbox

FILES = {"a.txt": "2\n1\n"}
INITIAL = "assert open('a.txt').read() == '2\\n1\\n'"
FINAL = "assert open('b.txt').read().split() == ['1', '2'], 'not sorted'"
WHOLE = {"files": FILES, "setup": [], "initial_tests": INITIAL, "tests": FINAL}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        Sandbox(commands=True).run_programs([ProgramRun("")])
    except RewardlabError as problem:
        pytest.skip(str(problem))


def rows(path: str) -> list[dict]:
    return [entry.row for entry in read(path) if entry.row]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, ""),
        ({"initial_tests": ""}, ""),
        ({"tests": ["test -f b.txt"]}, ""),
        # planted faults
        ({"initial_tests": "assert open('b.txt')"}, "initial tests do not pass at the start: FileNotFoundError"),
        ({"initial_tests": "assert False, 'no server runs'"}, "no server runs"),
        ({"tests": "assert True"}, "final tests pass at the start"),
        ({"tests": ["true"]}, "final tests pass at the start"),
        ({"tests": INITIAL}, "final tests pass at the start"),
        ({"tests": "assert open('b.txt'"}, "SyntaxError"),
        ({"setup": ["cp nothing b.txt"]}, "setup command 'cp nothing b.txt' ended with exit code 1"),
        ({"files": {"../b.txt": "1"}}, "a name within the folder"),
        # the setup has done the task already
        ({"setup": ["sort a.txt > b.txt"]}, "final tests pass at the start"),
    ],
)
def test_faults_are_found_by_running(change, why):
    found = fault_of({**WHOLE, **change})
    assert (why in found) if why else found == ""


class Models:
    """A server with a writer, whose tasks have a fault each but for one, and a solver, which solves it every other time."""

    def __init__(self):
        self.attempts = 0

    def __call__(self, body):
        asked = body["messages"][-1]["content"]
        topic = next((t for t in ("sorting", "trivia", "secrets", "chaos") if t in asked), "")
        if "Topic:" in asked:
            return f"<task>Sort a.txt into b.txt ({topic}).</task>\n<truth>b.txt holds 1, 2: {topic}</truth>"
        if "Write the files" in asked:
            return f"```json\n{json.dumps(FILES)}\n```\nand\n```python\n{INITIAL}\n```" if topic != "chaos" else "I cannot."
        if "if and only if" in asked:
            # what nobody is told
            wanted = {"trivia": "assert True", "secrets": f"{FINAL}\nassert open('c.txt')"}.get(topic, FINAL)
            return f"```python\n{wanted}\n```"
        if asked.startswith("<output>"):
            return "<action>done</action>"
        # of this task alone: attempts at several come in any order
        self.attempts += "(sorting)" in body["messages"][0]["content"]
        return ["<command>sort a.txt > b.txt</command>", "<command>ls</command>"][self.attempts % 2]


@pytest.mark.slow
def test_the_command_writes_validates_and_attempts(capsys):
    write("topics.jsonl", [{"prompt": topic} for topic in ("sorting", "trivia", "secrets", "chaos")])
    with serving(Models()) as served:
        line = ["data", "terminals", "topics.jsonl", "--model", served.name, "--attempts", "6", "--turns", "2", "--out", "o.jsonl"]
        assert cli.main([*line, "--dropped", "gone.jsonl", "--max-new", "200", "--json"]) == 0
        asked = [body["messages"][-1]["content"] for body in served.asked]
    document = json.loads(capsys.readouterr().out)
    assert document["tasks"] == 1, rows("gone.jsonl")
    assert document["dropped"] == {"invalid": 2, "not solved": 1}
    (task,) = rows("o.jsonl")
    assert task["prompt"] == "Sort a.txt into b.txt (sorting)."
    assert (task["tests"], task["initial_tests"], task["files"]) == (FINAL, INITIAL, FILES)
    assert 1 <= task["solved"] <= 6 == task["attempts"]
    why = json.dumps(rows("gone.jsonl"))
    for reason in ("final tests pass at the start", "none of 6 attempts solved it", "not in the form"):
        assert reason in why
    # the truth is for the writer of tests alone, and tests are shown to no solver
    solving = [text for text in asked if "Topic:" not in text and "Truth:" not in text]
    assert solving
    assert not any("holds 1, 2" in text or "not sorted" in text for text in solving)
    # trains as it is
    write("two.jsonl", [task, {**task, "prompt": "Sort a.txt, into b.txt."}])
    line = ["train", "endless_terminals", "--task", "two.jsonl", "--verifier", "final_state", "--model", "untrained", "--dry-run"]
    # the opening message takes room too
    assert cli.main([*line, "--max-new", "32"]) == 0


def test_written_tasks_are_validated_and_attempted_alike():
    written = [{"prompt": f"Sort {i}.", **WHOLE, **change} for i, change in enumerate([{}, {"tests": "assert True"}])]
    write("w.jsonl", written)
    with serving(Models()) as served:
        document = terminal_tasks_file("w.jsonl", "o.jsonl", model=served.name, attempts=0, max_new=200)
        assert not served.asked
    assert (document["tasks"], document["dropped"]) == (1, {"invalid": 1})
