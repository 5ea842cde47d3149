"""A confined program of ours that reads model output: started here, driven over two pipes, and ended."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rewardlab.errors import RewardlabError
from rewardlab.processes.child import kill, readable

START = """
import sys
sys.path.append(sys.argv[1])
from inside import confined
confined.run()
"""
PATIENCE = 30.0
"""Seconds in which it must be isolated."""


class Confined:
    """command: an absolute path, and arguments.  folders: that it may read.  limits: see `inside.confined`.

    It reads from descriptor 3 what is written to `into`, and what it writes to descriptor 4 can be read from `out`. Raises
    RewardlabError where this machine cannot isolate it: there is no way to run it without.
    """

    def __init__(self, command: Sequence[str], folders: Sequence[str], limits: Mapping[str, float]):
        theirs, self.into = os.pipe()
        self.out, theirs_too = os.pipe()
        said, says = os.pipe()
        pipes = [theirs, theirs_too, says]
        asked = {"command": list(command), "folders": list(folders), "limits": dict(limits), "pipes": pipes}
        # -S: no packages.  -P: nothing of the current folder
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-P", "-B", "-c", START, str(Path(__file__).parent), json.dumps(asked)], env={}, cwd="/",
            pass_fds=pipes, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        for pipe in pipes:
            os.close(pipe)
        missing = _whole(said)
        if missing != ".":
            self.end()
            missing = missing.removeprefix(".") or "its process ended before it began"
            raise RewardlabError(f"{Path(command[0]).name} does not run here, since it cannot be isolated: {missing}")
        os.set_blocking(self.into, False)

    def end(self) -> None:
        """Kill it with all that it started."""
        for pipe in (self.into, self.out):
            with contextlib.suppress(OSError):
                os.close(pipe)
        self.into = self.out = -1
        kill(self.process)


def _whole(pipe: int) -> str:
    """All that comes until the other end is closed."""
    due, text = time.monotonic() + PATIENCE, b""
    while readable(pipe, due):
        if not (chunk := os.read(pipe, 1 << 12)):
            os.close(pipe)
            return text.decode(errors="replace")
        text += chunk
    os.close(pipe)
    return f"its process did not start within {PATIENCE:g} s"
