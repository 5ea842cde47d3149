"""The text of a reply before its answer."""

from __future__ import annotations

from .replies import MOST, claims


def rationale(reply: str) -> str:
    """The inside of <think>...</think>, or else all before the place where the reply last states an answer.

    Of a reply that does not mark its answer ("answer: B", a box), all lines but the last.
    """
    thinking, closed, _ = reply.rpartition("</think>")
    if closed:
        return thinking.rpartition("<think>")[2].strip()
    text = reply[-MOST:]
    stated = claims(text)
    return (text[: stated[-1].start] if stated else text.rstrip().rpartition("\n")[0]).strip()
