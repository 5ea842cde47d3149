"""The formats of JSON Schema that jsonschema checks only where further packages are installed.

Its own checker answers where it has one; these stand in for the others, after the RFCs that the standard names.
"""

from __future__ import annotations

import copy
import datetime
import re
from collections.abc import Callable
from typing import Any

KNOWN = (
    "date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6", "uri",
    "uri-reference", "iri", "iri-reference", "uuid", "uri-template", "json-pointer", "relative-json-pointer", "regex",
)  # fmt: skip
"""The formats of draft 2020-12."""

_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([zZ]|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII)
_TIME = r"T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)"
_DURATION = re.compile(rf"P(?:\d+W|(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)(?:{_TIME})?|{_TIME})", re.ASCII)
_POINTER = r"(?:/(?:[^~/]|~[01])*)*"
_LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)", re.ASCII)
_SAFE, _HEX = r"A-Za-z0-9._~!$&'()*+,;=:@/?\-", r"%[0-9A-Fa-f]{2}"
_URI_AUTHORITY = rf"//(?:(?:[{_SAFE}]|{_HEX})*|(?:[^/?#\s]*@)?\[[0-9A-Fa-f:.vV]+\](?::\d*)?(?:[/?](?:[{_SAFE}]|{_HEX})*)?)"


def _uri(text: str, reference: bool, wide: bool) -> bool:
    """Whether it is a URI (RFC 3986), or an IRI if `wide`; of references the scheme may be left out."""
    if wide:
        text = re.sub(r"[\u00a0-\U0010ffff]", "x", text)
    rest = rf"(?:{_URI_AUTHORITY}|(?!//)(?:[{_SAFE}]|{_HEX})*)(?:\#(?:[{_SAFE}]|{_HEX})*)?"
    scheme = r"[A-Za-z][A-Za-z0-9+.\-]*:"
    if re.fullmatch(scheme + rest, text):
        return True
    # a colon within the first part of a path would be that of a scheme
    return reference and re.fullmatch(rest, text) is not None and ":" not in re.split("[/?#]", text)[0]


def _date_time(text: str) -> bool:
    day, clock = text[:10], text[11:]
    return text[10:11] in ("T", "t") and _date(day) and _CLOCK.fullmatch(clock) is not None


def _date(text: str) -> bool:
    try:
        return bool(re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII)) and datetime.date.fromisoformat(text) is not None
    except ValueError:
        return False


def _hostname(text: str) -> bool:
    return len(text) <= 253 and all(_LABEL.fullmatch(label) for label in text.split("."))


CHECKS: dict[str, Callable[[str], Any]] = {
    "date-time": _date_time,
    "time": _CLOCK.fullmatch,
    "duration": _DURATION.fullmatch,
    "hostname": _hostname,
    "uri": lambda text: _uri(text, False, False),
    "uri-reference": lambda text: _uri(text, True, False),
    "iri": lambda text: _uri(text, False, True),
    "iri-reference": lambda text: _uri(text, True, True),
    "json-pointer": re.compile(_POINTER).fullmatch,
    "relative-json-pointer": re.compile(rf"(?:0|[1-9]\d*)(?:#|{_POINTER})", re.ASCII).fullmatch,
}


def checking_all(checker: Any) -> Any:
    """A format checker of jsonschema, with checks for the formats that it has none for."""
    whole = copy.copy(checker)
    whole.checkers = dict(checker.checkers)
    for name, check in CHECKS.items():
        if name not in whole.checkers:
            whole.checkers[name] = (lambda value, check=check: not isinstance(value, str) or bool(check(value)), ())
    return whole


def unchecked(schema: Any, checker: Any) -> str:
    """A format of the standard that the schema names and nothing here checks; "" without one."""
    if isinstance(schema, dict):
        name = schema.get("format")
        own = name if isinstance(name, str) and name in KNOWN and name not in checker.checkers else ""
        return own or next(filter(None, (unchecked(inner, checker) for inner in schema.values())), "")
    return next(filter(None, (unchecked(inner, checker) for inner in schema)), "") if isinstance(schema, list) else ""
