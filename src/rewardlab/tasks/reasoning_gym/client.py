"""Asking the package reasoning-gym (an optional extra), which runs in a process of its own: `reasoning_gym_server.py`.

The process is started when first asked, kept, and started anew after one that had to be ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError

SERVER = Path(__file__).with_name("server.py")
PATIENCE = 300.0
"""Seconds for what only the package's own code decides: to be imported, and to draw a problem."""

_processes: dict[int, subprocess.Popen[bytes]] = {}
"""By our own process id: after a fork, the child starts one of its own."""
_lock = threading.Lock()


class Ended(RewardlabError):
    """The process was still busy when the time was over, or died while it was."""


def ask(do: str, within: float = PATIENCE, **given: Any) -> Any:
    """What the server's function `do` returns, in so many seconds. Raises Ended, or RewardlabError for what it refuses."""
    with _lock:
        reply = _ask(_running(), do, within, given)
    if "missing" in reply:
        raise RewardlabError(f"this needs the package reasoning-gym: pip install 'rewardlab[gym-tasks]' ({reply['missing']})")
    if "error" in reply:
        raise RewardlabError(f"reasoning-gym: {reply['error']}")
    return reply["is"]


def _running() -> subprocess.Popen[bytes]:
    found = _processes.get(os.getpid())
    if found is None or found.poll() is not None:
        # one thread: models beside it need the cores.  A fixed hash seed: some generators follow the order of sets.
        fixed = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1") | {"PYTHONHASHSEED": "0"}
        # -P: the modules beside the script must not hide those that the package imports
        command = [sys.executable, "-P", str(SERVER)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        found = subprocess.Popen(command, env=os.environ | fixed, start_new_session=True, **pipes)  # type: ignore[call-overload]
        _processes[os.getpid()] = found
        # imported now, so that no answer's time is spent on it
        _ask(found, "generators", PATIENCE, {})
    return found


def _ask(process: subprocess.Popen[bytes], do: str, within: float, given: dict[str, Any]) -> dict[str, Any]:
    assert process.stdin
    assert process.stdout
    done = False
    try:
        process.stdin.write(json.dumps({"do": do, "with": given}).encode() + b"\n")
        process.stdin.flush()
        line = _line(process.stdout.fileno(), time.monotonic() + within)
        done = True
        return json.loads(line)
    except TimeoutError:
        raise Ended(f"took more than {within:g} seconds") from None
    except (BrokenPipeError, EOFError):
        raise Ended("brought the process of reasoning-gym down") from None
    finally:
        # a reply that comes after all must not be taken for the next one's
        if not done:
            _end(process)


def _line(pipe: int, end: float) -> bytes:
    """What is read up to a newline; one request is out at a time, so nothing follows it."""
    read = b""
    while not read.endswith(b"\n"):
        if not select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
            raise TimeoutError
        if not (more := os.read(pipe, 1 << 16)):
            raise EOFError
        read += more
    return read


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            pipe.close()  # type: ignore[union-attr]
    process.wait()
