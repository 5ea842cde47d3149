"""The loop in a target's process: JSON lines in, a JSON line out per result."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, replace
from typing import Any

from rewardlab.processes.forks import CLOSED, Send, exchanged_lines, is_fork


def main() -> None:
    requests, send = exchanged_lines()
    setup = json.loads(requests.readline())
    try:
        # imported only now, so that what the target prints while it is imported goes to /dev/null
        from rewardlab.audit.loading import load

        target = load(setup["spec"])
    except BaseException as problem:
        send({"failed": _message(problem)})
        return
    send({"name": target.name, "reads_gold": target.reads_gold, "messages": target.messages, "concurrent": target.concurrent})
    if is_fork(send, setup["memory"]):
        answer_all(target, requests, send)
        os._exit(CLOSED)


def answer_all(target: Any, requests: Iterable[bytes], send: Send) -> None:
    """Serve requests until there are no more, and say with each answer what was asked of a served model so far."""

    def told(answer: dict[str, Any]) -> None:
        # not only at the end, since this process may be killed before it
        send({**answer, "spent": spent} if (spent := target.spent()) else answer)

    for line in requests:
        serve(target, json.loads(line), told)
        told({"done": True})


def serve(target: Any, request: dict[str, Any], send: Send) -> None:
    """Score the rows, as the request says: each by itself, each by itself in another thread, or all together."""
    from rewardlab.audit.target import Row

    rows = [Row(*row) for row in request["rows"]]
    how = request["how"]

    def one(i: int) -> dict[str, Any]:
        (result,) = scored(target, [rows[i]])
        return {"i": i, **asdict(result)}

    def each() -> None:
        for i in range(len(rows)):
            send(one(i))

    if how == "together":
        for i, result in enumerate(scored(target, rows)):
            send({"i": i, **asdict(result)})
    elif target.concurrent > 1:
        with ThreadPoolExecutor(target.concurrent) as pool:
            for done in as_completed([pool.submit(one, i) for i in range(len(rows))]):
                send(done.result())
    elif how == "thread":
        thread = threading.Thread(target=each)
        thread.start()
        thread.join()
    else:
        each()


def scored(target: Any, rows: list[Any]) -> list[Any]:
    """The results of the rows, and the seconds that each took; after an exception each of them has the error."""
    from rewardlab.audit.target import RewardResult

    began = time.perf_counter()
    try:
        results = target.score(rows)
    except BaseException as problem:
        results = [RewardResult("error", None, _message(problem))] * len(rows)
    seconds = (time.perf_counter() - began) / max(len(rows), 1)
    return [replace(result, seconds=seconds) for result in results]


def _message(problem: BaseException) -> str:
    from rewardlab.errors import RewardlabError

    # paths as the user would write them
    text = " ".join(str(problem).split()).replace(f"{os.getcwd()}/", "")[:400]
    return text if isinstance(problem, RewardlabError) else f"{type(problem).__name__}: {text}"


if __name__ == "__main__":
    main()
