"""The reward server: requests become calls of worker processes, and their results answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from rewardlab.servers import protocols
from rewardlab.servers.http import answer, application
from rewardlab.servers.limits import Limits, Refused
from rewardlab.servers.metrics import Metrics
from rewardlab.servers.pool import Full, Pool
from rewardlab.servers.protocols import OpenRLHF, Row, Rows, Slime, openrlhf, read, scored

PATHS = ("/score", "/get_reward", "/slime", "/health", "/ready", "/metrics", "/")


class RewardServer:
    """about: what the workers say of the reward.  batch: rows of one request, at most."""

    def __init__(self, pool: Pool, about: dict[str, Any], limits: Limits, batch: int):
        self.pool, self.about, self.limits, self.batch = pool, about, limits, batch
        self.metrics = Metrics(PATHS)
        self.rows = self.metrics.counter("rows", "Rows answered, by what came of them", "result")
        self.cut_off = 0
        self.metrics.gauge("rows_cut_off", "Rows of which a reward model has read a part", lambda: self.cut_off)
        self.metrics.gauge("queue_rows", "Calls of workers that wait or are made", lambda: pool.open)
        self.metrics.gauge("workers_ready", "Worker processes that can take calls", lambda: pool.ready)
        self.metrics.gauge("workers_replaced", "Worker processes put in the place of others", lambda: pool.replaced)

    async def scores(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """A document for each row, in their order. Raises Refused where there are too many of them, now or at all."""
        if len(rows) > self.batch:
            raise Refused(413, f"{len(rows)} rows, and a request may have {self.batch}: send fewer at a time")
        groups = self._groups(rows)
        calls = [json.dumps([rows[i].model_dump() for i in group]).encode() for group in groups]
        try:
            results = await asyncio.wrap_future(self.pool.submit(calls))
        except Full as full:
            raise Refused(429, str(full), "busy", {"Retry-After": str(full.after)}) from None
        found: dict[int, dict[str, Any]] = {}
        for group, result in zip(groups, results, strict=True):
            found |= zip(group, scored(result, len(group)), strict=True)
        for row in found.values():
            self.rows.labels(row.get("failed", "scored")).inc()
            self.cut_off += row.get("cut_off", False)
        return [found[i] for i in range(len(rows))]

    def _groups(self, rows: Sequence[Row]) -> list[list[int]]:
        """Which rows are scored together: each alone, or, where a reward compares replies, those with one prompt."""
        if self.about["alone"]:
            return [[i] for i in range(len(rows))]
        groups: dict[str, list[int]] = {}
        for i, row in enumerate(rows):
            groups.setdefault(json.dumps(row.model_dump(include={"prompt", "answer"})), []).append(i)
        return list(groups.values())

    def app(self) -> Any:
        """The ASGI application."""
        app = application(self.metrics, self.limits, self._not_ready, error)
        self._routes(app)
        return self.metrics.around(app)

    def _not_ready(self) -> str:
        return "" if self.pool.ready else "no worker process is loaded"

    def _routes(self, app: FastAPI) -> None:
        async def document(request: Request) -> Any:
            self.limits.check_token(request)
            return await self.limits.document(request)

        @app.get("/")
        async def about() -> Response:
            return answer({**self.about, "paths": PATHS})

        @app.post("/score")
        async def score(request: Request) -> Response:
            body = await document(request)
            if isinstance(body, dict) and "rows" in body:
                return answer({"scores": await self.scores(read(Rows, body).rows)})
            (row,) = await self.scores([read(Row, body)])
            return answer(row)

        @app.post("/get_reward")
        async def get_reward(request: Request) -> Response:
            return answer(openrlhf(await self.scores(read(OpenRLHF, await document(request)).rows())))

        @app.post("/slime")
        async def slime(request: Request) -> Response:
            (number,) = protocols.numbers(await self.scores(read(Slime, await document(request)).rows()))
            return answer(number)


def error(problem: Refused) -> dict[str, Any]:
    return {"error": problem.message, **({"code": problem.code} if problem.code else {})}
