"""What a process of `workers.py` runs: jobs arrive pickled, a line each, and are done one by one. A script, no module."""

from __future__ import annotations

import os
import pickle
import queue
import sys
import threading
from base64 import b64decode, b64encode
from typing import Any


def main() -> None:
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=read, args=(lines,), daemon=True).start()
    results = os.fdopen(os.dup(1), "wb", buffering=0)
    # the parent's stdout is a document
    os.dup2(2, 1)
    sys.path[:] = pickle.loads(b64decode(lines.get()))
    import torch

    from rewardlab.util import progress

    torch.set_num_threads(1)
    progress.console.quiet = True
    work = pickle.loads(b64decode(lines.get()))
    while True:
        results.write(b64encode(pickle.dumps(outcome(work, pickle.loads(b64decode(lines.get()))))) + b"\n")


def read(lines: queue.SimpleQueue[bytes]) -> None:
    """Read jobs in a thread, so that a parent that is gone ends a job of hours at once."""
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(0)


def outcome(work: Any, job: Any) -> tuple[bool, Any]:
    """(True, result) or (False, error)."""
    try:
        return True, work(job)
    except Exception as problem:
        return False, f"{type(problem).__name__}: {' '.join(str(problem).split())}"


if __name__ == "__main__":
    main()
