"""Solutions made into episodes with an interpreter, whose code was run."""

import json
from pathlib import Path

import pytest
from served_model import serving

from rewardlab.api import code_traces_file
from rewardlab.api.code_traces import turns_of
from rewardlab.commands import cli
from rewardlab.core import Run
from rewardlab.data.files import read, write
from rewardlab.errors import RewardlabError
from rewardlab.sandbox import ProgramRun, Sandbox

ROWS = [
    {"prompt": "What is 2^20?", "answer": "1048576", "solution": "2^10 is 1024, and its square is 1048576."},
    {"prompt": "What is 1 + 1?", "answer": "2", "solution": "1 + 1 is 2."},
]


def trace(code: str, claimed: str | None, answer: str) -> str:
    said = "" if claimed is None else f"\n<interpreter>{claimed}</interpreter>"
    return f"I compute it.\n<code>\n```python\n{code}\n```\n</code>{said}\nThe answer is \\boxed{{{answer}}}."


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("d.jsonl", ROWS)
    try:
        Sandbox().run_programs([ProgramRun("")])
    except RewardlabError as problem:
        pytest.skip(str(problem))


def rows(path: str) -> list[dict]:
    return [entry.row for entry in read(path) if entry.row]


def test_a_trace_is_cut_into_replies_and_answers():
    text = "A <code>1</code>\n<interpreter>\n1\n</interpreter> B <code>2</code> C <interpreter>no answer</interpreter>"
    assert turns_of(text) == [
        ("A <code>1</code>", "\n1\n"), ("B <code>2</code>", None), ("C <interpreter>no answer</interpreter>", None)
    ]  # fmt: skip
    assert turns_of("Four.") == [("Four.", None)]


def test_the_command_keeps_what_holds_and_says_why_the_rest_does_not(capsys):
    class Writer:
        """The first tries of each row fail; of the second row all do."""

        calls, first = 0, 0

        def __call__(self, body):
            self.calls += 1
            if "2^20" in body["messages"][-1]["content"]:
                self.first += 1
                tries = [("x = 2 ** 20\nx", "7", "7"), ("2 ** 20", "1048576", "7"), ("2 ** 20", " 1048576\n", "1048576")]
                return trace(*tries[self.first % 3])
            return ["It is \\boxed{2}.", trace("1 / 0", None, "2")][self.calls % 2]

    with serving(Writer()) as served:
        line = ["data", "code-traces", "d.jsonl", "--model", served.name, "--tries", "6", "--out", "o.jsonl", "--max-new", "200"]
        assert cli.main([*line, "--json"]) == 0
        asked = [body["messages"][-1]["content"] for body in served.asked]
    # requests are sent side by side, and arrive in any order
    assert all("### Solution\n2^10 is 1024" in text for text in asked if "2^20" in text)
    assert sum("2^20" in text for text in asked) == 6
    document = json.loads(capsys.readouterr().out)
    assert (document["traces"], document["calls"], document["dropped"]) == (1, 1, {"no trace": 1})
    (row,) = rows("o.jsonl")
    # the true output stands in it, in the interpreter's form
    assert row["solution"] == [
        "I compute it.\n<code>\n```python\n2 ** 20\n```\n</code>", "<interpreter>\n1048576\n</interpreter>",
        "The answer is \\boxed{1048576}.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("It is \\boxed{1048576}.", "it runs no code"),
        (trace("2 ** 20", "1048577", "1048576"), "its code prints '1048576', and not '1048577'"),
        (trace("2 ** 20", None, "1048577"), "does not have the gold answer"),
        (trace("1 / 0", None, "1048576"), "ZeroDivisionError"),
        (trace("import os; os._exit(0)", None, "1048576"), "its code fails"),
        ("</code> The answer is 1048576.", "not in the form"),
    ],
)
def test_written_traces_are_tested_without_a_model(written, why):
    write("w.jsonl", [{**ROWS[0], "trace": written}, {**ROWS[0], "trace": trace("a = 2 ** 20\nprint(a)", None, "1048576")}])
    document = code_traces_file("w.jsonl", "o.jsonl", "gone.jsonl", trace_column="trace")
    assert document["traces"] == 1
    (dropped,) = rows("gone.jsonl")
    assert why in json.dumps(dropped)


def test_rows_without_a_trace_are_left_out_and_a_file_without_any_is_refused():
    good = {**ROWS[0], "trace": trace("a = 2 ** 20\nprint(a)", None, "1048576")}
    write("w.jsonl", [{**ROWS[0], "trace": 17}, good, ROWS[0], {**ROWS[0], "trace": " "}])
    document = code_traces_file("w.jsonl", "o.jsonl", "gone.jsonl", trace_column="trace")
    assert (document["traces"], document["dropped"]) == (1, {"no text": 3})
    assert {row["why"] for row in rows("gone.jsonl")} == {"it has no text in the column 'trace'"}
    Path("w.jsonl").write_text("no JSON\n")
    with pytest.raises(RewardlabError, match=r"w\.jsonl holds no problem: line 1: "):
        code_traces_file("w.jsonl", "o.jsonl", trace_column="trace")


def test_the_cold_start_reads_what_is_written():
    write("w.jsonl", [{**row, "trace": trace(row["answer"], None, row["answer"])} for row in ROWS])
    code_traces_file("w.jsonl", "o.jsonl", trace_column="trace")
    from rewardlab import registry
    from rewardlab.models.embedded import untrained
    from rewardlab.rollouts.recorded import recorded

    task = registry.task("o.jsonl")
    ((episode,),) = recorded(fields=("solution",))([task.train[0]], Run(untrained(), max_new=50))
    assert [t.author for t in episode.turns] == [None, "policy", None, "policy"]


def test_what_cannot_be_done_is_said():
    with pytest.raises(RewardlabError, match=r"no row of d\.jsonl has a text in the column 'worked'"):
        code_traces_file("d.jsonl", "o.jsonl", model="untrained", solution_column="worked")
    assert cli.main(["data", "code-traces", "d.jsonl", "--model", "untrained", "--temperature", "0", "--out", "o.jsonl"]) == 2
