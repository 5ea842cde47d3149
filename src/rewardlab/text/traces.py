"""Traces of answers from numbered documents, in sections, and whether the sections agree with one another and with the documents.

    <plan>Subquestion1: friend of Ann  Subquestion2: boss of [Answer1]</plan>
    <gold_docs>[2, 5]</gold_docs>
    <reason>Subquestion1: Bob. Evidence: doc [2]  Subquestion2: Cal. Evidence: doc [5]
    Final: Therefore the answer is Cal (supported by docs [2,5]).</reason>
    <answer>Cal</answer>

The form is CRAFT's (Liu et al. 2026, arXiv:2602.01348), whose judge is a large model; here words are compared. Every pattern is
bounded, so that any text takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .words import normalised, sentences, words

TEMPLATES = {
    "v1": ("plan", "gold_docs", "reason", "answer"),
    "v2": ("gold_docs", "reason", "answer"),
    "v3": ("plan", "reason", "answer"),
    "v4": ("reason", "answer"),
    "v5": ("answer",),
}
"""The sections of each kind of trace, in order."""
LONGEST = 20_000
"""Characters of a reply that is read."""
_CITED = re.compile(r"\bdocs?\.? {0,2}\[([0-9]{1,4}(?: {0,2}, {0,2}[0-9]{1,4}){0,30})\]", re.IGNORECASE)
_NUMBERED = re.compile(r"\bsubquestion {0,2}([0-9]{1,2}) {0,2}:", re.IGNORECASE)
_NAME_OR_NUMBER = re.compile(r"\b(?:[A-Z]\w{0,60}|[0-9]{1,20})\b")
_SAID_OF_THE_TRACE = {"subquestion", "evidence", "final", "therefore", "thus", "so", "hence", "the", "answer", "doc", "docs"}


def section(text: str, tag: str) -> str | None:
    """What stands in the tag; None where it is not opened and closed once."""
    start, end = text.find(f"<{tag}>"), text.find(f"</{tag}>")
    once = len(text) <= LONGEST and text.count(f"<{tag}>") == text.count(f"</{tag}>") == 1
    return text[start + len(tag) + 2 : end].strip() if once and start < end else None


def well_formed(text: str, template: str) -> bool:
    """Whether a text is the template's sections in their order, with nothing around them and no tags within."""
    rest = text.strip()
    for tag in TEMPLATES[template]:
        inner, closed, after = rest.removeprefix(f"<{tag}>").partition(f"</{tag}>")
        if not (rest.startswith(f"<{tag}>") and closed) or "<" in inner:
            return False
        rest = after.lstrip()
    return not rest and len(text) <= LONGEST


def cited(text: str) -> set[int]:
    """The numbers n of `doc [n]` and `docs [n, m]`."""
    return {int(n) for match in _CITED.findall(text) for n in match.split(",")}


def checks(text: str, template: str, documents: Sequence[str]) -> dict[str, bool]:
    """The checks of consistency that a template has, by name; what hangs on a section that is not there fails.

    plan_reason: the reasoning has a block for each subquestion, in order, and it or what it cites holds the subquestion's words.
    receipt_reason: what the reasoning cites is among <gold_docs>, and it cites something.
    reason_answer: the reasoning's last line holds the answer.
    evidence: what each citing sentence says is in the documents that it cites, and there is one.
    """
    found = {tag: section(text, tag) for tag in TEMPLATES["v1"]}
    plan, receipt, reason, answer = found["plan"], found["gold_docs"], found["reason"], found["answer"]
    tags, held = TEMPLATES[template], [set(words(document)) for document in documents]
    made = {
        "plan_reason": "plan" in tags and (plan is not None and reason is not None and _follows(plan, reason, held)),
        "receipt_reason": reason is not None and receipt is not None and bool(cited(reason)) and cited(reason) <= listed(receipt),
        "reason_answer": reason is not None and bool(answer) and _holds(reason, answer or ""),
        "evidence": reason is not None and _supported(reason, held),
    }
    applicable = {"plan_reason": "plan", "receipt_reason": "gold_docs", "reason_answer": "reason", "evidence": "reason"}
    return {name: made[name] for name, tag in applicable.items() if tag in tags}


def listed(receipt: str) -> set[int]:
    """The numbers of a list "[1, 3]"; none where it is no such list."""
    inner = receipt.strip()
    if not (inner.startswith("[") and inner.endswith("]")):
        return set()
    parts = [part.strip() for part in inner[1:-1].split(",")]
    return {int(part) for part in parts} if all(part.isdecimal() and len(part) < 5 for part in parts) else set()


def _blocks(text: str) -> list[tuple[int, str]]:
    """What is said under `Subquestion1:`, `Subquestion2:` ..."""
    _, *rest = _NUMBERED.split(text)
    return [(int(number), said) for number, said in zip(rest[::2], rest[1::2], strict=True)]


def _follows(plan: str, reason: str, held: Sequence[set[str]]) -> bool:
    asked, answered = _blocks(plan), _blocks(reason)
    if not asked or [n for n, _ in asked] != [n for n, _ in answered]:
        return False
    telling = _telling(held)
    pairs = zip(asked, answered, strict=True)
    return all(set(words(ask)) & telling <= set(words(said)) | _in(held, cited(said)) for (_, ask), (_, said) in pairs)


def _holds(reason: str, answer: str) -> bool:
    last = (reason.strip().splitlines() or [""])[-1]
    wanted = normalised(answer).split()
    return bool(wanted) and set(wanted) <= set(normalised(last).split())


def _supported(reason: str, held: Sequence[set[str]]) -> bool:
    telling, claims = _telling(held), [said for said in _claims(reason) if cited(said)]
    return bool(claims) and all(_stated(said, telling) <= _in(held, cited(said)) for said in claims)


def _claims(reason: str) -> list[str]:
    """The blocks of subquestions up to their line's end, and the sentences of all other lines."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    return [said for line in lines for said in ([line] if _NUMBERED.match(line) else sentences(line))]


def _stated(said: str, telling: set[str]) -> set[str]:
    """The words that documents should hold: those that tell documents apart, and names and numbers."""
    block, said = _NUMBERED.match(said), _NUMBERED.sub(" ", _CITED.sub(" ", said))
    # a sentence begins with a capital whatever its first word is; under a subquestion stands its answer
    capitals = said if block else said.strip().partition(" ")[2]
    names = {name.lower() for name in _NAME_OR_NUMBER.findall(capitals)} - _SAID_OF_THE_TRACE
    return set(words(said)) & telling | names


def _in(held: Sequence[set[str]], numbers: set[int]) -> set[str]:
    return set().union(*(held[n - 1] for n in numbers if 1 <= n <= len(held)))


def _telling(held: Sequence[set[str]]) -> set[str]:
    """The words of some documents that not all have."""
    return set().union(*held) - (held[0].intersection(*held[1:]) if len(held) > 1 else set())
