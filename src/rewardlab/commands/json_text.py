"""What a command prints with --json."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def as_json(document: Any) -> str:
    """The document as one JSON text, without NaN, which JSON does not know."""
    return json.dumps(plain(document), ensure_ascii=False, allow_nan=False, indent=1)


def plain(value: Any) -> Any:
    """A document in JSON's types: paths as text, numpy numbers as numbers, NaN and infinity as null."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    # arrays and tensors, without importing either library
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
