"""A real server of the OpenAI API on this machine, with a small policy or a function behind it, that can be told to misbehave."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

NAME = "small"
Says = Callable[[dict[str, Any]], Any]
"""From the body of a request to the text of the reply, or to a whole choice."""


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

    async def answer(self, request: Request, reply: Callable[[dict[str, Any]], dict[str, Any]]) -> Response:
        self.asked.append(body := await request.json())
        self.headers.append(dict(request.headers))
        self.at.append(time.monotonic())
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if self.slow:
                await asyncio.sleep(self.slow)
            if not self.troubles:
                return JSONResponse(reply(body))
            if (trouble := self.troubles.pop(0)) == "hang":
                await self._hang(request)
            return self._misbehave(trouble, reply, body)
        finally:
            self.now -= 1

    async def _hang(self, request: Request) -> None:
        """Until the client has left."""
        while not await request.is_disconnected():
            await asyncio.sleep(0.01)

    def _misbehave(self, trouble: str, reply: Callable[[dict[str, Any]], dict[str, Any]], body: dict[str, Any]) -> Response:
        if trouble == "half":
            return StreamingResponse(half(), media_type="application/json", headers={"Content-Length": "1000"})
        if trouble == "not json":
            return Response("<html>Bad gateway</html>", media_type="text/html")
        if trouble == "wrong json":
            return JSONResponse({"answer": 42})
        if trouble == "no usage":
            return JSONResponse({k: v for k, v in reply(body).items() if k != "usage"})
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


def spoken_by(policy: Any) -> Says:
    """What a policy says, as its chat template has it."""
    import torch

    from rewardlab.core import Message, Problem, Sampling, Trajectory

    def says(body: dict[str, Any]) -> dict[str, Any]:
        prompt = tuple(Message(m["role"], m["content"]) for m in body["messages"])
        sampling = Sampling(body["max_tokens"], body["temperature"], body.get("top_p", 1.0), body.get("top_k", 0))
        rng = torch.Generator().manual_seed(body.get("seed", 0))
        (row,) = policy.extend(policy.read([Trajectory(Problem(prompt))], [prompt]), sampling, rng)
        return choice(row.reply, "length" if row.stop == "length" else "stop")

    return says


def choice(text: str, finish: str = "stop", **more: Any) -> dict[str, Any]:
    return {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish, **more}


@contextmanager
def serving(says: Says = echo, policy: Any = None) -> Iterator[Server]:
    """A server on a free port. policy: answers instead of `says`, and scores prompts of ids (echo)."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        served = Server(f"http://127.0.0.1:{sock.getsockname()[1]}/v1", spoken_by(policy) if policy else says)
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

    def chat(body: dict[str, Any]) -> dict[str, Any]:
        said = served.says(body)
        said = choice(said) if isinstance(said, str) else said
        read = sum(len(m["content"].split()) for m in body["messages"])
        written = len(said["message"]["content"].split())
        return {"choices": [said], "usage": {"prompt_tokens": read, "completion_tokens": written}}

    def scored(body: dict[str, Any]) -> dict[str, Any]:
        import numpy as np

        from rewardlab.core import Problem, Trajectory, Turn

        if policy is None or not body.get("echo"):
            return {"choices": [{"text": ""}]}
        ids = np.asarray(body["prompt"], np.int64)
        (logprobs,) = policy.score([Trajectory(Problem(()), (Turn(None, ids),))])
        found = [None, *map(float, logprobs[1:])]
        return {"choices": [{"text": "", "logprobs": {"token_logprobs": found}}], "usage": {"prompt_tokens": len(ids)}}

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"data": [{"id": name} for name in served.models]}

    @app.post("/v1/chat/completions")
    async def completions(request: Request) -> Response:
        return await served.answer(request, chat)

    @app.post("/v1/completions")
    async def echoed(request: Request) -> Response:
        return await served.answer(request, scored)

    return app
