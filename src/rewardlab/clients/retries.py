"""Failed requests: which are retried, when, and the error messages."""

from __future__ import annotations

import email.utils
import json
import random
import time
from collections.abc import Mapping
from typing import Any

AGAIN = {408, 409, 425, 429, 500, 502, 503, 504, 529}
"""Statuses that may pass by themselves."""
OURS = {401, 402, 403, 404, 405}
"""Statuses that say that the address, the name or the key is wrong: no other request would fare better."""
LONGEST = 60.0
"""Seconds between two tries, unless the server asks for more."""
_ADVICE = {
    401: "the server does not accept the API key: set OPENAI_API_KEY, or name another variable with key=",
    402: "the account has no credit left",
    403: "the API key may not use this model",
    404: "check the address (it usually ends in /v1) and the model's name",
    405: "check the address: it usually ends in /v1",
}


class Trouble(Exception):
    """One try failed.

    again: whether another may do better.  fatal: no other request would do better either.  after: seconds that the server asks to
    wait.  unbilled: the server refused it, so that it cost nothing.  timed_out: no answer came in time.  unreachable: no
    connection came about.
    """

    def __init__(
        self, why: str, *, again: bool = True, fatal: bool = False, after: float = 0.0, unbilled: bool = False,
        timed_out: bool = False, unreachable: bool = False,
    ):  # fmt: skip
        super().__init__(why)
        self.why, self.again, self.fatal, self.after = why, again, fatal, after
        self.unbilled, self.timed_out, self.unreachable = unbilled, timed_out, unreachable


def refusal(status: int, headers: Mapping[str, str], text: str, secret: str = "") -> Trouble:
    """The trouble of an answer that is not 200. secret: must not appear in it, though servers may quote it."""
    says, code = _message(text)
    says = says.replace(secret, "***") if secret else says
    # an account without credit answers 429 too, however long one waits
    empty = status == 429 and code in ("insufficient_quota", "billing_hard_limit_reached")
    advice = _ADVICE[402] if empty else _ADVICE.get(status)
    if 300 <= status < 400:
        advice = f"the server is elsewhere: give the address {headers.get('location', 'that it has moved to')}"
    why = f"HTTP {status}" + (f": {says}" if says else "") + (f" ({advice})" if advice else "")
    again = status in AGAIN and not empty
    fatal = status in OURS or empty or 300 <= status < 400
    return Trouble(why, again=again, fatal=fatal, after=asked_to_wait(headers) if again else 0.0, unbilled=True)


def _message(text: str) -> tuple[str, str]:
    """What a server says of an error, and its code: of OpenAI's form, or of FastAPI's, or any text."""
    try:
        document = json.loads(text)
        error = document.get("error", document.get("detail", document.get("message", document)))
        if isinstance(error, dict):
            return str(error.get("message", error))[:300], str(error.get("code") or error.get("type") or "")
        return str(error)[:300], ""
    except (ValueError, AttributeError, RecursionError):
        return " ".join(text.split())[:300], ""


def asked_to_wait(headers: Mapping[str, str]) -> float:
    """Seconds by the header retry-after-ms or Retry-After, which holds seconds or a date; 0 without one that can be read."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        # nan and infinity are numbers to Python
        return seconds if 0.0 <= seconds < 1e9 else 0.0
    try:
        return max(0.0, email.utils.parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, TypeError):
        return 0.0


def pause(trouble: Trouble, tries: int, backoff: float) -> float:
    """Seconds before the next try, after so many. With jitter, so that requests that failed together do not come back together."""
    # not one of the streams of a run: what is sampled must not depend on how often a server failed
    longest = min(LONGEST, backoff * 2.0 ** (tries - 1))
    return trouble.after + random.uniform(longest / 2, longest)


def checked(document: Any, *path: Any) -> Any:
    """What stands in a document at this path. Raises Trouble if nothing does."""
    try:
        for name in path:
            document = document[name]
        return document
    except (KeyError, IndexError, TypeError):
        at = ".".join(map(str, path))
        raise Trouble(f"the answer has no {at}, which an OpenAI-compatible server sends: {str(document)[:100]}") from None
