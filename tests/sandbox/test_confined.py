"""A program of ours that reads hostile data sees, reaches and keeps nothing, and ends with its caller."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rewardlab.errors import RewardlabError
from rewardlab.processes.child import readable
from rewardlab.sandbox.confined import Confined

LIMITS = {"DATA": 1 << 30, "NOFILE": 64, "folder": 1 << 20}
TRIES = """
import json, os, socket
tries = json.loads({tries!r})
def tried(text):
    try: return repr(eval(text))
    except BaseException as e: return type(e).__name__
os.write(4, json.dumps([tried(x) for x in tries]).encode())
while True: os.read(3, 1) or os._exit(0)
"""


def confined(*tries: str, code: str = TRIES) -> Confined:
    python = os.path.realpath(sys.executable)
    folders = [os.path.dirname(python), *(os.path.join(p, "lib") for p in (sys.base_prefix, sys.base_exec_prefix))]
    try:
        return Confined([python, "-S", "-c", code.format(tries=json.dumps(tries))], folders, LIMITS)
    except RewardlabError as problem:
        pytest.skip(str(problem))


def said(program: Confined) -> list[str]:
    assert readable(program.out, time.monotonic() + 20)
    return json.loads(os.read(program.out, 1 << 16))


def test_what_it_sees_and_cannot_do(tmp_path, monkeypatch):
    monkeypatch.setenv("CANARY", "secret")
    door = socket.create_server(("127.0.0.1", 0))
    secret = tmp_path / "secret"
    secret.write_text("canary")
    program = confined(
        "os.getuid()", "sorted(set(os.listdir('/')) & {'etc', 'home', 'var', 'sys', 'boot', 'opt', 'srv'})", "dict(os.environ)",
        f"open({str(secret)!r}).read()", f"socket.create_connection(('127.0.0.1', {door.getsockname()[1]}), 1)",
        "open('/usr/lib/x', 'w')", "[x for x in os.listdir('/proc') if x.isdigit() and int(x) > 2]", "os.listdir('/proc/1/root')",
        "[l.split()[1] for l in open('/proc/self/status') if l.startswith(('CapEff', 'CapBnd', 'NoNewPrivs'))]",
        "open('/tmp/x', 'wb').write(bytes(1 << 22))", "os.setuid(0)", "bytearray(1 << 31)",
    )  # fmt: skip
    try:
        uid, root, environment, file, connection, library, processes, first, rights, full, ids, memory = said(program)
    finally:
        program.end()
        door.close()
    assert uid != "0"
    assert root == "[]"
    assert "secret" not in environment
    assert "CANARY" not in environment
    assert file == "FileNotFoundError"
    assert connection == "OSError"
    assert library == "OSError"
    assert processes == "[]"
    assert first == "PermissionError"
    assert rights in ("['0000000000000000', '0000000000000000', '1']", "['0000000000000000', '000001ffffffffff', '1']")
    assert (full, ids, memory) == ("OSError", "PermissionError", "MemoryError")


def test_what_it_started_ends_with_it():
    program = confined("os.fork() or __import__('time').sleep(600)", "0")
    deadline, started = time.monotonic() + 20, set[int]()
    while len(started) < 4 and time.monotonic() < deadline:
        started = _below(program.process.pid)
    assert len(started) >= 3
    program.end()
    deadline = time.monotonic() + 10
    while any(_alive(p) for p in started) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(_alive(p) for p in started)


def test_it_ends_with_its_caller(tmp_path):
    script = tmp_path / "caller.py"
    script.write_text(
        "import os, sys\nsys.path[:0] = %r\nfrom test_confined import confined\nprogram = confined('0')\n"
        "print(program.process.pid, flush=True)\nos.read(0, 1)\nos._exit(1)\n" % [str(Path(__file__).parent)]
    )
    caller = subprocess.Popen([sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert caller.stdout
    if not (line := caller.stdout.readline()):
        pytest.skip("nothing can be isolated here")
    started = {int(line)} | _below(int(line))
    caller.kill()
    caller.wait()
    deadline = time.monotonic() + 10
    while any(_alive(p) for p in started) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(_alive(p) for p in started)


def test_what_cannot_be_started_is_said():
    with pytest.raises(RewardlabError, match=r"does not run here|cannot"):
        Confined(["/nowhere/program"], [], LIMITS)


def _below(process: int) -> set[int]:
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {process}
    for _ in parents:
        found |= {child for child, parent in parents.items() if parent in found}
    return found


def _alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
