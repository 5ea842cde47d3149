"""Limits of a server: request size, time, and authentication."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import math
from dataclasses import dataclass
from typing import Any

from starlette.requests import ClientDisconnect, Request

MIB = 1 << 20
LARGE = MIB // 4
"""Bytes from which on a body is parsed in another thread, so that no other request waits."""
AT_ONCE = 8
"""Bodies of the largest size that may be in memory together."""

CLOSE = {"Connection": "close"}


class Refused(Exception):
    """A request that is answered by an error.

    status: of HTTP.  message: what is wrong, and what to do.  code: for programs.  param: the field in question.
    """

    def __init__(self, status: int, message: str, code: str = "", headers: dict[str, str] | None = None, param: str | None = None):
        super().__init__(message)
        self.status, self.message, self.code, self.headers, self.param = status, message, code, headers or {}, param


@dataclass
class Limits:
    """body: bytes of one.  seconds: in which a body must have come.  token: that a request must carry; None: none."""

    body: int = 16 * MIB
    seconds: float = 10.0
    token: str | None = None

    def __post_init__(self) -> None:
        self._held = 0

    def check_token(self, request: Request) -> None:
        """Raise Refused (401) unless the request carries the token: as bearer, or as the password of a URL, as in http://x:TOKEN@host."""
        if self.token is None:
            return
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            try:
                given = base64.b64decode(given, validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                given = ""
        # in a time that says nothing of where they differ
        if kind.lower() not in ("bearer", "basic") or not hmac.compare_digest(given.encode(), self.token.encode()):
            raise Refused(401, "a token is needed: Authorization: Bearer TOKEN", "invalid_api_key", {"WWW-Authenticate": "Bearer"})

    async def document(self, request: Request) -> Any:
        """The JSON document of a request. Raises Refused for a body of another kind, too long, too slow, or not strict JSON."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            # a page of another site may send a form or plain text from a browser unasked, but not JSON
            raise Refused(415, "the body must be JSON: Content-Type: application/json")
        stated = request.headers.get("content-length", "")
        if stated.isdigit() and int(stated) > self.body and "expect" in request.headers:
            # this client asks before it sends
            raise self._too_long()
        chunks: list[bytes] = []
        try:
            async with asyncio.timeout(self.seconds):
                await self._read(request, chunks)
            body = b"".join(chunks)
            return await asyncio.to_thread(parsed, body) if len(body) > LARGE else parsed(body)
        except TimeoutError:
            raise Refused(408, f"the body did not come within {self.seconds:g} s", headers=dict(CLOSE)) from None
        except ClientDisconnect:
            raise Refused(400, "the connection ended within the body") from None
        finally:
            self._held -= sum(map(len, chunks))

    async def _read(self, request: Request, chunks: list[bytes]) -> None:
        length, refused = 0, None
        async for chunk in request.stream():
            length += len(chunk)
            if length > self.body:
                refused = self._too_long()
            elif self._held + len(chunk) > AT_ONCE * self.body:
                refused = Refused(429, "too many large bodies at once; try again", headers={"Retry-After": "1", **CLOSE})
            # what comes after is read and dropped: a client that still writes would not see the answer
            if refused is None:
                chunks.append(chunk)
                self._held += len(chunk)
        if refused:
            raise refused

    def _too_long(self) -> Refused:
        return Refused(413, f"the body may have {self.body / MIB:g} MiB: send fewer rows at a time", headers=dict(CLOSE))


def parsed(body: bytes) -> Any:
    """The document in a body. Raises Refused for what is not JSON: NaN, half a surrogate pair, nesting without end."""
    from pydantic_core import from_json

    try:
        document = from_json(body, allow_inf_nan=False)
    except ValueError as problem:
        raise Refused(400, f"the body is not JSON: {problem}") from None
    if infinite(document):
        raise Refused(400, "the body is not JSON: a number is too large")
    return document


def infinite(document: Any) -> bool:
    """Whether a number of a document, as 1e999, is beyond what a float can hold."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, float) and not math.isfinite(value):
            return True
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return False
