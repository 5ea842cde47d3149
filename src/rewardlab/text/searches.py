"""Format of search calls and results.

    <search>who wrote Emma</search>     ->     <information>
                                               Doc 1 (Title: Emma) Emma is a novel by Jane Austen.
                                               </information>
    Search: Ann boss                    ->     Ann: the boss of Ann is Bob.

The tags are those of Search-R1 (Jin et al. 2025, arXiv:2503.09516); the lines are those of small policies.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .answers import after_thinking

ASK, NOTHING = "Search:", "Nothing found."
OPEN, CLOSE = "<search>", "</search>"
INFORMATION = ("<information>", "</information>")
_TAGGED = re.compile(r"<search>(.*?)(?:</search>|\Z)", re.DOTALL)
_RANK = re.compile(r"^Doc \d+:? ")


def query_of(reply: str, mark: str = ASK) -> str | None:
    """The first query of a reply, in tags after its thinking, else in a line that begins with `mark`; None where there is none."""
    if tagged := _TAGGED.search(after_thinking(reply)):
        return tagged[1].strip()
    return next((line.removeprefix(mark).strip() for line in reply.splitlines() if line.startswith(mark)), None)


def queries_of(reply: str, mark: str = ASK) -> list[str]:
    """All queries of a reply: those in tags after its thinking, or the lines that begin with `mark`."""
    lines = (line.strip() for line in reply.splitlines())
    tagged = [query.strip() for query in _TAGGED.findall(after_thinking(reply))]
    return tagged or [line.removeprefix(mark).strip() for line in lines if line.startswith(mark)]


def answered(reply: str, documents: Sequence[tuple[str, str]]) -> str:
    """What a search shows of documents (title, text), the best first, in the form in which the reply asked: a line for each between
    tags, or their texts in one line."""
    if not _TAGGED.search(after_thinking(reply)):
        return " ".join(text for _, text in documents) or NOTHING
    lines = [
        f"Doc {i}{f' (Title: {title})' if title else ':'} {' '.join(text.split())}" for i, (title, text) in enumerate(documents, 1)
    ]
    return "\n".join((INFORMATION[0], *(lines or [NOTHING]), INFORMATION[1]))


def results_of(answer: str) -> list[str]:
    """The lines of an answer that hold results, without the ranks of these: a document that is found again is the same."""
    lines = (_RANK.sub("", line.strip()) for line in answer.splitlines())
    return [line for line in lines if line and line not in INFORMATION]
