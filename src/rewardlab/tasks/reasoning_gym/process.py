"""The functions that the process of reasoning-gym serves.

The package is imported together with this module, so that no call's time limit includes the import.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from typing import Any

from . import server

# the scorers read numbers with Python's own limit of digits
sys.set_int_max_str_digits(sys.int_info.default_max_str_digits)
sys.addaudithook(server.refuse_code)
with contextlib.suppress(ImportError):
    server.generators()


def call(do: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """{"is": what the server's function `do` returns}, or {"missing": why} where the package cannot be imported."""
    functions = {f.__name__: f for f in (server.generators, server.options, server.sample, server.score)}
    try:
        return {"is": functions[do](**options)}
    except ImportError as problem:
        return {"missing": str(problem)}
