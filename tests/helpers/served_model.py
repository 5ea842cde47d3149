"""A real server of the OpenAI API on this machine, with a small policy or a function behind it, that can be told to misbehave."""

from __future__ import annotations

import asyncio
import functools
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

NAME = "small"
Says = Callable[[dict[str, Any]], Any]
"""From the body of a request to the text of the reply, or to a whole choice."""
Reply = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""From the body of a request to the whole answer."""


@dataclass
class Server:
    """troubles: how the next requests are answered, in turn: a status ("429", "429 0.05": with Retry-After), "hang", "half",
    "not json", "wrong json", "no usage"; after them every request is answered properly.  asked: all bodies; headers: theirs.
    """

    url: str
    says: Says
    troubles: list[str] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    models: list[str] = field(default_factory=lambda: [NAME])
    slow: float = 0.0
    now: int = 0
    most: int = 0

    @property
    def name(self) -> str:
        """Without a cache, and with short pauses."""
        return f"openai:{self.url}#{NAME},cache=false,backoff=0.01"

    async def answer(self, request: Request, reply: Reply) -> Response:
        self.asked.append(body := await request.json())
        self.headers.append(dict(request.headers))
        self.at.append(time.monotonic())
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if self.slow:
                await asyncio.sleep(self.slow)
            if not self.troubles:
                return JSONResponse(await reply(body))
            if (trouble := self.troubles.pop(0)) == "hang":
                await self._hang(request)
            return await self._misbehave(trouble, reply, body)
        finally:
            self.now -= 1

    async def _hang(self, request: Request) -> None:
        """Until the client has left."""
        while not await request.is_disconnected():
            await asyncio.sleep(0.01)

    async def _misbehave(self, trouble: str, reply: Reply, body: dict[str, Any]) -> Response:
        if trouble == "half":
            return StreamingResponse(half(), media_type="application/json", headers={"Content-Length": "1000"})
        if trouble == "not json":
            return Response("<html>Bad gateway</html>", media_type="text/html")
        if trouble == "wrong json":
            return JSONResponse({"answer": 42})
        if trouble == "no usage":
            return JSONResponse({k: v for k, v in (await reply(body)).items() if k != "usage"})
        if trouble == "hang":
            return Response()
        status, _, after = trouble.partition(" ")
        error = {"error": {"message": f"told to say {status}, to {self.headers[-1].get('authorization')}", "code": after or None}}
        return JSONResponse(error, int(status), {"Retry-After": after} if after else None)


async def half() -> Any:
    """The beginning of an answer, after which the connection breaks off."""
    yield b'{"choices": [{"message": {"content": "4'
    await asyncio.sleep(0)
    raise ConnectionResetError


def echo(body: dict[str, Any]) -> str:
    return body["messages"][-1]["content"]


def compared(body: dict[str, Any]) -> tuple[str, str, str]:
    """The question, the gold answer and the reply that `judged_answer` asks about."""
    asked = body["messages"][-1]["content"]
    fence = asked.partition("lines of ")[2].partition(". It is data")[0]
    _, question, _, answer, _, reply, _ = asked.split(f"\n{fence}\n")
    return question, answer, reply


def sound_judge(body: dict[str, Any]) -> str:
    """A judge that compares the last word with the gold answer, or with one of several."""
    _, answer, reply = compared(body)
    last = reply.rstrip(". ").rpartition(" ")[2]
    return "They mean the same: [[Yes]]" if last in answer.split(" or ") else "[[no]]"


def choice(text: str, finish: str = "stop", **more: Any) -> dict[str, Any]:
    return {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish, **more}


@contextmanager
def serving(says: Says = echo, policy: Any = None) -> Iterator[Server]:
    """A server on a free port. policy: answers instead of `says`, by the policy server of rewardlab."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        served = Server(f"http://127.0.0.1:{sock.getsockname()[1]}/v1", says)
        config = uvicorn.Config(_app(served, policy), log_level="critical", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([sock],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.002)
        try:
            yield served
        finally:
            # requests that hang are not waited for
            server.should_exit = server.force_exit = True
            thread.join()


def _app(served: Server, policy: Any) -> FastAPI:
    app = FastAPI()

    async def chat(body: dict[str, Any]) -> dict[str, Any]:
        said = served.says(body)
        said = choice(said) if isinstance(said, str) else said
        read = sum(len(str(m["content"]).split()) for m in body["messages"])
        written = len((said["message"]["content"] or "").split())
        return {"choices": [said], "usage": {"prompt_tokens": read, "completion_tokens": written}}

    async def mute(body: dict[str, Any]) -> dict[str, Any]:
        return {"choices": [{"text": ""}]}

    replies = answering(policy) if policy else {"/v1/chat/completions": chat, "/v1/completions": mute}

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"data": [{"id": name} for name in served.models]}

    for path, reply in replies.items():

        @app.post(path)
        async def answered(request: Request, reply: Reply = reply) -> Response:
            return await served.answer(request, reply)

    return app


def answering(policy: Any) -> dict[str, Reply]:
    """The policy server of rewardlab, called without a network: by path, from the body of a request to its answer."""
    import httpx2

    from rewardlab.servers.generator import Generator
    from rewardlab.servers.limits import Limits
    from rewardlab.servers.policy import PolicyServer

    app = PolicyServer(Generator(policy, most=256), NAME, Limits(), most_new=1024).app()

    async def asked(path: str, body: dict[str, Any]) -> dict[str, Any]:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://here") as http:
            return (await http.post(path, json=body)).raise_for_status().json()

    return {path: functools.partial(asked, path) for path in ("/v1/chat/completions", "/v1/completions")}
