"""Values that are written as text, on the command line or in the options of a task."""

from __future__ import annotations

import json
import re
from typing import Any

POWER_OF_TEN = re.compile(r"-?\d+[eE]\+?\d{1,3}")


def parse_value(text: str) -> Any:
    """A number, true, false, null, or a [list] of them, as JSON writes it; else the text itself.

    1e3 is the whole number 1000: numbers of steps and tokens are written so.
    """
    if POWER_OF_TEN.fullmatch(text):
        digits, power = text.lower().split("e")
        return int(digits) * 10 ** int(power)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
