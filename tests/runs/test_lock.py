"""One process at a time writes into a run folder, and a process that is killed leaves nothing to clean up."""

import errno
import fcntl
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress

import pytest

from rewardlab import RewardlabError
from rewardlab.runs import lock
from rewardlab.runs.folder import new_run_folder
from rewardlab.runs.lock import locked

HOLD = """import sys, time, os
from pathlib import Path
from rewardlab.runs.lock import locked
with locked(Path(sys.argv[1])):
    if "child" in sys.argv and os.fork() == 0:
        time.sleep(60)
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def hold(tmp_path):
    """Start a process that holds the lock of tmp_path/run; with "child", it has forked another one since."""
    started = []

    def start(*words):
        command = [sys.executable, "-c", HOLD, str(tmp_path / "run"), *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_a_second_process_is_refused_by_name_until_the_first_is_killed(hold, tmp_path):
    first = hold()
    who, what = f"process {first.pid} on {socket.gethostname()}", f"stop it with kill {first.pid}, which saves it first, or so"
    with (
        pytest.raises(RewardlabError, match=f"run is in use: {who} trains there since 20.*{what}"),
        locked(tmp_path / "run", ", or so"),
    ):
        raise AssertionError("never reached")
    first.kill()
    first.wait()
    with locked(tmp_path / "run"):
        assert json.loads((tmp_path / "run" / ".lock").read_text())["pid"] == os.getpid()
    assert list((tmp_path / "run").iterdir()) == []


def test_a_process_that_was_forked_meanwhile_does_not_keep_the_lock(hold, tmp_path):
    hold("child").kill()
    for _ in range(1000):
        try:
            with locked(tmp_path / "run"):
                return
        except RewardlabError:
            # until the kernel has closed the files of the killed process
            threading.Event().wait(0.01)
    raise AssertionError("the child keeps the lock")


def test_a_forked_process_that_comes_by_the_end_leaves_the_lock_to_its_parent(tmp_path):
    with ExitStack() as stack:
        stack.enter_context(locked(tmp_path))
        if (child := os.fork()) == 0:
            stack.close()
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(RewardlabError, match="this process trains there already"), locked(tmp_path):
            raise AssertionError("never reached")


def test_a_second_call_in_the_same_process_is_refused_in_any_thread(tmp_path):
    said = []

    def second():
        try:
            with locked(tmp_path):
                said.append("got it")
        except RewardlabError as e:
            said.append(str(e))

    with locked(tmp_path):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert said[0].startswith(f"{tmp_path} is in use: this process trains there already, since 20")
    second()
    assert said[1] == "got it"


def test_a_lock_whose_file_was_just_removed_is_not_taken_for_the_folders(tmp_path, monkeypatch):
    """Between opening the file and locking it, its holder removes it, and a third process has a new one."""
    real, third = fcntl.flock, ExitStack()

    def late(descriptor, operation):
        monkeypatch.setattr(fcntl, "flock", real)
        (tmp_path / ".lock").unlink()
        third.enter_context(locked(tmp_path))
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with third, pytest.raises(RewardlabError, match="is in use"), locked(tmp_path):
        raise AssertionError("never reached")


def without_locks(descriptor, operation):
    raise OSError(errno.ENOLCK, "No locks available")


@pytest.mark.parametrize(("pid", "host", "free"), [("dead", None, True), (1, None, False), ("dead", "elsewhere", False)])
def test_where_the_file_system_has_no_locks_the_holders_name_decides(pid, host, free, tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", without_locks)
    gone = subprocess.Popen(["true"])
    gone.wait()
    holder = {"pid": gone.pid if pid == "dead" else pid, "host": host or socket.gethostname(), "since": "yesterday"}
    (tmp_path / ".lock").write_text(json.dumps(holder))
    if free:
        with locked(tmp_path), pytest.raises(RewardlabError, match=r"this process .*; if that process is gone, delete .*\.lock"):  # noqa: SIM117
            with locked(tmp_path):
                raise AssertionError("never reached")
    else:
        with (
            pytest.raises(RewardlabError, match=r"trains there since yesterday.*if that process is gone, delete"),
            locked(tmp_path),
        ):
            raise AssertionError("never reached")


def choose(home, out, ready):
    os.chdir(home)
    ready.wait()
    for _ in range(20):
        stack = ExitStack()
        folder = stack.enter_context(new_run_folder(None, "grpo"))
        out.put(folder.name)
        (folder / "config.json").write_text("{}")
        stack.close()


def test_processes_that_choose_a_folder_at_the_same_time_get_different_ones(tmp_path):
    context = multiprocessing.get_context("fork")
    out, ready = context.Queue(), context.Barrier(2)
    both = [context.Process(target=choose, args=(tmp_path, out, ready)) for _ in range(2)]
    for process in both:
        process.start()
    names = [out.get(timeout=30) for _ in range(40)]
    for process in both:
        process.join()
    assert sorted(names) == sorted(["grpo", *(f"grpo-{i}" for i in range(2, 41))])
    assert len(lock._held) == 0
