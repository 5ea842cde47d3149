"""Conversations that another program drives: it asks a model for replies by the OpenAI API, and the policy gives them.

    the program   POST /v1/chat/completions, model=NAME   ->   a thread of the server waits for the reply
    an environment    begin(run) -> Asked | Over          reply(text) -> Asked | Over

So whatever plays with a served model plays with the policy that is being trained. The name of the model says which conversation a
request belongs to; the program runs in an event loop of its own, and the environment waits until it asks again or is over.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import queue
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rewardlab.core import Message
from rewardlab.envs.own_random import OwnRandom
from rewardlab.envs.tool_messages import answered, calls_of
from rewardlab.errors import RewardlabError
from rewardlab.processes.supervisor import per_process
from rewardlab.text.answers import after_thinking
from rewardlab.text.tool_calls import TAG
from rewardlab.verifiers.calls.calls import Call, Malformed, Schema, tools_from

PATIENCE = 600.0
"""Seconds that a program may take from a reply to its next request, or to its end."""
STOPS = 8
"""Requests that are refused when a conversation is stopped, before it counts as one that does not end."""
TOO_LONG = "This model's maximum context length is reached (context_length_exceeded): the episode ends here"
"""What a program is told that asks for another reply than an episode may have: programs know it as the end of the context."""


@dataclass
class Asked:
    """A request for a reply: the whole conversation so far, and the tools that may be called, as JSON schemas."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    answer: queue.Queue[str | None] = field(default_factory=lambda: queue.Queue(1), repr=False)
    """The reply; None refuses it."""


@dataclass(frozen=True)
class Over:
    """The program has ended, with this result or this error."""

    result: Any = None
    error: BaseException | None = None


class Conversation:
    """One run of a program that asks for replies.  now: what it waits for, or that it is over."""

    def __init__(self, run: Callable[[str, str], Awaitable[Any]], seed: int | None = None) -> None:
        """run: (address of the API, name of the model) -> the program's result.  seed: of what it does at random up to its first
        request (`OwnRandom`); None: it uses the numbers that all share.
        """
        self._random = OwnRandom()
        if seed is not None:
            self._random.seed(seed)
        desk = _desk()
        self.name = f"policy-{next(desk.numbers)}"
        self._events: queue.Queue[Asked | Over] = queue.Queue()
        desk.open[self.name] = self._events
        asyncio.run_coroutine_threadsafe(self._played(run, desk.address), desk.loop)
        self.now = self._next()

    async def _played(self, run: Callable[[str, str], Awaitable[Any]], address: str) -> None:
        try:
            over = Over(await self._random.of(run(address, self.name)))
        # whatever the program raises is its result: the environment says so, in words
        except BaseException as e:
            over = Over(error=e)
        _desk().open.pop(self.name, None)
        self._events.put(over)

    def _next(self) -> Asked | Over:
        try:
            now = self._events.get(timeout=PATIENCE)
        except queue.Empty:
            raise RewardlabError(f"an environment has neither answered nor ended within {PATIENCE:g} seconds") from None
        self._random.pause()
        return now

    def reply(self, text: str | None, seed: int | None = None) -> Asked | Over:
        """Give the reply that is asked for, or refuse it (None); what the program does next.

        seed: of what it does at random then; None: it uses the numbers that all share.
        """
        if isinstance(self.now, Asked):
            if seed is not None:
                self._random.seed(seed)
            self.now.answer.put(text)
            self.now = self._next()
        return self.now

    def stop(self) -> Over:
        """Refuse every further reply, until the program ends."""
        for _ in range(STOPS):
            if isinstance(self.now, Over):
                return self.now
            self.reply(None)
        if isinstance(self.now, Over):
            return self.now
        return Over(error=RewardlabError(f"it asks on, though {STOPS} replies were refused: the end of the context ends it not"))

    def abandon(self) -> None:
        """Let go of it: it is refused every reply, and nobody waits for its end."""
        if isinstance(self.now, Asked):
            self.now.answer.put(None)
        _desk().open.pop(self.name, None)


# ---- the server, and the loop that programs run in ---------------------------------------------------------------------


@dataclass
class _Desk:
    address: str
    loop: asyncio.AbstractEventLoop
    open: dict[str, queue.Queue[Any]] = field(default_factory=dict)
    numbers: Any = field(default_factory=itertools.count)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # every conversation may open a connection at the same time
    request_queue_size = 1024
    desk: _Desk


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            name, messages = body["model"], body["messages"]
        except (ValueError, KeyError, TypeError) as e:
            return self._answer(400, _refused(f"no request for a chat completion: {e!r}", "invalid"))
        events = self.server.desk.open.get(name)  # type: ignore[attr-defined]
        if events is None:
            return self._answer(400, _refused(TOO_LONG))
        if body.get("stream") or body.get("n", 1) != 1:
            return self._answer(
                400, _refused("replies are given whole, one a request: neither stream nor n is known here", "invalid")
            )
        asked = Asked(messages, body.get("tools") or [])
        events.put(asked)
        text = asked.answer.get()
        if text is None:
            return self._answer(400, _refused(TOO_LONG))
        return self._answer(200, completion(name, text, len(messages), asked.tools))

    def _answer(self, status: int, document: Mapping[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""


def _refused(says: str, code: str = "context_length_exceeded") -> dict[str, Any]:
    return {"error": {"message": says, "type": "invalid_request_error", "code": code}}


@per_process
def _desk() -> _Desk:
    server = _Server(("127.0.0.1", 0), _Handler)
    loop = asyncio.new_event_loop()
    server.desk = _Desk(f"http://127.0.0.1:{server.server_port}/v1", loop)
    for work in (server.serve_forever, loop.run_forever):
        threading.Thread(target=work, daemon=True, name="rewardlab-driven").start()
    return server.desk


def in_loop(work: Awaitable[Any]) -> Any:
    """The result of an asynchronous function, run in the loop of the programs."""

    async def waited() -> Any:
        return await work

    return asyncio.run_coroutine_threadsafe(waited(), _desk().loop).result(PATIENCE)


# ---- replies as the API has them -----------------------------------------------------------------------------------------


def completion(name: str, text: str, after: int = 0, tools: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """A reply as a chat completion: the calls of tools in it, in whatever form, are its `tool_calls`.

    after: messages before it, which tells the calls of one conversation apart.  tools: those that the request offers.
    """
    known = tools_from(schemas_of(tools))
    calls = calls_of(text, known)
    message: dict[str, Any] = {"role": "assistant", "content": text}
    # what cannot be read is text, to which the program answers as it does to any
    if calls is not None and not isinstance(calls, Malformed):
        thought = text[: len(text) - len(after_thinking(text))]
        before, mark, _ = after_thinking(text).partition(TAG)
        message["content"] = (thought + (before if mark else "")).strip() or None
        message["tool_calls"] = [
            {"id": f"call_{after}_{i}", "type": "function", "function": {"name": c.name, "arguments": json.dumps(_given(c, known))}}
            for i, c in enumerate(calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    return {
        "id": f"{name}-reply", "object": "chat.completion", "created": 0, "model": name, "choices": [choice], "usage": usage
    }  # fmt: skip


def _given(call: Call, known: Mapping[str, Schema]) -> dict[str, Any]:
    """The arguments by name, in the types of the tool's schema; as they are written where they do not fit it."""
    try:
        return dict(call.bound(known, defaults=False).arguments)
    except Malformed:
        return dict(call.arguments)


def text_of(content: Any) -> str:
    """The text of a message's content. Raises RewardlabError for pictures and sounds."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = [part if isinstance(part, dict) else {"type": "text", "text": str(part)} for part in content]
    if strange := [part.get("type") for part in parts if part.get("type") != "text"]:
        raise RewardlabError(f"an environment shows something that is no text ({strange[0]}), and episodes are of text here")
    return "\n".join(str(part.get("text", "")) for part in parts)


def told(messages: Sequence[Mapping[str, Any]]) -> Message:
    """What was said to the policy in these messages: results of tools as such where there is nothing else, or all as one text."""
    said = [(m.get("role"), text_of(m.get("content"))) for m in messages]
    if said and all(role == "tool" for role, _ in said):
        return answered([text for _, text in said])
    tagged = (f"<tool_response>\n{text}\n</tool_response>" if role == "tool" else text for role, text in said)
    return Message("user", "\n\n".join(tagged))


def schemas_of(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The tools of a request as chat templates take them."""
    return [{"type": "function", "function": dict(tool.get("function", tool))} for tool in tools]
