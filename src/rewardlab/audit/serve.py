"""What the process of a target runs: requests arrive as lines of JSON, and every reward goes back as a line of its own."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, replace
from typing import Any

PR_SET_PDEATHSIG = 1
ENDED = 83
"""Exit code of a child that has nothing more to read."""
Say = Callable[[dict[str, Any]], None]


def main() -> None:
    asked = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    # what the target prints must not be taken for an answer, and what it reads must not be a request
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    lock = threading.Lock()

    def say(what: dict[str, Any]) -> None:
        # whoever wrote before may have died in the middle of a line
        line = b"\n" + json.dumps(what).encode() + b"\n"
        with lock:
            answers.write(line)

    die_with_parent()
    first = json.loads(asked.readline())
    try:
        from .target import load

        target = load(first["spec"])
    except BaseException as problem:
        say({"failed": _said(problem)})
        return
    say({"name": target.name, "reads_gold": target.reads_gold, "speaks": target.speaks, "concurrent": target.concurrent})
    while (child := fork_if_alone()) != 0:
        say({"child": child})
        if child is None:
            break
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == ENDED:
            return
    resource.setrlimit(resource.RLIMIT_DATA, (first["memory"], first["memory"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in asked:
        serve(target, json.loads(line), say)
        say({"done": True})
    os._exit(ENDED)


def fork_if_alone() -> int | None:
    """Fork, so that a child that hangs or dies can be replaced without loading the target again. 0 in the child.

    None, and no fork, where the target has begun threads: they would not be there in the child.
    """
    if len(os.listdir("/proc/self/task")) > 1:
        return None
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        die_with_parent()
    return child


def die_with_parent() -> None:
    """Nobody else would end a target that hangs once its auditor is gone."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def serve(target: Any, request: dict[str, Any], say: Say) -> None:
    """Score the rows as asked: each by itself, each in another thread, or all together."""
    from .target import Row

    rows = [Row(*row) for row in request["rows"]]
    messages, how = request["messages"], request["how"]

    def one(i: int) -> dict[str, Any]:
        (found,) = scored(target, [rows[i]], messages)
        return {"i": i, **asdict(found)}

    def each() -> None:
        for i in range(len(rows)):
            say(one(i))

    if how == "together":
        for i, found in enumerate(scored(target, rows, messages)):
            say({"i": i, **asdict(found)})
    elif target.concurrent > 1:
        with ThreadPoolExecutor(target.concurrent) as pool:
            for done in as_completed([pool.submit(one, i) for i in range(len(rows))]):
                say(done.result())
    elif how == "thread":
        other = threading.Thread(target=each)
        other.start()
        other.join()
    else:
        each()


def scored(target: Any, rows: list[Any], messages: bool) -> list[Any]:
    """What the target pays the rows, and the seconds that each took; an exception is what each of them gets."""
    from .target import Paid

    began = time.perf_counter()
    try:
        found = target.score(rows, messages)
    except BaseException as problem:
        found = [Paid("error", None, _said(problem))] * len(rows)
    seconds = (time.perf_counter() - began) / max(len(rows), 1)
    return [replace(one, seconds=seconds) for one in found]


def _said(problem: BaseException) -> str:
    from rewardlab.errors import RewardlabError

    # paths as the user would write them
    text = " ".join(str(problem).split()).replace(f"{os.getcwd()}/", "")[:400]
    return text if isinstance(problem, RewardlabError) else f"{type(problem).__name__}: {text}"


if __name__ == "__main__":
    main()
