"""JSON Schema validation, for worker processes: the regular expressions of a schema may backtrack without end on hostile text."""

from __future__ import annotations

import json
import sys
from functools import lru_cache
from typing import Any

import jsonschema
import referencing

from .formats import checking_all, unchecked

FRAMES = 5_000
"""Python's recursion limit: validation takes about ten frames per level of the value."""


def violation(checks: list[tuple[str, Any, Any]], formats: bool) -> dict[str, str]:
    """{} if every value fits its schema; {"wrong": reason} for the first that does not; {"unusable": reason} for an invalid schema.

    checks: (name for the reason, schema, value).  References are resolved within the schema only; nothing is fetched.
    """
    # the default of 1000 frames would refuse values that are nested 100 deep
    sys.setrecursionlimit(max(FRAMES, sys.getrecursionlimit()))
    return next((violation for check in checks if (violation := _violation(*check, formats))), {})


def _violation(name: str, schema: Any, value: Any, formats: bool) -> dict[str, str]:
    try:
        error = next(_validator(json.dumps(schema), formats).iter_errors(value), None)
    except jsonschema.SchemaError as problem:
        return {"unusable": f"{name}the schema is not valid at {problem.json_path}: {problem.message}"}
    except (referencing.exceptions.Unresolvable, RecursionError) as problem:
        return {"unusable": f"{name}the schema cannot be resolved: {problem}"}
    return {} if error is None else {"wrong": f"{name}at {error.json_path}: {error.message[:300]}"}


@lru_cache(maxsize=256)
def _validator(written: str, formats: bool) -> Any:
    """A validator for a schema (JSON text). Cached: checking a schema takes longer than checking a value. Raises SchemaError."""
    schema = json.loads(written)
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    kind.check_schema(schema)
    checker = checking_all(kind.FORMAT_CHECKER) if formats else None
    if formats and (name := unchecked(schema, checker)):
        raise jsonschema.SchemaError(f"the format {name!r} is checked only with: pip install 'jsonschema[format-nongpl]'")
    return kind(schema, registry=referencing.Registry(), format_checker=checker)
