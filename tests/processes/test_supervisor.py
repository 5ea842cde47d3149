"""Child processes under supervision: death, replacement, and the processes of proof, which end with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from rewardlab.processes.child import Call, Child
from rewardlab.processes.pool import Done, Workers
from rewardlab.processes.supervisor import Lost, Supervisor

ANSWER = """
import os, sys
for line in sys.stdin:
    if line == "die\\n":
        os._exit(7)
    print(os.getpid() if line == "pid\\n" else line, flush=True)
"""


def child(number):
    return Child("-c", ANSWER)


def answers(supervisor, *messages, seconds=10.0):
    found = supervisor.map((Call(message, seconds) for message in messages), len(messages))
    return [answer for _, answer in sorted(found)]


def test_a_call_that_kills_its_process_is_lost_after_its_tries_and_no_other_one_is():
    for tries in (1, 2):
        supervisor = Supervisor(1, child, ahead=4, tries=tries)
        assert answers(supervisor, b"a", b"die", b"b") == [b"a", Lost(7), b"b"]
        supervisor.close()


def test_a_call_that_brings_down_a_process_once_is_made_again(tmp_path):
    mark = str(tmp_path / "once")
    once = f"import os\nif not os.path.exists({mark!r}):\n    open({mark!r}, 'w')\n    os._exit(1)\n"
    supervisor = Supervisor(1, lambda _: Child("-c", once + ANSWER), tries=2)
    assert answers(supervisor, b"a", b"b") == [b"a", b"b"]
    supervisor.close()


def test_a_process_that_died_while_idle_is_replaced_and_no_call_is_blamed():
    pool = Workers("os:getpid", processes=1)
    (first,) = pool.map([()])
    os.kill(first.value, signal.SIGKILL)
    time.sleep(0.2)
    (second,) = pool.map([()])
    assert isinstance(second, Done)
    assert second.value != first.value
    pool.close()


def test_a_pool_that_was_closed_starts_anew():
    pool = Workers("builtins:abs", processes=2)
    assert pool.map([(-1,), (-2,)]) == [Done(1), Done(2)]
    pool.close()
    assert pool.map([(-3,)]) == [Done(3)]
    pool.close()


def test_a_limit_can_be_given_for_some_calls():
    pool = Workers("time:sleep", processes=1, seconds=60.0)
    (result,) = pool.map([(30,)], seconds=0.2)
    assert result.why == "took over 0.2 s"
    pool.close()


def test_what_a_process_started_is_killed_with_it(tmp_path):
    pid = tmp_path / "pid"
    start = "import subprocess, time\nchild = subprocess.Popen(['sleep', '100'])\n"
    code = f"{start}open({str(pid)!r}, 'w').write(str(child.pid))\nprint('up', flush=True)\ntime.sleep(99)"
    process = Child("-c", code)
    assert process.receive(time.monotonic() + 20) == b"up"
    assert process.end() == -signal.SIGKILL
    assert gone(int(pid.read_text()))


def test_a_run_of_proof_ends_with_its_parent():
    code = (
        "import os, time\nfrom rewardlab.checks.workers import run_all\n"
        "jobs = run_all(time.sleep, [0.0, 100.0], processes=1)\nnext(jobs)\n"
        "print(open(f'/proc/self/task/{os.getpid()}/children').read(), flush=True)\nos._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    (pid,) = map(int, done.stdout.split())
    assert gone(pid)


def gone(pid):
    """Whether a process ends within some seconds."""
    stat = Path(f"/proc/{pid}/stat")
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False
