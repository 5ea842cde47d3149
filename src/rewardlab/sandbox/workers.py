"""The sandbox's workers: processes that run programs in isolation, one for each core, shared by all threads."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path

from rewardlab.errors import RewardlabError
from rewardlab.processes.child import Call, kill, readable
from rewardlab.processes.supervisor import Supervisor, per_process

UNSAFE = "REWARDLAB_UNSAFE_SANDBOX"
START = """
import sys
sys.path.append(sys.argv[1])
from inside import preloaded
preloaded.load()
from inside import worker
sys.path.pop()
worker.main(int(sys.argv[2]), sys.argv[3] == "unsafe", sys.argv[4] == "commands")
"""
AHEAD = 2
"""Jobs that a worker holds: one that runs, and one to begin when that has ended."""
PATIENCE = 30.0
"""Seconds that a worker may take to start."""
TRIES = 2
"""Times that a job may bring its worker down before it is given up."""


class SandboxWorkers(Supervisor):
    """number: of programs at once.  unsafe: without isolation.  commands: whose programs may start others."""

    def __init__(self, number: int, unsafe: bool = False, commands: bool = False):
        super().__init__(number, lambda _: Isolated(unsafe, commands), ahead=AHEAD, tries=TRIES)


def workers(commands: bool = False) -> SandboxWorkers:
    """The workers of this process; a fork makes its own.  commands: those for shells, which are others."""
    return _workers(os.environ.get(UNSAFE, "") not in ("", "0"), commands)


@per_process
def _workers(unsafe: bool, commands: bool) -> SandboxWorkers:
    if unsafe:
        warnings.warn(
            f"{UNSAFE} is set: programs run WITHOUT isolation; they can read, change and send all that you can", stacklevel=4
        )
    return SandboxWorkers(len(os.sched_getaffinity(0)), unsafe, commands)


class Isolated:
    """A worker's process. Jobs go over a socket, with their open files; the answer is JSON."""

    def __init__(self, unsafe: bool, commands: bool = False):
        """Raises RewardlabError where this machine cannot isolate."""
        self.socket, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with child_end:
            options = [str(Path(__file__).parent), str(child_end.fileno())]
            options += ["unsafe" if unsafe else "", "commands" if commands else ""]
            # -S: no packages.  -P: nothing of the current folder.  One hash seed, so that verdicts repeat.
            self.process = subprocess.Popen(
                [sys.executable, "-S", "-P", "-B", "-c", START, *options], env={"PYTHONHASHSEED": "0"}, cwd="/", close_fds=True,
                pass_fds=[child_end.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        message = self.receive(time.monotonic() + PATIENCE)
        missing = json.loads(message).get("missing") if message else "its process did not start"
        if missing:
            self.end()
            raise RewardlabError(
                f"the sandbox refuses to run programs here: {missing}. To run them without isolation, where nothing can be lost or "
                f"stolen, set {UNSAFE}=1 or give --unsafe-sandbox"
            )

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, *calls: Call) -> None:
        with contextlib.suppress(OSError):
            for call in calls:
                socket.send_fds(self.socket, [call.message], call.files)

    def receive(self, due: float = 0.0) -> bytes | None:
        if not readable(self.fileno(), due):
            return None
        with contextlib.suppress(OSError):
            return self.socket.recv(1 << 16)
        return b""

    def end(self) -> int:
        self.socket.close()
        return kill(self.process)
