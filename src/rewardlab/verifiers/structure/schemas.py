"""JSON schemas as gold answers: found within what APIs wrap them in, and refused where a keyword is misspelt.

By the standard an unknown keyword means nothing, so that a schema in a wrapper, or with `requird`, would fit every reply.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from rewardlab.text import strict_json

TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
OF_OBJECTS = (
    "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties",
    "dependentRequired", "dependentSchemas", "unevaluatedProperties", "dependencies",
)  # fmt: skip
OTHERS = (
    "type", "enum", "const", "$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else",
    "items", "prefixItems", "additionalItems", "contains", "minContains", "maxContains", "unevaluatedItems", "minItems", "maxItems",
    "uniqueItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
    "format", "extends", "disallow", "divisibleBy",
)  # fmt: skip
JUDGING = (*OF_OBJECTS, *OTHERS)
"""Keywords that can refuse a value."""
TELLING = (
    "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment", "$defs", "definitions",
    "title", "description", "default", "example",
    "examples", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType",
    "contentSchema", "nullable", "discriminator", "xml", "externalDocs", "strict", "name", "optional", "propertyOrdering",
)  # fmt: skip
"""Keywords that say something and refuse nothing, of the standard and of OpenAPI."""
MEANT = {"min": "minimum", "max": "maximum", "choices": "enum", "values": "enum", "options": "enum", "regex": "pattern"}
SCHEMAS = (
    "additionalProperties", "propertyNames", "unevaluatedProperties", "items", "additionalItems", "unevaluatedItems", "contains",
    "not", "if", "then", "else", "contentSchema",
)  # fmt: skip
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
"""Keywords whose value is a schema, a list of schemas, or names with schemas."""
WHOLE = ("items", "prefixItems", "additionalProperties")
"""Where what is within a value is said, whatever else is."""
KINDS = {
    "dict": "object", "map": "object", "float": "number", "double": "number", "int": "integer", "long": "integer", "str": "string",
    "text": "string", "bool": "boolean", "list": "array", "tuple": "array", "none": "null",
}  # fmt: skip
"""What programming languages call the types."""
WRAPPERS = (
    "schema", "json_schema", "parameters", "input_schema", "inputSchema", "function", "response_format", "text", "format",
    "guided_json", "structured_outputs", "json",
)  # fmt: skip
"""Where OpenAI, Anthropic, vLLM and MCP put a schema."""


def schema_of(data: Any) -> Mapping[str, Any] | bool:
    """The schema that a gold answer is or has in a wrapper. Raises ValueError where it is none, or would fit anything."""
    data = strict_json.parse(data) if isinstance(data, str) else data
    if isinstance(data, bool):
        return data
    if not isinstance(data, Mapping):
        raise ValueError("it is neither an object nor true or false")
    if (inner := _wrapped(data)) is not None:
        return schema_of(inner)
    for place, schema in _schemas(data, "$"):
        if wrong := _mistake(schema):
            raise ValueError(f"at {place}, {wrong}")
    if not any(keyword in data for keyword in JUDGING):
        raise ValueError(f"it has no keyword that could refuse a value ({_listed(data) or 'it is empty'})")
    return _of_objects(data)


def _of_objects(schema: Any) -> Any:
    """The schema, of objects wherever it only lists properties: by the standard every other value would fit too."""
    if isinstance(schema, list):
        return [_of_objects(inner) for inner in schema]
    if not isinstance(schema, Mapping):
        return schema
    within = {keyword: _of_objects(schema[keyword]) for keyword in WHOLE if keyword in schema}
    for keyword in ("properties", "patternProperties"):
        if isinstance(schema.get(keyword), Mapping):
            within[keyword] = {name: _of_objects(inner) for name, inner in schema[keyword].items()}
    lists = any(keyword in schema for keyword in OF_OBJECTS) and not any(keyword in schema for keyword in OTHERS)
    return {**({"type": "object"} if lists else {}), **schema, **within}


def _wrapped(data: Mapping[str, Any]) -> Any:
    """What stands in a wrapper; None for a schema itself."""
    if any(keyword in data for keyword in JUDGING if keyword not in ("type", "format")) or data.get("type") in TYPES:
        return None
    inner = next((data[name] for name in WRAPPERS if isinstance(data.get(name), Mapping | bool)), None)
    if inner is None:
        inner = next((data[name] for name in WRAPPERS if str(data.get(name)).lstrip().startswith("{")), None)
    return inner


def _schemas(schema: Any, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A schema and those within it, each with its place."""
    if not isinstance(schema, Mapping):
        return
    yield place, schema
    for keyword, value in schema.items():
        at = f"{place}.{keyword}"
        if keyword in SCHEMAS:
            yield from _schemas(value, at)
        if keyword in LISTS and isinstance(value, list):
            for i, inner in enumerate(value):
                yield from _schemas(inner, f"{at}[{i}]")
        if keyword in MAPS and isinstance(value, Mapping):
            for name, inner in value.items():
                yield from _schemas(inner, f"{at}.{name}")


def _mistake(schema: Mapping[str, Any]) -> str:
    """What is wrong with the keywords of a schema; "" if nothing is."""
    known = (*JUDGING, *TELLING)
    if schema and not any(keyword in known for keyword in schema) and all(isinstance(x, Mapping) for x in schema.values()):
        return f'{_listed(schema)} are no keywords; if they are properties, write {{"type": "object", "properties": {{...}}}}'
    for keyword in schema:
        if meant := _meant(keyword):
            return f"{keyword!r} is no keyword; did you mean {meant!r}?"
    kind = schema.get("type")
    if isinstance(kind, str) and kind not in TYPES:
        near = KINDS.get(kind.lower()) or next(iter(difflib.get_close_matches(kind.lower(), TYPES, n=1)), "")
        return f"{kind!r} is no type" + (f"; did you mean {near!r}?" if near else f"; these are: {', '.join(TYPES)}")
    return ""


def _meant(keyword: str) -> str:
    """The keyword that a misspelt one is near; "" for one that is known, or near none."""
    if keyword in JUDGING or keyword in TELLING or keyword.startswith("x-"):
        return ""
    if keyword in MEANT:
        return MEANT[keyword]
    spelt = {name.lower().lstrip("$"): name for name in (*TELLING, *JUDGING)}
    near = difflib.get_close_matches(keyword.lower().replace("_", "").replace("-", "").lstrip("$"), spelt, n=1, cutoff=0.82)
    return spelt[near[0]] if near else ""


def _listed(data: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, list(data)[:5]))
