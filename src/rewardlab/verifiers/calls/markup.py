"""Calls in markup, as models and the Berkeley leaderboard write them. Linear time; nothing is executed.

<function=NAME><parameter=x>1</parameter></function>                       Qwen3-Coder; within <tool_call> or not
<function=NAME>{"x": 1}</function>                                         Llama
<invoke name="NAME"><parameter name="x">1</parameter></invoke>             Anthropic
<function name="NAME"><param name="x" type="integer">1</param></function>  BFCL's concise_xml
<function name="NAME"><params><param name="x" value="1" type="integer"/></params></function>    BFCL's verbose_xml
NAME<arg_key>x</arg_key><arg_value>1</arg_value>                           GLM, within <tool_call>
"""

from __future__ import annotations

import ast
import contextlib
import html
import json
import re
from collections.abc import Mapping
from typing import Any

from rewardlab.text import strict_json

OPENS = re.compile(r"<(?:function|invoke)(?:=|\s+name\s*=)")
_ATTRIBUTES = r"((?:\s+[a-z_]{1,30}\s*=\s*(?:\"[^\"]*\"|'[^']*'))*)"
_CALL = re.compile(
    r"<(function|invoke)(?:=\s*([^\s<>\"']{1,200})|\s+name\s*=\s*[\"']([^<>\"']{1,200})[\"'])\s*>(.*?)</\1>", re.DOTALL
)
_PARAMETER = re.compile(
    rf"<(parameter|param)(?:=\s*([^\s<>\"']{{1,200}})\s*>(.*?)</\1>|{_ATTRIBUTES}\s*(?:/>|>(.*?)</\1>))", re.DOTALL
)
_ATTRIBUTE = re.compile(r"([a-z_]{1,30})\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_AROUND = re.compile(r"</?(?:params|parameters|arguments)\s*>")
_PAIR = re.compile(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
KINDS = {
    "dict": "object", "map": "object", "hashmap": "object", "float": "number", "double": "number", "int": "integer",
    "long": "integer", "str": "string", "char": "string", "bool": "boolean", "tuple": "array", "list": "array", "any": "",
}  # fmt: skip
"""Types of Python, Java and BFCL, as JSON schema calls them."""
LONGEST, DEEPEST = 20_000, 50


class Written(str):
    """The text of a value whose type the markup does not show, or shows in an attribute (`kind`)."""

    kind = ""

    @classmethod
    def of(cls, text: str, kind: str = "") -> Written:
        value = cls(text)
        value.kind = KINDS.get(kind.lower(), kind.lower())
        return value

    def as_kind(self, kind: str) -> Any:
        """The value as one of this type of JSON schema; without one, or where it cannot be, as JSON if it is JSON, else as text."""
        kind = kind or self.kind
        if kind == "string":
            return str(self)
        if kind == "boolean" and self.strip().lower() in ("true", "false"):
            return self.strip().lower() == "true"
        try:
            return strict_json.parse(self)
        except ValueError:
            return self._literal()

    def _literal(self) -> Any:
        """As Python writes lists, True and None; else the text itself."""
        text = self.strip()
        listed = text[:1] in ("[", "{", "(") and len(text) < LONGEST and sum(map(text.count, "[{(")) < DEEPEST
        if listed or text in ("True", "False", "None"):
            with contextlib.suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
                return strict_json.parse(json.dumps(ast.literal_eval(text), allow_nan=False))
        return str(self)


def calls_in(text: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The names and arguments of all calls in a text with <function...> or <invoke ...>. Raises ValueError."""
    found = list(_CALL.finditer(text))
    if not found or len(OPENS.findall(text)) != len(found):
        raise ValueError("a <function> or <invoke> is not closed, or has no name")
    return [(call[2] or call[3], _arguments(call[4])) for call in found]


def pairs_in(text: str) -> tuple[str, Mapping[str, Any]]:
    """The name and arguments of a call whose arguments are pairs of <arg_key> and <arg_value>. Raises ValueError."""
    name = text.partition("<arg_key>")[0].strip()
    if not name or re.search(r"\s", name) or _PAIR.sub("", text).strip() != name:
        raise ValueError("it is not a name with pairs of <arg_key> and <arg_value>")
    return name, _once([(key.strip(), Written.of(_trimmed(value))) for key, value in _PAIR.findall(text)])


def _arguments(body: str) -> Mapping[str, Any]:
    if body.strip().startswith("{"):
        value = strict_json.parse(body)
        if isinstance(value, Mapping):
            return value
    if _AROUND.sub("", _PARAMETER.sub("", body)).strip():
        raise ValueError("a call holds something other than parameters")
    return _once([_argument(found) for found in _PARAMETER.finditer(body)])


def _argument(found: re.Match[str]) -> tuple[str, Any]:
    if found[2]:
        return found[2], Written.of(_trimmed(found[3]))
    given = {name: html.unescape(double or single) for name, double, single in _ATTRIBUTE.findall(found[4] or "")}
    if "name" not in given:
        raise ValueError("a parameter has no name")
    value = given["value"] if found[5] is None and "value" in given else html.unescape(_trimmed(found[5] or ""))
    return given["name"], Written.of(value, given.get("type", ""))


def _trimmed(text: str) -> str:
    """A value without the line breaks that set it apart from its tags."""
    return text.removeprefix("\n").removesuffix("\n")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("an argument is given twice")
    return dict(pairs)
