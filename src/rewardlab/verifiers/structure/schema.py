"""JSON Schema, for processes of `kit/workers.py`: patterns of a schema may backtrack without end on hostile text."""

from __future__ import annotations

import json
import sys
from functools import lru_cache
from typing import Any

import jsonschema
import referencing

FRAMES = 5_000
"""Depth of Python's stack: validation takes some ten frames for a level of the value."""


def violation(checks: list[tuple[str, Any, Any]], formats: bool) -> dict[str, str]:
    """{} where every value fits its schema, {"wrong": reason} of the first that does not, {"unusable": reason} of a faulty schema.

    checks: (name for the reason, schema, value).  References are followed within a schema alone; nothing is fetched.
    """
    sys.setrecursionlimit(max(FRAMES, sys.getrecursionlimit()))
    return next((found for check in checks if (found := _violation(*check, formats))), {})


def _violation(name: str, schema: Any, value: Any, formats: bool) -> dict[str, str]:
    try:
        found = next(_validator(json.dumps(schema), formats).iter_errors(value), None)
    except jsonschema.SchemaError as problem:
        return {"unusable": f"{name}the schema is not valid: {problem.message}"}
    except (referencing.exceptions.Unresolvable, RecursionError) as problem:
        return {"unusable": f"{name}the schema cannot be followed: {problem}"}
    return {} if found is None else {"wrong": f"{name}at {found.json_path}: {found.message[:300]}"}


@lru_cache(maxsize=256)
def _validator(written: str, formats: bool) -> Any:
    """Checking a schema takes longer than checking a value. Raises SchemaError."""
    schema = json.loads(written)
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    kind.check_schema(schema)
    return kind(schema, registry=referencing.Registry(), format_checker=kind.FORMAT_CHECKER if formats else None)
