"""An answer that a reply gives as a JSON object at its end, {"answer": "B"}, told as a line. Linear time; nothing raises."""

from __future__ import annotations

import ast
import contextlib
import json
import re
from typing import Any

KEYS = ("answer", "final_answer", "final answer", "finalanswer", "choice", "option", "result", "solution")
LONGEST = 5_000
"""Characters of the longest object that is read."""
_ENDS = re.compile(r"\}\s{0,9}(?:```)?\s{0,9}$")
_FENCE = re.compile(r"(?:^|\n)\s{0,3}```[a-z0-9]{0,8}\s{0,9}$", re.IGNORECASE)


def told(text: str) -> str:
    """The text with the object that it ends in as "Answer: B", where just one answer is in it."""
    end = _ENDS.search(text, max(0, len(text) - 30))
    if not end:
        return text
    for start in dict.fromkeys((text.rfind("{", 0, end.start()), text.rfind("\n{", 0, end.start()) + 1)):
        if start >= 0 and text[start] == "{" and end.start() - start < LONGEST:
            stated = _answer(_read(text[start : end.start() + 1]))
            if stated:
                before = text[:start]
                fence = _FENCE.search(before, max(0, len(before) - 40))
                return f"{before[: fence.start()] if fence else before.rstrip()}\nAnswer: {stated}".lstrip()
    return text


def _read(written: str) -> Any:
    """An object written as JSON, or as Python prints it; None if it cannot be read, or a key comes twice."""
    if ":" not in written or not ('"' in written or "'" in written):
        return None
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(written, object_pairs_hook=_once)
    # Python would warn of escapes that it does not know
    if "\\" in written:
        return None
    with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        tree = ast.parse(written, mode="eval").body
        keys = [ast.literal_eval(key) for key in tree.keys if key] if isinstance(tree, ast.Dict) else []
        return ast.literal_eval(tree) if len(set(map(str, keys))) == len(keys) else None
    return None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any] | None:
    return dict(pairs) if len({key for key, _ in pairs}) == len(pairs) else None


def _answer(value: Any) -> str:
    """The text or number under the one key that names an answer; "" if there is none, or several."""
    if not isinstance(value, dict):
        return ""
    found = [one for key, one in value.items() if isinstance(key, str) and key.strip().lower() in KEYS]
    one = found[0] if len(found) == 1 else None
    if isinstance(one, bool) or not isinstance(one, str | int | float):
        return ""
    return str(one).strip() if "\n" not in str(one).strip() else ""
