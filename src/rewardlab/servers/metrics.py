"""Server metrics in Prometheus' format."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Bounds of the histogram."""


class Metrics:
    """Requests and their seconds, by path and status, and numbers of the server's own (`gauge`), read when they are asked for."""

    def __init__(self, paths: tuple[str, ...]):
        from prometheus_client import CollectorRegistry, Counter, Histogram

        # what is not one of the server's paths is counted together, or requests for random ones would fill the memory
        self.paths = frozenset(paths)
        self.registry = CollectorRegistry()
        self.requests = Counter("rewardlab_requests", "Requests answered", ("path", "status"), registry=self.registry)
        self.seconds = Histogram(
            "rewardlab_request_seconds", "Seconds to the last byte of an answer", ("path",), buckets=SECONDS, registry=self.registry
        )
        self.answered = 0

    def gauge(self, name: str, about: str, value: Callable[[], float]) -> None:
        """A number that is asked for, `rewardlab_NAME`."""
        from prometheus_client import Gauge

        Gauge(f"rewardlab_{name}", about, registry=self.registry).set_function(value)

    def counter(self, name: str, about: str, *labels: str) -> Any:
        """A number that grows, `rewardlab_NAME_total`."""
        from prometheus_client import Counter

        return Counter(f"rewardlab_{name}", about, labels, registry=self.registry)

    def text(self) -> bytes:
        from prometheus_client import generate_latest

        return generate_latest(self.registry)

    def around(self, app: Any) -> Any:
        """An ASGI application that counts the requests of another."""

        async def counted(scope: dict[str, Any], receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            began, status = time.perf_counter(), 500

            async def sent(message: dict[str, Any]) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            try:
                await app(scope, receive, sent)
            finally:
                path = scope["path"] if scope["path"] in self.paths else "other"
                self.answered += 1
                self.requests.labels(path, str(status)).inc()
                self.seconds.labels(path).observe(time.perf_counter() - began)

        return counted
