"""The process of `workers.py`: pickled jobs, one per line, done one by one.

It runs as a script and is never imported. The first line holds sys.path and how many threads it may use, each further line a
function and a job for it.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import queue
import sys
import threading
from base64 import b64decode, b64encode
from contextlib import suppress
from typing import Any


def main() -> None:
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=read, args=(lines,), daemon=True).start()
    # a copy of stdout, kept before descriptor 1 is redirected
    results = os.fdopen(os.dup(1), "wb", buffering=0)
    # stdout carries results alone: what a run prints goes to stderr
    os.dup2(2, 1)
    # bars that libraries draw for every file they read would bury the one that tells how far all runs are
    os.environ.setdefault("TQDM_DISABLE", "1")
    sys.path[:], threads = pickle.loads(b64decode(lines.get()))
    # only now, since sys.path decides where it is imported from
    import torch

    from rewardlab.util import progress

    torch.set_num_threads(threads)
    progress.console.quiet = True
    while True:
        # base64 has no line breaks, so a message is one line
        results.write(b64encode(pickle.dumps(outcome(lines.get()))) + b"\n")
        give_memory_back()


def read(lines: queue.SimpleQueue[bytes]) -> None:
    """Read jobs in a thread. When the parent is gone, stdin ends, and so does this process at once, even within a long job."""
    for line in sys.stdin.buffer:
        lines.put(line)
    # sys.exit would only end this thread
    os._exit(0)


def outcome(line: bytes) -> tuple[bool, Any]:
    """(True, result) or (False, error)."""
    work, job = pickle.loads(b64decode(line))
    try:
        return True, work(job)
    except Exception as problem:
        return False, f"{type(problem).__name__}: {' '.join(str(problem).split())}"


def give_memory_back() -> None:
    """Return to the system what the last job has freed: glibc keeps it in pieces, so that a worker would grow with every run."""
    # another C library has no such function
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


if __name__ == "__main__":
    main()
