"""Format of code, and of commands of a shell, that a reply wants run, and of what is answered.

    <code>                              <interpreter>
    ```python                   ->      42
    6 * 7                               </interpreter>
    ```
    </code>

The tags of code are those of ReTool (Feng et al. 2025, arXiv:2504.11536); those of commands, <command>ls</command> and
<action>done</action>, are those of Endless Terminals (Gandhi et al. 2026, arXiv:2601.16443).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

OPEN, CLOSE = "<code>", "</code>"
ANSWER = ("<interpreter>", "</interpreter>")
_TAGGED = re.compile(rf"{OPEN}(.*?)({CLOSE}|\Z)", re.DOTALL)
_FENCED = re.compile(r"^[ \t]*```(?:python3?|py)[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE | re.IGNORECASE)
COMMAND = ("<command>", "</command>")
_COMMAND = re.compile(rf"{COMMAND[0]}(.*?)({COMMAND[1]}|\Z)", re.DOTALL)
_SHELL = re.compile(r"^[ \t]*```(?:bash|shell|sh|console)[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE | re.IGNORECASE)
_DONE = re.compile(r"<action>\s*done\s*</action>", re.IGNORECASE)
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


def command_of(reply: str) -> str | None:
    """The command that a reply wants run; None where it has none, "" where that does not come to its end.

    It is what stands between the first <command> and </command>. A reply without them that ends in a ```bash block wants that run;
    its lines are one script. <action>done</action> before a command ends the episode, as a reply without a command does.
    """
    done = _DONE.search(reply)
    if (tagged := _COMMAND.search(reply)) and not (done and done.start() < tagged.start()):
        return tagged[1].strip() if tagged[2] else ""
    found = list(_SHELL.finditer(reply))
    if done or not found or reply[found[-1].end() :].strip():
        return None
    return _joined([found[-1][1]])


def shortened(text: str, shown: int, more: bool = False) -> str:
    """At most `shown` characters of a text, of its beginning and its end, with a line that says how many were left out.

    more: whether the text is itself the beginning of a longer one.
    """
    text = text.rstrip("\n")
    if len(text) <= shown:
        return text
    head, tail = shown - shown // 4, shown // 4
    left = f"{'more than ' if more else ''}{len(text) - shown}"
    return f"{text[:head]}\n[... {left} characters are not shown ...]\n{text[len(text) - tail :]}"
