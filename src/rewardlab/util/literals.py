"""Values that are written as text, on the command line or in the options of a task."""

from __future__ import annotations

import json
from typing import Any


def parse_value(text: str) -> Any:
    """A number, true, false, null, or a [list] of them, as JSON writes it; else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text
