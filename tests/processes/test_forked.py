"""Calls in a fork of a process: what hangs or dies is replaced without loading again, and nothing is answered twice."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from rewardlab.errors import RewardlabError
from rewardlab.processes.child import Call
from rewardlab.processes.forked import Forked
from rewardlab.processes.pool import Done, Failed

MODULE = """
import os, threading, time

def load(threads=0):
    for _ in range(threads):
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    loaded_by = os.getpid()
    def call(value):
        print("a line that is not an answer", flush=True)
        if value == "hang":
            time.sleep(3600)
        if value == "die":
            os._exit(1)
        if value == "eat":
            return len(bytearray(12 << 30))
        if value == "raise":
            raise ValueError("of course")
        if value == "exit":
            raise SystemExit(3)
        if value == "set":
            return {1}
        return [value, loaded_by]
    call.about = {"threads": threads}
    return call

def broken():
    raise RuntimeError("no")
"""


@pytest.fixture(scope="module", autouse=True)
def module(tmp_path_factory):
    folder = tmp_path_factory.mktemp("module")
    (folder / "called_in_forks.py").write_text(MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{folder}:{os.environ.get('PYTHONPATH', '')}")
        yield


@pytest.fixture
def process():
    made = Forked("called_in_forks:load", {}, seconds=0.5)
    made.start()
    yield made
    made.stop()


def calls(*values) -> list[bytes]:
    return [json.dumps(value).encode() for value in values]


def wait_until(condition) -> None:
    due = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < due
        time.sleep(0.01)


def values(results) -> list:
    return [x.value[0] if isinstance(x, Done) else x for x in results]


def test_values_come_in_order_and_errors_say_what_they_are(process):
    results = process.ask(calls(1, "raise", "exit", "set", {"a": [None]}))
    assert values(results) == [
        1, Failed("error", "ValueError: of course"), Failed("error", "SystemExit: 3"),
        Failed("error", "TypeError: Object of type set is not JSON serializable"), {"a": [None]},
    ]  # fmt: skip


def test_what_eats_memory_is_an_error_and_no_more(process):
    eaten, after = process.ask(calls("eat", 1))
    assert eaten == Failed("error", "MemoryError")
    assert after.value[0] == 1
    assert process.replaced == 0


@pytest.mark.parametrize(("word", "kind"), [("hang", "timeout"), ("die", "crash")])
def test_what_hangs_or_dies_fails_alone_and_nothing_is_loaded_again(process, word, kind):
    (before,) = process.ask(calls(0))
    first, second, third = process.ask(calls(1, word, 2))
    assert (first.value[0], second.kind, third) == (1, kind, None)
    (after,) = process.ask(calls(2))
    assert after == Done([2, before.value[1]])
    assert process.replaced == 1


def test_a_fork_that_dies_while_it_is_idle_costs_no_call(process):
    for i in range(3):
        os.kill(process.fork, signal.SIGKILL)
        wait_until(lambda seen=i: process.is_there() and process.replaced > seen)
        assert values(process.ask(calls(i))) == [i]
    assert process.replaced == 3


def test_a_batch_that_is_left_to_the_next_fork_is_answered_once(process):
    """The fork dies with the calls still in its pipe."""
    os.kill(process.fork, signal.SIGSTOP)
    fork = process.fork
    process._batch += 1
    process.child.send(Call(b"\n[%d,[7,8]]" % process._batch, 1.0))
    os.kill(fork, signal.SIGKILL)
    wait_until(lambda: process.is_there() and process.replaced)
    assert values(process.ask(calls(9))) == [9]
    assert values(process.ask(calls(10, 11))) == [10, 11]


def test_half_a_line_that_a_fork_leaves_behind_is_skipped(process):
    process.child.send(Call(b'[1,[{"a": "', 1.0))
    assert values(process.ask(calls("whole"))) == ["whole"]


def test_the_process_that_has_loaded_may_die_too(process):
    process.child.process.kill()
    # its fork dies with it, and both ends of the pipe are closed
    wait_until(lambda: not process.is_there())
    assert process.ask(calls(1)) == [None]
    assert not process.is_there()
    assert process.start() == {"threads": 0}
    assert values(process.ask(calls(1))) == [1]


@pytest.mark.slow
def test_with_threads_the_whole_process_is_replaced():
    process = Forked("called_in_forks:load", {"threads": 1}, seconds=0.3)
    assert process.start() == {"threads": 1}
    assert process.fork is None
    (late,) = process.ask(calls("hang"))
    assert late.kind == "timeout"
    assert not process.is_there()
    process.start()
    assert values(process.ask(calls(1))) == [1]
    process.stop()


def test_what_cannot_be_loaded_says_why():
    with pytest.raises(RewardlabError, match="RuntimeError: no"):
        Forked("called_in_forks:broken", {}, seconds=1.0).start()


def test_threads_that_loading_a_model_has_begun_are_ended_before_a_fork():
    script = (
        "import os, threading, time, tqdm\nfrom rewardlab.processes.forks import fork_if_alone\n"
        "list(tqdm.tqdm(range(3), file=open(os.devnull, 'w')))\nthreading.Thread(target=time.sleep, args=(0.05,)).start()\n"
        "before, child = threading.active_count(), fork_if_alone()\n"
        "os._exit(0) if child == 0 else print(before, child is not None)"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "3 True\n"
