"""The common base of both servers: error responses, health, metrics, and a graceful shutdown."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rewardlab.errors import RewardlabError
from rewardlab.servers.limits import MIB, Limits, Refused
from rewardlab.servers.metrics import Metrics
from rewardlab.util.progress import console

CONNECTIONS = 1024
"""Connections at a time; more are told to come again (503)."""
Shape = Callable[[Refused], Any]
"""From an error to its document."""


def answer(document: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer. Whatever text a reward returns, half a surrogate pair included, is escaped."""
    body = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
    return Response(body, status, headers, media_type="application/json")


def application(metrics: Metrics, limits: Limits, ready: Callable[[], str], shape: Shape) -> FastAPI:
    """An application with /health, /ready and /metrics.  ready: why the server is not; empty if it is."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)

    @app.exception_handler(Refused)
    async def refused(request: Request, problem: Refused) -> Response:
        return answer(shape(problem), problem.status, problem.headers)

    @app.exception_handler(HTTPException)
    async def no_such(request: Request, problem: HTTPException) -> Response:
        says = f"{request.method} {request.url.path[:100]}: {str(problem.detail).lower()}"
        return answer(shape(Refused(problem.status_code, says)), problem.status_code, dict(problem.headers or {}))

    @app.exception_handler(Exception)
    async def failed(request: Request, problem: Exception) -> Response:
        logging.getLogger("rewardlab.servers").error("%s", request.url.path, exc_info=problem)
        return answer(shape(Refused(500, f"the server itself failed: {type(problem).__name__}")), 500)

    @app.get("/health")
    async def health() -> Response:
        return answer({"status": "alive"})

    @app.get("/ready")
    async def whether_ready() -> Response:
        why = ready()
        return answer({"status": "not ready", "why": why}, 503) if why else answer({"status": "ready"})

    @app.get("/metrics")
    async def numbers(request: Request) -> Response:
        limits.check_token(request)
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return app


@dataclass(frozen=True)
class Address:
    """Where a server listens, and what it takes.

    port: 0 for any that is free.  key_from: environment variable with the token that requests must carry.
    body: MiB of one request.  drain: seconds for requests under way when the server is stopped.
    """

    host: str = "127.0.0.1"
    port: int = 0
    key_from: str | None = None
    body: int = 16
    drain: int = 30

    def limits(self) -> Limits:
        """Raises RewardlabError where the variable is not set, and where others could use the server unasked."""
        if self.key_from is not None and not os.environ.get(self.key_from):
            raise RewardlabError(f"--key-from: the environment variable {self.key_from} is not set")
        if self.key_from is None and not is_loopback(self.host):
            raise RewardlabError(
                f"--host {self.host} can be reached from elsewhere, and anyone there could use the server: put a token into an "
                "environment variable and name it, --key-from NAME"
            )
        return Limits(self.body * MIB, token=os.environ[self.key_from] if self.key_from else None)

    def bound(self) -> socket.socket:
        """A socket at the address. Raises RewardlabError where it cannot be had."""
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, _, _, _, address = found[0]
            made = socket.socket(family, socket.SOCK_STREAM)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
        except OSError as problem:
            why = (problem.strerror or str(problem)).lower()
            raise RewardlabError(f"cannot serve at {self.host}:{self.port}: {why}; choose another --port, or --host") from None
        return made

    def url(self, sock: socket.socket) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{sock.getsockname()[1]}"


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def run(app: Any, sock: socket.socket, *, drain: int, says: str) -> None:
    """Serve until SIGTERM or Ctrl-C; then no more connections are taken, and those that are open end when they are answered.

    drain: seconds that this may take.  says: what is printed once it listens.
    """
    import uvicorn

    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, lifespan="off", limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=drain, ws="none",
    )  # fmt: skip
    server = uvicorn.Server(config)
    # who reads that it serves may connect at once
    sock.listen(CONNECTIONS)
    console.print(says, highlight=False, soft_wrap=True)
    # uvicorn raises the signal again once all is answered
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[sock])
