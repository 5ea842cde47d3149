"""Format of search calls and results.

    <search>who wrote Emma</search>     ->     <information>
                                               Doc 1 (Title: Emma) Emma is a novel by Jane Austen.
                                               </information>
    Search: Ann boss                    ->     Ann: the boss of Ann is Bob.

The tags are those of Search-R1 (Jin et al. 2025, arXiv:2503.09516); the lines are those of small policies. Several queries of one
call, <search>when was Emma written ## when was Ulysses written</search>, are those of ParallelSearch (Zhao et al. 2025,
arXiv:2508.09303): what they find follows in their order, and the ranks begin at 1 for each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .answers import after_thinking

ASK, NOTHING, FAILED = "Search:", "Nothing found.", "The search failed"
OPEN, CLOSE = "<search>", "</search>"
INFORMATION, TITLE = ("<information>", "</information>"), "(Title: "
_TAGGED = re.compile(r"<search>(.*?)(?:</search>|\Z)", re.DOTALL)
_RANK = re.compile(r"Doc \d+:? (.*)")


def query_of(reply: str, mark: str = ASK) -> str | None:
    """The first query of a reply, in tags after its thinking, else in a line that begins with `mark`; None where there is none."""
    if tagged := _TAGGED.search(after_thinking(reply)):
        return tagged[1].strip()
    return next((line.removeprefix(mark).strip() for line in reply.splitlines() if line.startswith(mark)), None)


def queries_of(reply: str, mark: str = ASK, separator: str = "") -> list[str]:
    """All queries of a reply: those in tags after its thinking, or the lines that begin with `mark`.

    separator: what stands between the queries of one call; "": a call is one query. Empty ones between separators are left out.
    """
    lines = (line.strip() for line in reply.splitlines())
    tagged = [query.strip() for query in _TAGGED.findall(after_thinking(reply))]
    calls = tagged or [line.removeprefix(mark).strip() for line in lines if line.startswith(mark)]
    if not separator:
        return calls
    return [query for call in calls for part in call.split(separator) if (query := part.strip())]


def answered(reply: str, *found: Sequence[tuple[str, str]]) -> str:
    """What a search shows of documents (title, text), the best first, in the form in which the reply asked: a line for each between
    tags, or their texts in one line.  found: the documents of each query, in the order of the queries."""
    if not _tagged(reply):
        return " ".join(" ".join(text for _, text in documents) or NOTHING for documents in found)
    return _between_tags([line for documents in found for line in _lines(documents)])


def failed(reply: str, why: str) -> str:
    """What a search shows that could not be made, in the form in which the reply asked."""
    return _between_tags([f"{FAILED}: {why}"]) if _tagged(reply) else f"{FAILED}: {why}"


def results_of(answer: str, titles: bool = False) -> list[str]:
    """The documents of an answer, without their ranks: one that is found again is the same.

    titles: with those that it shows. There are none where nothing was found, or the search failed.
    """
    lines = (line.strip() for line in answer.splitlines())
    found = [line for line in lines if line and line not in (*INFORMATION, NOTHING) and not line.startswith(FAILED)]
    return [ranked[1] if (ranked := _RANK.match(line)) and titles else _text_of(line) for line in found]


def failure_in(answer: str) -> str:
    """What an answer says of a search that failed; "" where none did."""
    return next((line.strip() for line in answer.splitlines() if line.strip().startswith(FAILED)), "")


def _text_of(line: str) -> str:
    """The text of a document in the line that shows it."""
    ranked = _RANK.match(line)
    if ranked is None or not ranked[1].startswith(TITLE):
        return line if ranked is None else ranked[1]
    depth = 0
    # a title may have brackets of its own
    for i, letter in enumerate(ranked[1]):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return ranked[1][i + 1 :].strip()
    return ranked[1]


def _tagged(reply: str) -> bool:
    return _TAGGED.search(after_thinking(reply)) is not None


def _between_tags(lines: Sequence[str]) -> str:
    return "\n".join((INFORMATION[0], *lines, INFORMATION[1]))


def _lines(documents: Sequence[tuple[str, str]]) -> list[str]:
    ranked = enumerate(documents, 1)
    lines = [f"Doc {i}{f' {TITLE}{title})' if title else ':'} {' '.join(text.split())}" for i, (title, text) in ranked]
    return lines or [NOTHING]
