"""The retrieval server: a corpus searched by the protocol of Search-R1 (`clients/retriever.py`), many queries in one request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any, Protocol

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from rewardlab.servers.http import answer, application
from rewardlab.servers.limits import Limits, Refused
from rewardlab.servers.metrics import Metrics
from rewardlab.servers.protocols import read

PATHS = ("/retrieve", "/health", "/ready", "/metrics", "/")


class Searched(Protocol):
    """What is served: the documents {id, title, text} of each query with their scores, best first."""

    documents: Any

    def search(self, queries: list[str], k: int) -> list[list[tuple[Any, float]]]: ...


class Asked(BaseModel):
    """queries: texts.  topk: documents of each; None: the server's number.  return_scores: whether they come with their scores."""

    model_config = ConfigDict(strict=True)
    queries: list[str]
    topk: int | None = Field(None, ge=1, le=1000)
    return_scores: bool = False


class RetrievalServer:
    """topk: documents of a query, where a request does not say.  batch: queries of one request, at most."""

    def __init__(self, index: Searched, name: str, limits: Limits, topk: int, batch: int):
        self.index, self.name, self.limits, self.topk, self.batch = index, name, limits, topk, batch
        # documents of a saved index are read from one open file
        self._alone = threading.Lock()
        self.metrics = Metrics(PATHS)
        self.queries = self.metrics.counter("queries", "Queries answered, by whether anything was found", "result")

    async def results(self, asked: Asked) -> list[list[Any]]:
        """Raises Refused where there are too many queries."""
        if len(asked.queries) > self.batch:
            raise Refused(413, f"{len(asked.queries)} queries, and a request may have {self.batch}: send fewer at a time")
        # in a thread, so that health and other requests do not wait for a large corpus
        found = await asyncio.to_thread(self._searched, asked.queries, asked.topk or self.topk)
        for documents in found:
            self.queries.labels("found" if documents else "nothing").inc()
        return [[_entry(document, score, asked.return_scores) for document, score in documents] for documents in found]

    def _searched(self, queries: list[str], k: int) -> list[list[tuple[Any, float]]]:
        with self._alone:
            return self.index.search(queries, k)

    def app(self) -> Any:
        """The ASGI application."""
        app = application(self.metrics, self.limits, lambda: "", lambda problem: {"error": problem.message})
        self._routes(app)
        return self.metrics.around(app)

    def _routes(self, app: FastAPI) -> None:
        @app.get("/")
        async def about() -> Response:
            return answer({"corpus": self.name, "documents": len(self.index.documents), "topk": self.topk, "paths": PATHS})

        @app.post("/retrieve")
        async def retrieve(request: Request) -> Response:
            self.limits.check_token(request)
            return answer({"result": await self.results(read(Asked, await self.limits.document(request)))})


def _entry(document: Mapping[str, str], score: float, scored: bool) -> dict[str, Any]:
    # the title of `contents` is its first line, in quotation marks, as in the corpora of FlashRAG
    shown = {**document, "contents": f'"{document["title"]}"\n{document["text"]}'}
    return {"document": shown, "score": score} if scored else shown
