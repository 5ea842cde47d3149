r"""LaTeX whose backslashes are doubled, as \\frac{1}{2}: it was escaped once more than it was read."""

from __future__ import annotations

import re

_RUN = re.compile(r"\\+")
_COMMAND = re.compile(
    r"\\\\(?:[dt]?frac|sqrt|boxed|text|mathr?[mb][bf]?|begin|end|left|right|pi|theta|alpha|beta|infty|cup|cap|in\b|le|ge|lt|gt|ne|pm|times|"
    r"cdot|circ|pmod|equiv|binom|sin|cos|tan|ln|log|angle|sum|prod|ldots|quad|[()\[\]](?=[^\\]{0,400}\\\\[()\[\]]))"
)


def undoubled(text: str) -> str:
    r"""The text with single backslashes, if all of them are doubled and one begins a command.

    A line break \\ is doubled too; but where commands are not, as in a matrix, a single backslash shows it.
    """
    if "\\\\" not in text or not _COMMAND.search(text) or any(len(run) % 2 for run in _RUN.findall(text)):
        return text
    return text.replace("\\\\", "\\")
