"""The client of served models: concurrent requests, retries, a disk cache, and a budget."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from rewardlab.clients.budget import Bill, Budget, OverBudget, Usage
from rewardlab.clients.cache import Cache, key_of
from rewardlab.clients.endpoint import Endpoint, endpoint_of
from rewardlab.clients.messages import Failure, Reply, Request, counted, is_blank, reply_of
from rewardlab.clients.retries import Trouble, checked, pause, refusal
from rewardlab.errors import RewardlabError, Unusable
from rewardlab.util.background import wait_for
from rewardlab.util.extras import require

LOOP = "served models"
CONNECT = 10.0
"""Seconds to connect, at most."""
T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One request to a path of the API.  most_read, most_written: tokens, for the budget."""

    path: str
    body: dict[str, Any]
    sample: int = 0
    most_read: int = 0
    most_written: int = 0


@dataclass
class _Batch:
    """What requests that were made together share.  refused: why no more of them are sent."""

    refused: RewardlabError | None = None
    same: dict[str, asyncio.Task] = field(default_factory=dict)


class Client:
    """Asks one served model. Its calls may be used from any thread but that of its own event loop.

    Raises RewardlabError where the key that is named is not set, and, without a model's name, where the server does not serve
    exactly one.
    """

    def __init__(self, endpoint: Endpoint, cache: Cache | None = None):
        require("served", "httpx2", what="a served model")
        self.settings = endpoint.settings
        self.budget = Budget(self.settings)
        self._cache = (cache or Cache()) if self.settings.cache else None
        self._key = _secret(endpoint)
        self._session: tuple[int, Any, asyncio.Semaphore] | None = None
        self._reached = False
        self._chances: bool | None = None
        self.endpoint = endpoint
        if not endpoint.model:
            self.endpoint = replace(endpoint, model=self._only_model())

    def __repr__(self) -> str:
        return f"Client({self.endpoint})"

    @property
    def usage(self) -> Usage:
        return self.budget.usage

    def chat(self, requests: Sequence[Request], stop: bool = True) -> list[Reply | Failure]:
        """A reply to each request, or why there is none.

        Raises RewardlabError where no request could do better: the address, name or key is wrong, the server was never reached,
        or the budget does not suffice; without `stop`, these are failures too. Replies that came before are kept.
        """
        said = self.settings
        how = (self.endpoint.model, said.limit, said.marks, said.neutral, said.chat_template_kwargs)
        calls = [Call("/chat/completions", r.body(*how), r.sample, r.most_read, r.max_new) for r in requests]
        return self.ask(calls, reply_of, stop)

    def ask(self, calls: Sequence[Call], read: Callable[[Any], T], stop: bool = True) -> list[T | Failure]:
        """What `read` makes of each answer; it raises Trouble for one that is not as it should be. stop: as in `chat`."""
        return wait_for(self._all(calls, read, stop), LOOP)

    def gives_chances(self, likely: int) -> bool:
        """Whether the server gives log-probs of the likeliest tokens. It is asked once, since some refuse a request for them."""
        if self._chances is None:
            (found,) = self.chat([Request((("user", "Say 1."),), 1, likely=likely)])
            self._chances = isinstance(found, Reply) and bool(found.chances)
        return self._chances

    def _only_model(self) -> str:
        (found,) = self.ask([Call("/models", {})], lambda document: [str(m["id"]) for m in checked(document, "data")])
        if isinstance(found, Failure):
            raise RewardlabError(f"cannot ask {self.endpoint.url} for its models: {found.why}; name one: openai:URL#NAME")
        if len(found) != 1:
            says = f"serves {', '.join(found[:20])}" if found else "names no model"
            raise RewardlabError(f"{self.endpoint.url} {says}: say which, openai:{self.endpoint.url}#NAME")
        return found[0]

    async def _all(self, calls: Sequence[Call], read: Callable[[Any], T], stop: bool) -> list[T | Failure]:
        batch = _Batch()
        tasks = [asyncio.create_task(self._one(call, read, batch)) for call in calls]
        try:
            # what is under way when another is refused is waited for: it is paid for, and kept
            found = await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            for task in tasks:
                task.cancel()
        refused = batch.refused if stop else None
        if error := refused or next((x for x in found if isinstance(x, BaseException)), None):
            raise error
        return found  # type: ignore[return-value]

    async def _one(self, call: Call, read: Callable[[Any], T], batch: _Batch) -> T | Failure:
        # the list of models may change, and a request without a body has nothing to be known by
        if self._cache is None or not call.body:
            return await self._asked(call, read, batch)
        key = key_of(self.endpoint.url + call.path, call.body, call.sample)
        if (document := self._cache.get(key)) is not None:
            # another version may have kept what this one cannot read
            with contextlib.suppress(Trouble):
                found = read(document)
                self.usage.cached += 1
                return found
        # the same request twice in a batch is sent once
        if (first := batch.same.get(key)) is not None:
            return await first
        batch.same[key] = asyncio.current_task()  # type: ignore[assignment]
        return await self._asked(call, read, batch, key)

    async def _asked(self, call: Call, read: Callable[[Any], T], batch: _Batch, key: str | None = None) -> T | Failure:
        http, free = self._connected()
        async with free:
            if batch.refused:
                return Failure(str(batch.refused))
            try:
                document = await self._with_retries(http, call, read)
            except Trouble as trouble:
                if trouble.fatal or (trouble.unreachable and not self._reached):
                    batch.refused = Unusable(f"{self.endpoint} cannot be used: {trouble.why}")
                return Failure(trouble.why, trouble.timed_out)
            except OverBudget as over:
                batch.refused = OverBudget(f"{self.endpoint}: {over}")
                return Failure(str(over))
        self._reached = True
        self.usage.requests += 1
        # what is kept is never asked for again, so that a blank answer could not be mended
        if self._cache is not None and key and not is_blank(document):
            self._cache.put(key, document)
        return read(document)

    async def _with_retries(self, http: Any, call: Call, read: Callable[[Any], Any]) -> Any:
        """The answer's document, once `read` accepts it. Raises the last Trouble when tries or time are used up."""
        started, tries = time.monotonic(), 0
        while True:
            left = self.settings.total - (time.monotonic() - started)
            try:
                async with self.budget.bill(call.most_read, call.most_written) as bill:
                    return await self._try(http, call, read, bill, min(left, self.settings.timeout))
            except Trouble as trouble:
                tries += 1
                wait = pause(trouble, tries, self.settings.backoff)
                left = self.settings.total - (time.monotonic() - started)
                if not trouble.again or tries > self.settings.retries or wait >= left:
                    trouble.why += _given_up(trouble, tries, wait, left)
                    raise
                self.usage.retried += 1
                await asyncio.sleep(wait)

    async def _try(self, http: Any, call: Call, read: Callable[[Any], Any], bill: Bill, seconds: float) -> Any:
        import httpx2

        try:
            # httpx's own limits are for each operation: a server that sends a byte now and then would never exceed them
            async with asyncio.timeout(seconds):
                answer = await self._send(http, call)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol) as problem:
            bill.counted(0, 0)
            raise Trouble(
                f"no connection to {self.endpoint.url}: {_said(problem)}; is the server running?", unreachable=True
            ) from None
        except (TimeoutError, httpx2.TimeoutException):
            raise Trouble(f"no answer within {seconds:.3g} s", timed_out=True) from None
        except httpx2.HTTPError as problem:
            raise Trouble(f"the connection broke off: {_said(problem)}") from None
        if answer.status_code != 200:
            bill.counted(0, 0)
            raise refusal(answer.status_code, answer.headers, answer.text, self._key)
        try:
            document = answer.json()
        except (ValueError, RecursionError):
            raise Trouble(f"the answer is not JSON: {answer.text[:100]!r}") from None
        if counts := counted(document):
            bill.counted(*counts)
        read(document)
        return document

    async def _send(self, http: Any, call: Call) -> Any:
        if not call.body:
            return await http.get(call.path)
        # in ASCII, since a text may hold half of a surrogate pair, which UTF-8 has no bytes for
        return await http.post(call.path, content=json.dumps(call.body).encode(), headers={"Content-Type": "application/json"})

    def _connected(self) -> tuple[Any, asyncio.Semaphore]:
        """The connections of this process, which has an event loop of its own."""
        if self._session is None or self._session[0] != os.getpid():
            import httpx2

            headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
            http = httpx2.AsyncClient(
                base_url=self.endpoint.url, headers=headers, timeout=httpx2.Timeout(None, connect=CONNECT),
                limits=httpx2.Limits(max_connections=self.settings.concurrency),
                # a proxy of the environment does not lead back to this machine
                trust_env=not self.endpoint.local,
            )  # fmt: skip
            self._session = os.getpid(), http, asyncio.Semaphore(self.settings.concurrency)
        return self._session[1:]


_clients: dict[str, Client] = {}


def client_of(name: str) -> Client:
    """The client of openai:URL#NAME, one for all that ask the model in this process: they share its budget and connections."""
    if name not in _clients:
        _clients[name] = Client(endpoint_of(name))
    return _clients[name]


def spent() -> list[dict[str, Any]]:
    """What the clients of `client_of` have asked so far: the model, and its usage."""
    return [{"model": str(client.endpoint), **asdict(client.usage)} for client in _clients.values()]


def _secret(endpoint: Endpoint) -> str:
    """The API key, from the environment alone."""
    named = endpoint.settings.key
    if named and not os.environ.get(named):
        raise RewardlabError(f"the environment variable {named}, which should hold the key for {endpoint.url}, is not set")
    return os.environ[named] if named else os.environ.get("OPENAI_API_KEY", "") if endpoint.secure else ""


def _given_up(trouble: Trouble, tries: int, wait: float, left: float) -> str:
    said = f" (tried {tries} times)" if tries > 1 else ""
    if trouble.again and trouble.after and wait >= left:
        return f"{said}; the server asks to wait {trouble.after:.3g} s, which is longer than total= allows"
    return said


def _said(problem: Exception) -> str:
    return str(problem) or type(problem).__name__


__all__ = ["Call", "Client", "Failure", "Reply", "Request", "client_of", "spent"]
