"""A shell in a folder whose last state is tested."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rewardlab.core import Trajectory, Turn, ask
from rewardlab.envs.terminal import TELL, UNFINISHED, session_of, terminal
from rewardlab.errors import RewardlabError
from rewardlab.rewards.environment import final_state
from rewardlab.sandbox import ProgramRun, Sandbox
from rewardlab.sandbox.shell import Session, packed, run
from rewardlab.text.code_calls import command_of

FILES = {"a.txt": "3\n1\n2\n", "d/b.csv": "x,1\ny,2\n"}
SORTED = "assert open('b.txt').read().split() == ['1', '2', '3']\ndef test_a():\n    assert open('a.txt').read() == '3\\n1\\n2\\n'"


@pytest.fixture(scope="module", autouse=True)
def _isolated():
    try:
        Sandbox(commands=True).run_programs([ProgramRun("")])
    except RewardlabError as problem:
        pytest.skip(str(problem))


def play(*commands: str, tests=SORTED, **row):
    """What is answered to each command, what each is paid, and the last state."""
    env = terminal()
    message, state = env.start(ask("Sort a.txt into b.txt.", files=FILES, tests=tests, **row), 0)
    assert message.text == TELL
    said, paid = [], []
    for command in commands:
        message, state = env(state, Turn("policy", np.zeros(1, np.int64), text=f"So:\n<command>{command}</command>"))
        said.append(message.text)
        paid.append(message.reward)
    return said, paid, state


@pytest.mark.parametrize(
    ("reply", "command"),
    [
        ("I look.\n<command>ls -l\npwd</command>", "ls -l\npwd"),
        ("<command>a</command><command>b</command>", "a"),
        ("Let me see:\n```bash\ncat a.txt\n```", "cat a.txt"),
        ("```sh\na\n```\nand\n```bash\nb\n```\n", "b"),
        ("```bash\ncat a.txt\n```\nThat shows the file.", None),
        ("```python\nprint(1)\n```", None),
        ("It is done. <action>done</action>", None),
        ("<action> Done </action> <command>ls</command>", None),
        ("<command>ls</command> <action>done</action>", "ls"),
        ("", None),
        ("<command>cat <<E", ""),
    ],
)
def test_commands_are_read_of_replies(reply, command):
    assert command_of(reply) == command


def test_the_state_stays_and_the_last_state_is_paid():
    said, paid, _ = play("cd d && export X=5 && ls", "echo $X; pwd | sed 's/.*home//'", "cd ..; sort -n a.txt > b.txt", "rm b.txt")
    assert said[0] == "<output>\nb.csv\n</output>\nexit code 0"
    assert said[1] == "<output>\n5\n/d\n</output>\nexit code 0"
    assert paid == [0.0, 0.0, 1.0, -1.0]


def test_errors_modes_times_and_links_are_kept():
    said, _, _ = play(
        "nosuch", "chmod 640 a.txt; ln -s a.txt l; touch -d 2020-02-03 a.txt; mkdir -p e/f; chmod 0 e/f",
        "stat -c '%a %y' a.txt | cut -c1-14; readlink l; stat -c %a e/f; echo \"$HOME\" | wc -c > n; false",
    )  # fmt: skip
    assert "nosuch: command not found" in said[0]
    assert said[0].endswith("exit code 127")
    assert said[2] == "<output>\n640 2020-02-03\na.txt\n0\n</output>\nexit code 1"


def test_tests_may_be_commands_and_setup_runs_first():
    tests = ["test -x run.sh", "./run.sh | grep -q '^hi$'"]
    _, paid, _ = play("chmod +x run.sh", tests=tests, setup=["printf '#!/bin/bash\\necho hi\\n' > run.sh", "cd d; export Y=1"])
    assert paid == [1.0]
    _, paid, _ = play("true", "chmod +x run.sh", tests=json.dumps(tests), setup="printf 'echo ho' > run.sh")
    assert paid == [0.0, 0.0]


def test_a_state_can_be_branched_and_saved():
    env = terminal()
    _, state = env.start(ask("?", files=json.dumps(FILES), tests=SORTED), 0)
    turns = [Turn("policy", np.zeros(1, np.int64), text=f"<command>{c}</command>") for c in ("sort -n a.txt > b.txt", "ls")]
    saved = json.loads(json.dumps(state))
    assert env(state, turns[0])[0].reward == 1.0
    assert "b.txt" not in env(state, turns[1])[0].text
    assert env(saved, turns[0])[0].reward == 1.0


def test_unfinished_commands_are_not_run_and_replies_without_one_end():
    env = terminal(tell="")
    message, state = env.start(ask("?", files=FILES, tests=SORTED), 0)
    assert message is None
    answer, after = env(state, Turn("policy", np.zeros(1, np.int64), text="<command>ls"))
    assert (answer.text, answer.reward, after) == (UNFINISHED, 0.0, state)
    assert env(state, Turn("policy", np.zeros(1, np.int64), text="<action>done</action>"))[0] is None


def test_the_verdict_of_an_episode():
    def episode(*rewards):
        turns = [Turn(None, np.zeros(1, np.int64), text=text) for text in ("Sort.", "You work in a shell.")]
        for reward in rewards:
            turns += [Turn("policy", np.zeros(1, np.int64)), Turn(None, np.zeros(1, np.int64), reward=reward)]
        return Trajectory(ask("?"), (*turns, Turn("policy", np.zeros(1, np.int64), text="done")), "end")

    rows = [episode(0.0, 1.0), episode(1.0, -1.0), episode(), episode(0.0, None, 1.0), episode(1.0, -1.0, 0.0, 1.0)]
    assert [s.total for s in final_state()([rows])[0]] == [1.0, 0.0, 0.0, None, 1.0]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"files": {"../a": "x"}, "tests": "assert 1"}, "a name within the folder"),
        ({"files": {"/a": "x"}, "tests": "assert 1"}, "a name within the folder"),
        ({"files": {"a": 1}, "tests": "assert 1"}, "a name within the folder"),
        ({"files": {"a": "x", "a/b": "y"}, "tests": "assert 1"}, "a file and a folder at once"),
        ({"files": {"a": "x" * (3 << 20)}, "tests": "assert 1"}, "have more than"),
        ({"files": {}, "tests": []}, "tests are a Python program"),
        ({"files": {}}, "terminal needs the columns 'tests'"),
        ({"files": {}, "tests": "assert 1", "setup": {"run": "true"}}, "setup is a command or a list of commands"),
        ({"files": {}, "tests": "assert 1", "setup": ["true", 3]}, "setup is a command or a list of commands"),
        ({"files": {}, "tests": "assert 1", "setup": 7}, "setup is a command or a list of commands"),
        ({"files": {}, "tests": "assert 1", "setup": "false"}, "setup command 'false' ended with exit code 1"),
    ],
)
def test_rows_that_cannot_be_are_refused(row, says):
    with pytest.raises(RewardlabError, match=says):
        terminal().start(ask("?", **row), 0)


@pytest.mark.slow
def test_the_time_of_a_command_is_limited_and_what_it_did_stays():
    ran = run(Session(packed(FILES)), "touch x; sleep 60", "import os\nassert os.path.exists('x')", seconds=1.0)
    assert (ran.code, ran.passed) == (124, True)
    assert "[killed after 1 s]" in ran.output


def test_files_from_a_row_are_equal_to_themselves():
    assert session_of(FILES) == session_of(json.dumps(FILES))
