"""Format of code that a reply wants run, and of what is answered.

    <code>                              <interpreter>
    ```python                   ->      42
    6 * 7                               </interpreter>
    ```
    </code>

The tags are those of ReTool (Feng et al. 2025, arXiv:2504.11536).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

OPEN, CLOSE = "<code>", "</code>"
ANSWER = ("<interpreter>", "</interpreter>")
_TAGGED = re.compile(rf"{OPEN}(.*?)({CLOSE}|\Z)", re.DOTALL)
_FENCED = re.compile(r"^[ \t]*```(?:python3?|py)[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE | re.IGNORECASE)
_ENDS_FENCED = re.compile(r"```\s*\Z")


def code_of(reply: str, fenced: bool = True) -> str | None:
    """The code that a reply wants run; None where it has none, "" where that does not come to its end.

    It is what stands between <code> and </code>, in a ```python block there or bare. A reply without these tags that ends in a
    ```python block wants that run (fenced): text after a block was written without its output, and shows that none is awaited.
    The code of several is run as one.
    """
    if tagged := _TAGGED.findall(reply):
        if not all(close for _, close in tagged):
            return ""
        return _joined(text for body, _ in tagged for text in (_FENCED.findall(body) or [body]))
    if fenced and _ENDS_FENCED.search(reply) and (found := list(_FENCED.finditer(reply))) and not reply[found[-1].end() :].strip():
        return _joined(match[1] for match in found)
    return None


def _joined(texts: Iterable[str]) -> str:
    # a block within a list is indented
    return "\n".join(textwrap.dedent(text).strip("\n") for text in texts)
