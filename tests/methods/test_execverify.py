"""ExecVerify: questions about a run, from this interpreter and from the sandbox's, and what right answers pay."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.sandbox import ProgramRun, Sandbox
from rewardlab.tasks.executions.language import follow, sample_function
from rewardlab.tasks.executions.problems import executions, from_python
from rewardlab.tasks.executions.questions import questions
from rewardlab.tasks.executions.tracer import traced

SOURCE = "def f(x):\n y = x + 3\n if y > 6:\n  y = y - 4\n for i in range(2):\n  y = y * 2\n return y"
GOLD = {
    "output": "12",
    "questions": [
        {"kind": "next", "answers": ["y = y - 4"]},
        {"kind": "state", "answers": ["7; int"]},
        {"kind": "state", "answers": ["[1, 2]; list"]},
        {"kind": "next", "answers": ["return y", "-1"]},
    ],
}


def test_all_that_can_be_asked_of_a_run():
    found = questions(SOURCE, traced(SOURCE, "f(4)"))
    # y is 7, 3, 6, 12; every time a line is run again it is counted
    assert [(q.text, q.answer) for q in found] == [
        ("line 2, time 1: y?", "7; int"),
        ("line 3, time 1: next?", "y = y - 4"),
        ("line 4, time 1: y?", "3; int"),
        ("line 5, time 1: next?", "y = y * 2"),
        ("line 5, time 1: i?", "0; int"),
        ("line 6, time 1: next?", "for i in range(2):"),
        ("line 6, time 1: y?", "6; int"),
        ("line 5, time 2: next?", "y = y * 2"),
        ("line 5, time 2: i?", "1; int"),
        ("line 6, time 2: next?", "for i in range(2):"),
        ("line 6, time 2: y?", "12; int"),
        ("line 5, time 3: next?", "return y"),
        ("line 7, time 1: next?", "-1"),
    ]
    # with x = 0 the condition does not hold, and line 4 is not run
    answers = {q.text: q.answer for q in questions(SOURCE, traced(SOURCE, "f(0)"))}
    assert answers["line 3, time 1: next?"] == "for i in range(2):"
    assert answers["line 4, time 1: next?"] == "-1"


def test_functions_made_here_run_as_in_python():
    for seed in range(60):
        function = sample_function(random.Random(seed))
        for x in (0, 5):
            assert follow(function, x) == traced(function.source, f"f({x})"), function.source


def totals(*texts: str, answer=GOLD, **settings) -> list[float | None]:
    rows = [Trajectory(ask("?", answer), (Turn("policy", np.zeros(2, np.int64), text=t),), "end") for t in texts]
    run = Run(policy=None, verify=registry.part("reward", "trace_answers"))
    return [s.total for s in registry.build("execverify", settings).reward([rows], run)[0]]


def reply(*lines: str) -> str:
    return "\n".join(["2: y = 7", "<answer>", *lines, "</answer>"])


def test_steps_count_behind_a_right_output():
    right = ("y = y - 4", "7; int", "[1,2] ; list", "return y")
    wrong_type, wrong_line = ("y = y - 4", "7; float", "[1, 2]; list", "-1"), ("y=y-4", "8; int", "[2, 1]; list", "return")
    assert totals(reply("12", *right), reply("12", *wrong_type), reply("12", *wrong_line)) == pytest.approx([2, 1.75, 1])
    # one line too many or too few: nothing of the steps;   a wrong output: nothing at all
    assert totals(reply("12", *right[:3]), reply("12", *right, "x"), reply("13", *right), reply("12.0")) == [1, 1, 0, 0]
    assert totals(reply("12", *right), reply("12"), alpha=0.2) == pytest.approx([2, 1.6])
    for text in ("", "12", "<answer>12", "</answer><answer>", "<answer></answer>", "<answer>" * 20_000, reply("(" * 900)):
        assert totals(text) == [0]
    # no questions were asked: the output alone counts
    assert totals(reply("12"), answer={"output": "12", "questions": []}) == [2]
    assert totals(reply("12"), answer=None) == [None]
    assert totals(reply("12"), answer={"output": "12", "questions": [3]}) == [None]


def test_the_better_reply_of_a_pair_follows_the_program_further():
    task, verify = executions(test_size=120), registry.part("reward", "trace_answers")
    right = [[verify.check(p.meta[side], p.answer).correct for p in task.test] for side in ("chosen", "rejected")]
    assert all(p.meta["qualities"][0] > p.meta["qualities"][1] for p in task.test)
    # some are right by luck, in both
    assert sum(right[0]) > sum(right[1]) > 10
    assert all(verify.check(p.meta["solution"], p.answer).parts == {"steps": 1.0} for p in task.test)
    assert all(verify.check(p.meta["solution"], p.answer).correct for p in task.test)


@pytest.mark.slow
def test_pythons_of_a_file_are_traced_in_the_sandbox(tmp_path):
    try:
        Sandbox().run_programs([ProgramRun("")])
    except RewardlabError as problem:
        pytest.skip(str(problem))
    rows = [
        {"code": SOURCE, "call": "f(4)"},
        {"code": "def g(s):\n    print('x')\n    t = {c for c in s}\n    return sorted(t)", "call": "g('ba')"},
        {"code": "def f(n):\n    while True: pass", "call": "f(1)"},
        {"code": "def f(n):\n    return 1 / n", "call": "f(0)"},
        {"code": "def f(n):\n    import os\n    return os.listdir('/etc')", "call": "f(0)"},
        {"code": "def f(", "call": "f(0)"},
        # values that no reply can state
        {"code": "def f(n):\n    return list(range(n))", "call": "f(300)"},
        {"code": "def f(n):\n    return object()", "call": "f(0)"},
        {"code": "def f(n):\n    a = [object()]\n    b = 'x' * n\n    c = len(b)\n    return c", "call": "f(900)"},
    ]
    first, second, third = from_python(rows, max_per_kind=50, seconds=2.0)
    assert [q["answers"] for q in third.answer["questions"] if q["kind"] == "state"] == [["900; int"]]
    assert first.answer["output"] == "12"
    assert len(first.answer["questions"]) == len(questions(SOURCE, traced(SOURCE, "f(4)")))
    assert second.answer["output"] == "['a', 'b']"
    assert "line 4, time 1: next?" in second.question
    with pytest.raises(RewardlabError, match="needs the columns `code`"):
        from_python([{"code": "x"}])
    # a file as a task
    path = tmp_path / "code.jsonl"
    path.write_text("\n".join(json.dumps({"code": SOURCE, "call": f"f({x})"}) for x in range(40)))
    task = executions(code=str(path))
    assert len(task.train) + len(task.test) == 40
    assert "Follow the call" in task.test[0].question
