"""The process of `pool.py`: calls arrive as lines of JSON, and are answered one by one. A script, not a module."""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
from typing import Any


def main(function: str, memory: str, core: str) -> None:
    if core:
        os.sched_setaffinity(0, {int(core)})
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    # answers have a descriptor of their own: what libraries print to stdout must not be taken for one
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    # a verifier may print a long integer; Python's limit of 4,300 digits would raise
    sys.set_int_max_str_digits(20_000)
    module, _, name = function.partition(":")
    try:
        call = getattr(importlib.import_module(module), name)
    except Exception as problem:
        answers.write(f"{type(problem).__name__}: {problem}".replace("\n", " ").encode() + b"\n")
        return
    resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    # a crash must not write a core file of gigabytes
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers.write(b"ready\n")
    for line in sys.stdin.buffer:
        seconds, *arguments = json.loads(line)
        # the caller ends a call that takes too long; this alarm is for a caller that is gone
        signal.setitimer(signal.ITIMER_REAL, 2 * seconds + 10)
        answers.write(json.dumps(answer(call, arguments)).encode() + b"\n")
        signal.setitimer(signal.ITIMER_REAL, 0)


def answer(call: Any, arguments: list[Any]) -> dict[str, Any]:
    try:
        return {"is": call(*arguments)}
    except (Exception, RecursionError, MemoryError) as problem:
        return {"error": f"{type(problem).__name__}: {' '.join(str(problem).split())[:300]}"}


if __name__ == "__main__":
    main(*sys.argv[1:])
