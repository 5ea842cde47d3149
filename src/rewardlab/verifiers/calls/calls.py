"""Parse function calls as models write them. Nothing is executed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rewardlab.processes.pool import Failed, workers
from rewardlab.text import strict_json
from rewardlab.text.blocks import json_block, last_block

from . import tokens
from .markup import KINDS, OPENS, Written, calls_in, pairs_in

FORMS = ("auto", "hermes", "json", "python", "xml")
LONGEST = 20_000
"""Longest text of calls in Python syntax, in characters."""
_MARKED = re.compile(
    r"<(?:TOOLCALL|tool_calls|tools|function_calls|\|tool_calls?\|?|\|tool_calls?_start\|)>(.*?)"
    r"(?:</(?:TOOLCALL|tool_calls|tools|function_calls)>|<\|/tool_calls?\|>|<tool_calls?\|>|<\|tool_calls?_end\|>|\Z)"
    r"|\[TOOL_CALLS\](.*)|<\|python_tag\|>(.*)|\bfunctools(?=\[)(.*)",
    re.DOTALL,
)
"""How Nemotron, Mistral, Llama, Phi and others mark that calls follow."""
_NAME = re.compile(r"[A-Za-z_][\w.-]{0,200}")
_TAGGED = re.compile(r"<tool_call>(.*?)(</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)

Schema = Mapping[str, Any]


class Malformed(ValueError):
    """The calls cannot be parsed; the message says why."""


class Call(NamedTuple):
    """positional: arguments without a name, which Python syntax allows."""

    name: str
    arguments: Mapping[str, Any]
    positional: Sequence[Any] = ()

    def __str__(self) -> str:
        written = [*map(repr, self.positional), *(f"{name}={value!r}" for name, value in self.arguments.items())]
        text = f"{self.name}({', '.join(written)})"
        return text if len(text) <= 120 else text[:119] + "…"

    def bound(self, tools: Mapping[str, Schema], defaults: bool = True, like: Sequence[Call] = ()) -> Call:
        """The call with all arguments by name, and with `defaults` for missing ones, by its tool's schema. Raises Malformed.

        like: gold calls, which show the types of arguments that no schema knows.
        """
        known = tools.get(self.name, {}).get("properties", {})
        if len(self.positional) > len(known):
            raise Malformed(f"{self.name} has more positional arguments than its schema has names")
        placed = dict(zip(known, self.positional, strict=False))
        if twice := placed.keys() & self.arguments.keys():
            raise Malformed(f"{self.name} has the argument {min(twice)} twice")
        alike = [call.arguments.items() for call in like if call.name == self.name]
        texts = {name for arguments in alike for name, value in arguments if isinstance(value, str)}
        given = {name: _typed(name, value, known.get(name), texts) for name, value in self.arguments.items()}
        missing = {name: rules["default"] for name, rules in known.items() if isinstance(rules, Mapping) and "default" in rules}
        return Call(self.name, (missing if defaults else {}) | placed | given)


def _typed(name: str, value: Any, rules: Any, texts: set[str]) -> Any:
    """An argument of markup by its type: that of its schema, or of a gold call."""
    if not isinstance(value, Written):
        return value
    kind = rules.get("type") if isinstance(rules, Mapping) else None
    return value.as_kind(kind if isinstance(kind, str) else "string" if name in texts and not value.kind else "")


def read_all(texts: Sequence[str], form: str, seconds: float) -> list[list[Call] | Malformed]:
    """The calls of each text. form: one of FORMS.  seconds: limit per text in Python syntax, which worker processes parse."""
    parsed = [_read(text, form) for text in texts]
    in_python = [i for i, result_or_code in enumerate(parsed) if isinstance(result_or_code, str)]
    pool = workers("rewardlab.verifiers.calls.syntax:calls", seconds=seconds)
    for i, result in zip(in_python, pool.map([(parsed[i],) for i in in_python]), strict=True):
        if isinstance(result, Failed):
            parsed[i] = Malformed(f"reading the calls {result.why}")
        elif "wrong" in result.value:
            parsed[i] = Malformed(f"not calls in Python syntax: {result.value['wrong']}")
        else:
            parsed[i] = [Call(**call) for call in result.value["calls"]]
    return [Malformed(result_or_code) if isinstance(result_or_code, str) else result_or_code for result_or_code in parsed]


def _read(text: str, form: str) -> list[Call] | Malformed | str:
    """The calls of a text; or, if they are in Python syntax, the code that is still to be parsed."""
    try:
        if form == "hermes" or (form == "auto" and "<tool_call>" in text):
            return _hermes(text)
        if form == "auto" and tokens.OPENS.search(text):
            return [Call(name, arguments) for name, arguments in tokens.calls_in(text)]
        if form == "auto" and (marked := _MARKED.search(text)):
            text = next(part for part in marked.groups() if part is not None)
        if form == "xml" or (form == "auto" and OPENS.search(text)):
            return _markup(text)
        block = json_block(text, "json")
        stated = text.strip() if block is None else block
        if form == "json" or (form == "auto" and (block is not None or _is_json(stated))):
            return from_json(strict_json.parse(stated))
    except ValueError as problem:
        return problem if isinstance(problem, Malformed) else Malformed(f"not JSON: {problem}")
    except RecursionError:
        return Malformed("the calls are nested too deeply")
    block = last_block(text, "python", "py", "tool_code", "")
    code = text.strip() if block is None else block
    return code if len(code) <= LONGEST else Malformed(f"the calls are over {LONGEST} characters long")


def tries(text: str) -> bool:
    """Whether a text has a mark of calls, however broken they are."""
    return "<tool_call" in text or bool(_MARKED.search(text) or OPENS.search(text) or tokens.OPENS.search(text))


def _hermes(text: str) -> list[Call]:
    tagged = _TAGGED.findall(text)
    if not all(end for _, end in tagged):
        raise Malformed("<tool_call> is not closed")
    if text.count("</tool_call>") != len(tagged):
        raise Malformed("<tool_call> and </tool_call> do not match")
    return [call for body, _ in tagged for call in _within_tag(body)]


def _markup(text: str) -> list[Call]:
    try:
        return [Call(name, arguments) for name, arguments in calls_in(text)]
    except ValueError as problem:
        raise Malformed(str(problem)) from None


def _within_tag(body: str) -> list[Call]:
    """One call over any number of lines, one call a line, or a list of calls; or markup."""
    if OPENS.match(body.lstrip()):
        return _markup(body)
    if "<arg_key>" in body or _NAME.fullmatch(body.strip()):
        try:
            return [Call(*pairs_in(body))]
        except ValueError as problem:
            raise Malformed(str(problem)) from None
    try:
        values = [strict_json.parse(body)]
    except ValueError:
        lines = [line for line in body.splitlines() if line.strip()]
        if len(lines) < 2:
            raise
        values = [strict_json.parse(line) for line in lines]
    # calls of one reply, as some models write them
    at_once = len(values) == 1 and isinstance(values[0], list) and bool(values[0])
    calls = [call for value in values for call in from_json(value)]
    if len(calls) != len(values) and not at_once:
        raise Malformed("what is between <tool_call> and </tool_call> is not one call, one call a line, or a list of calls")
    return calls


def from_json(value: Any) -> list[Call]:
    """Calls from data: {"name", "arguments"} (or "parameters"), a list of them, or OpenAI's format. Raises Malformed.

    The arguments are an object or its JSON text.
    """
    if isinstance(value, Mapping) and "tool_calls" in value:
        value = value["tool_calls"]
    return [_call(call) for call in (value if isinstance(value, list | tuple) else [value])]


def _call(value: Any) -> Call:
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping):
        value = value["function"]
    elif isinstance(value, Mapping) and "name" not in value and isinstance(value.get("function"), str):
        # BFCL's JSON: {"function": NAME, "parameters": {...}}
        value = {**value, "name": value["function"]}
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        raise Malformed("a call is not an object with a name")
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        arguments = strict_json.parse(arguments)
    if not isinstance(arguments, Mapping):
        raise Malformed(f"the arguments of {value['name'][:60]} are not an object")
    return Call(value["name"], arguments)


def tools_from(tools: Iterable[Any]) -> dict[str, Schema]:
    """Function name to the JSON schema of its arguments, from tools {"name", "parameters"}, bare or in OpenAI's format.

    Raises Malformed.
    """
    schemas: dict[str, Schema] = {}
    if not isinstance(tools, list | tuple):
        raise Malformed(f"the tools are no list but {tools!r:.60}")
    for entry in tools:
        tool = entry["function"] if isinstance(entry, Mapping) and isinstance(entry.get("function"), Mapping) else entry
        if not isinstance(tool, Mapping) or not isinstance(tool.get("name"), str):
            raise Malformed("a tool is not an object with a name")
        schema = tool.get("parameters") or tool.get("input_schema") or {"type": "object", "properties": {}}
        if not isinstance(schema, Mapping) or not isinstance(schema.get("properties", {}), Mapping):
            raise Malformed(f"the parameters of the tool {tool['name'][:60]} are no JSON schema with `properties`")
        schemas[tool["name"]] = in_json_schema(schema)
    return schemas


def in_json_schema(schema: Any) -> Any:
    """A schema with the names that JSON schema has for types: BFCL says dict, float, tuple and any."""
    if isinstance(schema, list):
        return [in_json_schema(inner) for inner in schema]
    if not isinstance(schema, Mapping):
        return schema
    kind = schema.get("type")
    known = {**schema, "type": KINDS.get(kind.lower(), kind)} if isinstance(kind, str) else dict(schema)
    if known.get("type") == "":
        del known["type"]
    for name in ("items", "additionalProperties"):
        if name in known:
            known[name] = in_json_schema(known[name])
    if isinstance(known.get("properties"), Mapping):
        known["properties"] = {name: in_json_schema(inner) for name, inner in known["properties"].items()}
    return known


def _is_json(text: str) -> bool:
    try:
        strict_json.parse(text)
    except ValueError:
        return False
    return True
