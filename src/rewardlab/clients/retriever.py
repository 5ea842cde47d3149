"""Search engines behind an address, by the protocol of Search-R1, which the clients of verl and SkyRL speak too.

    POST http://host:8000/retrieve     {"queries": ["who wrote Emma", ...], "topk": 3, "return_scores": true}
    {"result": [[{"document": {"id": "7", "contents": "\\"Emma\\"\\nA novel by Jane Austen."}, "score": 21.3}, ...], ...]}

A list for each query, the best document first. The first line of `contents` is the title, in quotation marks; documents may have
title and text apart. Servers that give no scores have the documents themselves in their place. After search_r1/search/
retrieval_server.py and infer.py of PeterGriffinJin/Search-R1, in the copy wyk-xjtu/Search-R1, b112563 (Jin et al. 2025,
arXiv:2503.09516).
"""

from __future__ import annotations

import functools
import http.client
import json
import math
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from rewardlab.clients.retries import AGAIN, OURS
from rewardlab.errors import RewardlabError

KEY = "RETRIEVER_KEY"
"""Environment variable with the token that requests carry, if it is set."""
TIMEOUT = 30.0
"""Seconds of one try."""
MOST = 32 << 20
"""Bytes of an answer: more are no documents that a policy could read."""
WAITS = (0.5, 2.0)
"""Seconds before each further try of a request that failed in a way that may pass."""
PATIENCE = 5
"""Searches that may fail one after another. The last of them stops the run."""


class SearchFailed(RewardlabError):
    """A search engine gave no results, which is not to say that there are none.  why: in a few words."""

    def __init__(self, why: str, url: str):
        super().__init__(f"the search engine at {url} failed: {why}")
        self.why = why


class Unreachable(RewardlabError):
    """No search can be expected to succeed: the address is wrong, or searches failed too often."""


class _Trouble(Exception):
    """One try failed.  again: whether another may do better.  fatal: no other request would do better either."""

    def __init__(self, why: str, again: bool = False, fatal: bool = False):
        super().__init__(why)
        self.why, self.again, self.fatal = why, again, fatal


class _Stay(urllib.request.HTTPRedirectHandler):
    """A request that is sent elsewhere arrives there without its body, so that it is told instead."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def is_address(name: Any) -> bool:
    """Whether a corpus is named by the address of a search engine."""
    return isinstance(name, str) and name.startswith(("http://", "https://"))


@functools.cache
def retriever_at(address: str) -> Retriever:
    """The search engine at an address, one for all threads of a process. Raises RewardlabError for what is no address."""
    parts = urlsplit(address)
    if not parts.hostname:
        raise RewardlabError(f"{address!r} is no address of a search engine: write http://HOST:PORT/retrieve")
    if parts.username or parts.password:
        raise RewardlabError(f"the address of the search engine {parts.hostname} holds a password; put it into {KEY} instead")
    return Retriever(address.rstrip("/") + ("" if parts.path.strip("/") else "/retrieve"))


class Retriever:
    """A search engine.  answered, failed: searches so far.  in_a_row: the failed ones since one was answered."""

    def __init__(self, url: str):
        self.url, self.answered, self.failed, self.in_a_row = url, 0, 0, 0
        self._lock, self._opener = threading.Lock(), urllib.request.build_opener(_Stay)

    def best(self, query: str, k: int = 1) -> list[dict[str, str]]:
        """The k best documents {id, title, text}, best first. Raises as `search` does."""
        return [document for document, _ in self.search([query], k)[0]]

    def search(self, queries: Sequence[str], k: int = 1) -> list[list[tuple[dict[str, str], float]]]:
        """For each query its best documents {id, title, text} with their scores (0 without one), asked for in one request.

        Raises SearchFailed where there is no answer, and Unreachable where no other search would get one, or `PATIENCE` of them
        in a row got none.
        """
        try:
            found = self._tried(list(queries), k)
        except _Trouble as trouble:
            with self._lock:
                self.failed, self.in_a_row = self.failed + 1, self.in_a_row + 1
                in_a_row = self.in_a_row
            if trouble.fatal:
                raise Unreachable(f"the search engine at {self.url} cannot be used: {trouble.why}") from None
            if in_a_row >= PATIENCE:
                raise Unreachable(
                    f"the search engine at {self.url} failed {in_a_row} searches in a row; the last: {trouble.why}. Is it running? "
                    "A run that went on would learn from searches that find nothing"
                ) from None
            raise SearchFailed(trouble.why, self.url) from None
        with self._lock:
            self.answered, self.in_a_row = self.answered + 1, 0
        return found

    def _tried(self, queries: list[str], k: int) -> list[list[tuple[dict[str, str], float]]]:
        for wait in (*WAITS, None):
            try:
                return read(self._asked({"queries": queries, "topk": k, "return_scores": True}), len(queries))
            except _Trouble as trouble:
                if wait is None or not trouble.again:
                    raise
                time.sleep(wait)
        raise AssertionError("the last try returns or raises")

    def _asked(self, body: dict[str, Any]) -> Any:
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get(KEY):
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(self.url, json.dumps(body).encode(), headers)
        try:
            with self._opener.open(request, timeout=TIMEOUT) as reply:
                return json.loads(_whole(reply))
        except urllib.error.HTTPError as problem:
            raise _refused(problem) from None
        except (TimeoutError, urllib.error.URLError, http.client.HTTPException, OSError) as problem:
            reason = getattr(problem, "reason", problem)
            slow = isinstance(reason, TimeoutError)
            says = f"no answer within {TIMEOUT:g} s" if slow else str(getattr(reason, "strerror", None) or reason).lower()
            raise _Trouble(says, again=True) from None
        except (ValueError, RecursionError):
            raise _Trouble("its answer is no JSON") from None


def _whole(reply: http.client.HTTPResponse) -> bytes:
    """The body of an answer. Raises TimeoutError where it is not there in `TIMEOUT`: the socket's own limit is for each piece."""
    end, pieces, size = time.monotonic() + TIMEOUT, [], 0
    while piece := reply.read1(1 << 16):
        pieces.append(piece)
        size += len(piece)
        if size > MOST:
            raise _Trouble(f"its answer has more than {MOST >> 20} MiB")
        if time.monotonic() > end:
            raise TimeoutError
    if reply.length:
        raise http.client.IncompleteRead(b"", reply.length)
    return b"".join(pieces)


def _refused(problem: urllib.error.HTTPError) -> _Trouble:
    says = " ".join(problem.read(2000).decode("utf-8", "replace").split())[:200]
    why = f"HTTP {problem.code}" + (f": {says}" if says else "")
    if 300 <= problem.code < 400:
        where = problem.headers.get("location", "that it moved to")
        return _Trouble(f"{why} (it is elsewhere: give the address {where})", fatal=True)
    if problem.code in (401, 403):
        why += f" (put the token into the environment variable {KEY})"
    elif problem.code in OURS:
        why += " (check the address; Search-R1's ends in /retrieve)"
    return _Trouble(why, again=problem.code in AGAIN, fatal=problem.code in OURS)


def read(document: Any, queries: int) -> list[list[tuple[dict[str, str], float]]]:
    """The documents {id, title, text} of each query, with scores, of a server's answer. Raises _Trouble for one that is none."""
    result = document.get("result") if isinstance(document, dict) else None
    if not isinstance(result, list) or not all(isinstance(found, list) for found in result):
        raise _Trouble('its answer has no lists of documents under "result"')
    if len(result) != queries:
        raise _Trouble(f"it answered {len(result)} queries of {queries}")
    return [[_entry(entry) for entry in found] for found in result]


def _entry(entry: Any) -> tuple[dict[str, str], float]:
    inner = entry.get("document") if isinstance(entry, dict) else None
    # a document of its own may have a column of that name
    document, score = (inner, entry.get("score")) if inner is not None and "contents" not in entry else (entry, None)
    return _document(document), _finite(score)


def _finite(score: Any) -> float:
    try:
        return float(score) if isinstance(score, int | float) and math.isfinite(score) else 0.0
    except OverflowError:
        # JSON knows whole numbers of any size
        return 0.0


def _document(document: Any) -> dict[str, str]:
    if isinstance(document, str):
        document = {"contents": document}
    if not isinstance(document, dict):
        raise _Trouble(f"a document of its answer is {type(document).__name__}, not text")
    if isinstance(document.get("text"), str):
        title, text = str(document.get("title") or ""), document["text"]
    elif isinstance(document.get("contents"), str):
        title, _, text = document["contents"].partition("\n")
        title, text = (title, text) if text else ("", title)
    else:
        raise _Trouble('a document of its answer has neither "contents" nor "text"')
    name = document.get("id")
    return {"id": "" if name is None else str(name), "title": title.strip().strip('"'), "text": text.strip()}
