"""A real server of an ASGI application, on a free port of this machine, in a thread."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import uvicorn


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """Its address. At the end, requests that hang are not waited for."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, args=([sock],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.002)
        try:
            yield f"http://127.0.0.1:{sock.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            thread.join()


class Answer(NamedTuple):
    status: int
    document: Any
    headers: dict[str, str]


def post(url: str, body: Any, headers: dict[str, str] | None = None, seconds: float = 30.0) -> Answer:
    """body: what is sent as JSON, or bytes that are sent as they are."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return sent(urllib.request.Request(url, data, {"Content-Type": "application/json", **(headers or {})}), seconds)


def get(url: str, headers: dict[str, str] | None = None) -> Answer:
    return sent(urllib.request.Request(url, headers=headers or {}), 30.0)


def sent(request: urllib.request.Request, seconds: float) -> Answer:
    try:
        with urllib.request.urlopen(request, timeout=seconds) as reply:
            return Answer(reply.status, _read(reply.read()), dict(reply.headers))
    except urllib.error.HTTPError as problem:
        return Answer(problem.code, _read(problem.read()), dict(problem.headers))


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode()
