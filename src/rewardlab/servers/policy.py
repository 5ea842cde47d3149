"""The policy server: chat and text completions of the OpenAI API, from one policy."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from rewardlab.core import Message, Problem, Sampling, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.servers import texts
from rewardlab.servers.asked import ROWS, Asked, Chat, Completion, bad, read
from rewardlab.servers.calls import Calls
from rewardlab.servers.generator import Busy, Generator, Work, Written
from rewardlab.servers.http import answer, application
from rewardlab.servers.limits import Limits, Refused
from rewardlab.servers.metrics import Metrics
from rewardlab.servers.texts import Text

PATHS = ("/v1/models", "/v1/chat/completions", "/v1/completions", "/health", "/ready", "/metrics")
KINDS = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


class PolicyServer:
    """name: of the model.  most_new: tokens of a reply, at most, and where a request does not say."""

    def __init__(self, generator: Generator, name: str, limits: Limits, most_new: int):
        self.generator, self.policy, self.name = generator, generator.policy, name
        self.limits, self.most_new, self.created = limits, most_new, int(time.time())
        self.calls = Calls()
        self.metrics = Metrics(PATHS)
        self.metrics.gauge("queue_requests", "Requests that wait", lambda: generator.waiting)
        self.metrics.gauge("generated_tokens", "Tokens that were generated", lambda: generator.generated)

    def app(self) -> Any:
        """The ASGI application."""
        app = application(self.metrics, self.limits, lambda: "", error)
        self._routes(app)
        return self.metrics.around(app)

    def _routes(self, app: FastAPI) -> None:
        about = {"id": self.name, "object": "model", "created": self.created, "owned_by": "rewardlab"}

        @app.get("/v1/models")
        async def models(request: Request) -> Response:
            self.limits.check_token(request)
            return answer({"object": "list", "data": [about]})

        @app.get("/v1/models/{name:path}")
        async def model(request: Request, name: str) -> Response:
            self.limits.check_token(request)
            self._check_name(name)
            return answer(about)

        @app.post("/v1/chat/completions")
        async def chat(request: Request) -> Response:
            return await self._answered(request, Chat, self._chat_rows)

        @app.post("/v1/completions")
        async def completions(request: Request) -> Response:
            return await self._answered(request, Completion, self._text_rows)

    async def _answered(self, request: Request, kind: type[Asked], rows: Callable[[Any], list[Trajectory]]) -> Response:
        self.limits.check_token(request)
        asked: Any = read(kind, await self.limits.document(request))
        self._check_name(asked.model)
        if asked.stream and asked.return_token_ids:
            raise bad("token ids cannot be streamed", "return_token_ids")
        try:
            work = self._work(asked, rows(asked))
            if asked.stream:
                return StreamingResponse(Stream(self, asked, work).events(request), media_type="text/event-stream")
            self.generator.submit(work)
            written = await self._finished(work, request)
        except Busy as busy:
            raise Refused(429, str(busy), "rate_limit_exceeded", {"Retry-After": "1"}) from None
        except RewardlabError as problem:
            raise bad(str(problem)) from None
        told = Told(self, asked)
        # calls in Python's syntax are read by a process of their own, for which nobody else is to wait
        choices = await asyncio.to_thread(lambda: [told.choice(i, w) for i, w in enumerate(written)])
        return answer({**told.head(False), "choices": choices, "usage": told.usage(written)})

    async def _finished(self, work: Work, request: Request) -> list[Written]:
        """The rows in the end; a client that leaves before they are begun is not worked for."""
        done = asyncio.wrap_future(work.done)
        while not (await asyncio.wait([done], timeout=1.0))[0]:
            if await request.is_disconnected():
                work.given_up.set()
        return done.result()

    def _check_name(self, name: str) -> None:
        if name != self.name:
            raise bad(f"the model {name[:100]!r} is not served here; this is {self.name!r}", "model", "model_not_found", 404)

    def _chat_rows(self, asked: Chat) -> list[Trajectory]:
        messages = self.calls.messages(asked.messages, asked.schemas)
        begun = messages.pop().text if asked.continue_final_message and messages[-1].role == "assistant" else ""
        (row,) = self.policy.read([Trajectory(Problem(tuple(messages)))], [tuple(messages)])
        if begun:
            row = row.plus(Turn(None, self._ids(begun, special=False), text=begun))
        return [row] * (asked.n or 1)

    def _text_rows(self, asked: Completion) -> list[Trajectory]:
        rows = []
        for prompt in asked.prompts:
            ids = self._ids(prompt) if isinstance(prompt, str) else np.asarray(prompt, np.int64)
            if not len(ids) or ids.min() < 0 or ids.max() >= len(self.policy.tokenizer):
                raise bad("a prompt must have tokens, all of this model's vocabulary", "prompt")
            text = prompt if isinstance(prompt, str) else self.policy.decode(ids)
            rows += [Trajectory(Problem((Message("user", text),)), (Turn(None, ids, text=text),))] * (asked.n or 1)
        return rows

    def _ids(self, text: str, special: bool = True) -> np.ndarray:
        return np.asarray(self.policy.tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"], np.int64)

    def _work(self, asked: Any, rows: list[Trajectory]) -> Work:
        if not rows:
            raise bad("there is no prompt", "prompt")
        if len(rows) > ROWS:
            raise bad(f"{len(rows)} replies at once, and a request may have {ROWS}", "n")
        longest = max(map(len, rows))
        room = self.policy.context - longest
        most = min(self.most_new, room) if asked.most is None else asked.most
        if most > room or (room < 1 and asked.most is None):
            raise bad(
                f"the prompt has {longest} tokens and {most} are asked for, and the model's context is {self.policy.context}",
                "messages", "context_length_exceeded",
            )  # fmt: skip
        if most > self.most_new:
            raise bad(f"{most} tokens are asked for, and this server writes at most {self.most_new} (--max-new)", "max_tokens")
        top_p = 1.0 if asked.top_p is None else asked.top_p
        temperature = 1.0 if asked.temperature is None else asked.temperature
        sampling = Sampling(most, temperature, top_p, max(0, asked.top_k or 0), asked.stops)
        echo = asked.echo and asked.likely is not None
        if echo and asked.stream:
            raise bad("echo with logprobs cannot be streamed", "echo")
        return Work(rows, sampling, asked.seed, likely=asked.likely or 0, score=echo)


class Told:
    """What is said of the replies to one request."""

    def __init__(self, server: PolicyServer, asked: Any):
        self.policy, self.model, self.asked = server.policy, server.name, asked
        self.chat = isinstance(asked, Chat)
        self.schemas, self.calls = asked.schemas if self.chat else [], server.calls
        self.id = f"{'chatcmpl' if self.chat else 'cmpl'}-{uuid.uuid4().hex}"
        self.created = int(time.time())

    def head(self, streamed: bool) -> dict[str, Any]:
        kind = ("chat.completion.chunk" if streamed else "chat.completion") if self.chat else "text_completion"
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def choice(self, index: int, w: Written) -> dict[str, Any]:
        said = texts.text_of(self.policy, w, self.asked.stops, final=True)
        # all ids: with the token that ended it, and what the last one holds beyond a stop string
        tokens = len(w.ids) if self.asked.return_token_ids else said.tokens
        about = {"index": index, "logprobs": self.logprobs(w, 0, tokens), "finish_reason": said.finish, "stop_reason": said.by}
        if self.asked.return_token_ids:
            about["token_ids"] = w.ids.tolist()
        if self.chat:
            calling = self.calls.told(said.text, self.schemas) if self.schemas and said.finish == "stop" else None
            if calling:
                return {**about, "finish_reason": "tool_calls", "message": calling}
            return {**about, "message": {"role": "assistant", "content": said.text, "refusal": None}}
        before = w.row.turns[0].text if self.asked.echo else ""
        return {**about, "text": before + said.text}

    def part(self, index: int, w: Written, said: Text, text: str, tokens: int, first: bool) -> dict[str, Any]:
        """What is new since `text` characters and `tokens` tokens were sent."""
        about = {"index": index, "logprobs": self.logprobs(w, tokens, said.tokens), "finish_reason": said.finish}
        if self.chat:
            return {**about, "delta": {"role": "assistant", "content": text} if first else {"content": text} if text else {}}
        return {**about, "text": (w.row.turns[0].text if self.asked.echo and first else "") + text}

    def whole(self, index: int, w: Written) -> dict[str, Any]:
        """A reply in one part: whether it calls is known at its end."""
        choice = self.choice(index, w)
        message = choice.pop("message")
        if "tool_calls" in message:
            message["tool_calls"] = [{"index": i, **call} for i, call in enumerate(message["tool_calls"])]
        return {**choice, "delta": message}

    def logprobs(self, w: Written, start: int, stop: int) -> dict[str, Any] | None:
        if self.asked.likely is None:
            return None
        if self.chat:
            return texts.chat_logprobs(self.policy, w, start, stop)
        return texts.text_logprobs(self.policy, w, start, stop, self.asked.echo and not start)

    def usage(self, written: list[Written]) -> dict[str, int]:
        # a prompt counts once, however many replies there are to it
        read = sum(w.before for w in written[:: self.asked.n or 1])
        wrote = sum(len(w.ids) for w in written)
        return {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}


class Stream:
    """The replies to one request as server-sent events, while they are written."""

    def __init__(self, server: PolicyServer, asked: Any, work: Work):
        self.server, self.asked, self.work = server, asked, work
        self.told = Told(server, asked)
        # (characters, tokens, whether it is finished) of each row that were sent
        self.sent: dict[int, tuple[int, int, bool]] = {}
        self.parts: asyncio.Queue[list[Written] | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def put(rows: list[Written] | None) -> None:
            loop.call_soon_threadsafe(self.parts.put_nowait, rows)

        work.show = put
        work.done.add_done_callback(lambda _: put(None))
        # refused before the answer has begun, while a status can still say so
        server.generator.submit(work)

    async def events(self, request: Request) -> AsyncIterator[bytes]:
        try:
            while (rows := await self.parts.get()) is not None:
                # with functions to call, the whole reply is told at its end
                for event in () if self.told.schemas else self._new(rows, final=False):
                    yield event
            written = self.work.done.result()
            for event in await asyncio.to_thread(self._whole if self.told.schemas else self._last, written):
                yield event
            if self.asked.usage_in_stream:
                yield _event({**self.told.head(True), "choices": [], "usage": self.told.usage(written)})
        except Exception as problem:
            yield _event(error(Refused(500, str(problem) if isinstance(problem, RewardlabError) else type(problem).__name__)))
        finally:
            # where the client has left, nobody reads the rest
            self.work.given_up.set()
        yield b"data: [DONE]\n\n"

    def _whole(self, rows: list[Written]) -> list[bytes]:
        return [_event({**self.told.head(True), "choices": [self.told.whole(i, w)]}) for i, w in enumerate(rows)]

    def _last(self, rows: list[Written]) -> list[bytes]:
        return self._new(rows, final=True)

    def _new(self, rows: list[Written], final: bool) -> list[bytes]:
        events = []
        for i, w in enumerate(rows):
            characters, tokens, finished = self.sent.get(i, (0, 0, False))
            said = texts.text_of(self.told.policy, w, self.asked.stops, final)
            new = said.text[characters:]
            if finished or not (new or said.finish or i not in self.sent):
                continue
            part = self.told.part(i, w, said, new, tokens, i not in self.sent)
            self.sent[i] = max(characters, len(said.text)), max(tokens, said.tokens), said.finish is not None
            events.append(_event({**self.told.head(True), "choices": [part]}))
        return events


def error(problem: Refused) -> dict[str, Any]:
    """An error as OpenAI's clients read it."""
    kind = KINDS.get(problem.status, "server_error" if problem.status >= 500 else "invalid_request_error")
    return {"error": {"message": problem.message, "type": kind, "param": problem.param, "code": problem.code or None}}


def _event(document: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(document, allow_nan=False, separators=(",", ":")).encode() + b"\n\n"
