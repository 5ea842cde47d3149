"""`rewardlab serve` under load on this machine: are all answers there, once, and right, and how late are they?

python benchmarks/_serve_load.py --rate 40 --seconds 20 --out results/serve/load.json

Every row's reward is computed here too, by the same formula, which pays each row another number: an answer that is missing, that is
late beyond its limit, or another row's, is seen, and the server's own count of rows shows one that was made twice. Requests leave
at the rate that is claimed whether or not the server keeps up, so that waiting counts (no coordinated omission). Phases: calm;
worker processes killed at random (SIGKILL, one at a time); how many rows a second are scored where clients wait for their answers;
hostile bodies in turn while rows go on; programs that hang or eat memory. All on loopback; about two minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

ROWS = 8
"""Rows of a request."""
SLOWEST = 20.0
"""Seconds after which an answer counts as lost."""
MINE = """
import hashlib, time

def unique(prompt, completion):
    if "hang" in completion:
        time.sleep(3600)
    return int(hashlib.blake2b((prompt + completion).encode(), digest_size=6).hexdigest(), 16) / 2**48
"""
REPLIES = (
    "so the sum is {x}\n#### {x}", "\\boxed{{{x}}}", "The answer is {x}.", "the answer is \\frac{{{y}}}{{2}}",
    "I think {x}, or {z}", "no idea", "Answer: {z}",
)  # fmt: skip


def row(i: int) -> dict[str, Any]:
    x = i % 997
    reply = REPLIES[i % len(REPLIES)].format(x=x, y=2 * x, z=x + 1)
    return {"prompt": f"problem {i}", "response": reply, "answer": str(x), "meta": {}}


def expected(formula: str, count: int) -> list[float]:
    from rewardlab.servers.scoring import Scorer

    scorer = Scorer([formula])
    return [scorer([row(i)])[0]["score"] for i in range(count)]


# ---- the server ------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def server(*words: str) -> AsyncIterator[tuple[str, int]]:
    """Its address and process; at the end it must stop by itself, with exit code 0."""
    command = [sys.executable, "-m", "rewardlab", "serve", *words, "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr
    said = await asyncio.to_thread(process.stderr.readline)
    found = re.search(r"at (http://\S+) with", said)
    if not found:
        raise SystemExit(f"the server did not start: {said}{process.stderr.read()}")
    try:
        yield found[1], process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(process.wait, 60)
    if code:
        raise SystemExit(f"the server ended with code {code}")


def forks(pid: int) -> list[int]:
    """The processes that score: children of those that have loaded the reward, which are children of the server."""
    return [fork for loaded in children(pid) for fork in children(loaded)]


def children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(c) for task in Path(f"/proc/{pid}/task").iterdir() for c in (task / "children").read_text().split()]
    return []


async def killing(pid: int, pause: float, stop: asyncio.Event) -> int:
    """Kill one of the processes that score, again and again; how many were killed."""
    rng, killed = random.Random(0), 0
    while not stop.is_set():
        await asyncio.sleep(pause)
        with contextlib.suppress(ProcessLookupError, IndexError):
            os.kill(rng.choice(forks(pid)), signal.SIGKILL)
            killed += 1
    return killed


async def counted(http: Any, url: str) -> dict[str, float]:
    text = (await http.get(f"{url}/metrics")).text
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


# ---- phases ----------------------------------------------------------------------------------------------------------


async def ask(http: Any, url: str, first: int, right: list[float], found: Counter[str]) -> None:
    """One request of ROWS rows. Busy servers are asked again when they say."""
    rows = [i % len(right) for i in range(first, first + ROWS)]
    body = {"rows": [row(i) for i in rows]}
    try:
        async with asyncio.timeout(SLOWEST):
            while (answer := await http.post(f"{url}/score", json=body)).status_code == 429:
                found["asked again"] += 1
                await asyncio.sleep(float(answer.headers["retry-after"]))
    except Exception as problem:
        found[f"lost: {type(problem).__name__}"] += ROWS
        return
    if answer.status_code != 200:
        found[f"lost: status {answer.status_code}"] += ROWS
        return
    scores = [s["score"] for s in answer.json()["scores"]]
    for i, score in zip(rows, scores, strict=True):
        found["no verdict" if score is None else "right" if score == right[i] else "WRONG"] += 1


async def at_rate(http: Any, url: str, rate: float, seconds: float, right: list[float]) -> dict[str, Any]:
    """Requests at a fixed rate; seconds of each from when it was due."""
    before, found, late = await counted(http, url), Counter[str](), list[float]()
    began, tasks = time.perf_counter(), set()

    async def one(i: int) -> None:
        await ask(http, url, i * ROWS, right, found)
        late.append(time.perf_counter() - (began + i / rate))

    for i in range(round(rate * seconds)):
        await asyncio.sleep(max(0.0, began + i / rate - time.perf_counter()))
        tasks.add(asyncio.create_task(one(i)))
    await asyncio.gather(*tasks)
    wall = time.perf_counter() - began
    after = await counted(http, url)
    return {
        "requests_per_second": rate, "rows_per_second": rate * ROWS, "seconds": round(wall, 1), "requests": len(late),
        "rows": len(late) * ROWS, "answers": dict(found), **percentiles(late),
        "rows_counted_by_the_server": round(rows_of(after) - rows_of(before)),
    }  # fmt: skip


def rows_of(numbers: dict[str, float]) -> float:
    return sum(value for name, value in numbers.items() if name.startswith("rewardlab_rows_total"))


def percentiles(late: list[float]) -> dict[str, float]:
    late = sorted(late)
    return {f"p{p}_ms": round(1000 * late[min(len(late) - 1, len(late) * p // 100)], 1) for p in (50, 90, 99)} | {
        "most_ms": round(1000 * late[-1], 1)
    }


async def closed(http: Any, url: str, clients: int, seconds: float, right: list[float]) -> dict[str, Any]:
    """Clients that each wait for an answer before they ask again."""
    found, end, number = Counter[str](), time.perf_counter() + seconds, iter(range(10**9))

    async def client() -> None:
        while time.perf_counter() < end:
            await ask(http, url, next(number) * ROWS, right, found)

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    wall = time.perf_counter() - began
    return {"clients": clients, "rows_per_second": round(found["right"] / wall), "answers": dict(found)}


def hostile() -> dict[str, bytes]:
    def answer(text: bytes) -> bytes:
        return b'{"response": "a", "answer": ' + text

    return {
        "not JSON": b"score me",
        "empty": b"",
        "not UTF-8": b'{"response": "\xff"}',
        "NaN": answer(b"NaN}"),
        "1e999": answer(b"1e999}"),
        "deep": answer(b"[" * 1_000_000),
        "deep and closed": answer(b"[" * 1_000_000 + b"]" * 1_000_000 + b"}"),
        "half a surrogate pair": b'{"response": "\\ud800"}',
        "a number of many digits": answer(b"9" * 1_000_000 + b"}"),
        "response of another type": b'{"response": 5}',
        "a list": b"[1, 2]",
        "no response": b"{}",
        "an unknown field": b'{"response": "a", "x": 1}',
        "2,000 rows": json.dumps({"rows": [{"response": "a"}] * 2000}).encode(),
        "100 MB": b'{"response": "' + b"a" * 10**8 + b'"}',
    }


async def under_attack(http: Any, url: str, right: list[float]) -> dict[str, Any]:
    """The status of each hostile request, while rows are scored at a low rate."""
    steady = asyncio.create_task(at_rate(http, url, 10.0, 12.0, right))
    told: dict[str, Any] = {}
    for name, body in hostile().items():
        answer = await http.post(f"{url}/score", content=body, headers={"Content-Type": "application/json"})
        told[name] = answer.status_code
    told["text/plain"] = (await http.post(f"{url}/score", content=b"{}", headers={"Content-Type": "text/plain"})).status_code
    told["slow body"] = await slow(url)
    hang = {"prompt": "p", "response": "hang", "label": None}
    told["a reply that hangs the reward"] = (await http.post(f"{url}/slime", json=hang)).status_code
    answer = await http.post(f"{url}/score", json={"rows": [{"response": "hang"}, row(0)]})
    hung, beside = answer.json()["scores"]
    told["beside a reply that hangs"] = {"hung": [hung["score"], hung["failed"]], "the other is right": beside["score"] == right[0]}
    told["rows meanwhile"] = await steady
    numbers = await counted(http, url)
    told["afterwards"] = {name: numbers[f"rewardlab_{name}"] for name in ("workers_ready", "queue_rows", "workers_replaced")}
    return told


async def slow(url: str) -> int:
    """The status of a request whose body comes a byte a second."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n")

    async def drip() -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(1)

    dripping = asyncio.create_task(drip())
    try:
        return int((await asyncio.wait_for(reader.readline(), 30)).split()[1])
    finally:
        dripping.cancel()
        writer.close()


async def hostile_code(http: Any, url: str) -> dict[str, Any]:
    """Programs that hang or eat memory, judged in the sandbox: wrong, with the reason, and soon."""
    programs = {
        "hangs": "while True: pass",
        "eats memory": "x = [0]\nwhile True: x += x",
        "forks": "import os\nwhile True: os.fork()",
    }
    told = {}
    for name, program in programs.items():
        began = time.perf_counter()
        body = {"response": f"```python\n{program}\n```", "answer": "assert True"}
        found = (await http.post(f"{url}/score", json=body)).json()
        told[name] = {"score": found["score"], "why": found["why"][:120], "seconds": round(time.perf_counter() - began, 1)}
    good = {"response": "```python\ndef f(x): return x + 1\n```", "answer": "assert f(1) == 2"}
    told["a right program afterwards"] = (await http.post(f"{url}/score", json=good)).json()["score"]
    return told


async def measured(rate: float, seconds: float, workers: int, distinct: int) -> dict[str, Any]:
    import httpx2

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "mine.py").write_text(MINE)
        formula = f'math() + "{folder}/mine.py:unique"'
        right = expected(formula, distinct)
        limits = httpx2.Limits(max_connections=512, max_keepalive_connections=512)
        async with httpx2.AsyncClient(timeout=60.0, limits=limits, trust_env=False) as http:
            words = ("--reward", formula, "--workers", str(workers), "--seconds", "3")
            async with server(*words) as (url, pid):
                await at_rate(http, url, rate / 2, 2.0, right)
                calm = await at_rate(http, url, rate, seconds, right)
                stop = asyncio.Event()
                killer = asyncio.create_task(killing(pid, 0.5, stop))
                killed = await at_rate(http, url, rate, seconds, right)
                stop.set()
                killed["processes_killed"] = await killer
                most = await closed(http, url, 32, seconds / 2, right)
                attacked = await under_attack(http, url, right)
            async with server("--reward", "code", "--workers", "1", "--seconds", "60") as (url, _):
                code = await hostile_code(http, url)
    return {"calm": calm, "workers_killed": killed, "clients_that_wait": most, "hostile": attacked, "hostile_code": code}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=60.0, help="requests a second, of 8 rows each")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each phase")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows", type=int, default=4000, help="different rows")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    load = os.getloadavg()[0]
    document = asyncio.run(measured(min(args.rate, 1000.0), min(args.seconds, 60.0), args.workers, args.rows))
    about = {
        "workers": args.workers,
        "rows_of_a_request": ROWS,
        "cores": len(os.sched_getaffinity(0)),
        "load_before": round(load, 1),
    }
    text = json.dumps({**about, **document}, indent=1)
    print(text)
    if args.out:
        from rewardlab.util.files import write_text

        args.out.parent.mkdir(parents=True, exist_ok=True)
        write_text(args.out, text + "\n")


if __name__ == "__main__":
    main()
