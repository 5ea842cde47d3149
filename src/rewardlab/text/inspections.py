"""Verdicts on the steps of a solution, in an episode with a tool that is asked about the steps; and what a call asks about.

A verdict is a line "+" or "-", or as models write it: "Step 2: incorrect", "**Verdict:** correct", "The step is wrong.",
"\\boxed{+}". A call is a <tool_call>, a block of code, or the line at the end of a reply. What it asks about are its values and the
columns it reads, in words (`look Bo age`), SQL (`SELECT age FROM people WHERE name = 'Bo'`) or pandas
(`df.loc[df["name"] == "Bo", "age"]`): not the names of the language, the table, or the column that a value is looked up by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rewardlab.core import Trajectory

from .bm25 import words
from .tool_calls import TAG, calls_in

REFUSED = "Nothing."
GOOD = ("+", "correct", "right", "true", "valid", "yes", "\u2713", "\u2705")
BAD = ("-", "\u2212", "incorrect", "wrong", "false", "invalid", "no", "not correct", "\u2717", "\u274c")
LONGEST = 4000
"""Characters of a call that are read."""
_SIGN = "|".join(map(re.escape, sorted((*GOOD, *BAD), key=len, reverse=True)))
_VERDICT = re.compile(
    # a bullet or number, a label such as "Step 2 (Bo's age) is" or "Verdict:", and the word itself, with nothing behind it
    r"^[^\S\n]*(?:[-*>][^\S\n]+|\(?\d{1,3}[.):][^\S\n]+)?"
    r"(?:[*_`]{0,3}(?:(?:the|this)[^\S\n]+)?(?:final[^\S\n]+)?(?:step|verdict|judge?ment|label)\b[^\n:=]{0,60}?(?::|=|\bis\b)"
    r"[*_`]{0,3}[^\S\n]*){0,2}"
    rf"(?:\\boxed\{{)?[*_`]{{0,3}}(?P<sign>{_SIGN})[*_`}}.!]{{0,4}}[^\S\n]*$",
    re.MULTILINE | re.IGNORECASE,
)
_FENCED = re.compile(r"```[a-zA-Z]{0,12}[^\S\n]*\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Inspection:
    """The verdict on one step.  at: the position where its reply ends.  call: the tool call that was answered since the verdict
    before it, "" without one."""

    right: bool
    at: int
    call: str = ""


def verdicts_in(text: str) -> list[tuple[int, bool]]:
    """Of each verdict in a reply, behind its thinking: where its sign or word begins, and whether the step is right by it."""
    visible = text.rfind("</think>") + 1
    if not visible and "<think>" in text:
        return []
    return [(m.start("sign"), m["sign"].lower() in GOOD) for m in _VERDICT.finditer(text) if m.start() >= visible]


def call_in(text: str) -> str:
    """What a reply asks a tool: of <tool_call> tags the name and the arguments, else its last block of code, else its last line if
    that is no verdict; "" where it has none."""
    if TAG in text:
        return "\n".join(" ".join([name, *map(str, given.values())]) for name, given in calls_in(text) or [])
    if blocks := _FENCED.findall(text):
        return blocks[-1].strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # what stands before a verdict at the end was not answered before it
    return lines[-1].strip("`*") if lines and not verdicts_in(lines[-1]) else ""


def inspections_of(t: Trajectory) -> list[Inspection]:
    """The verdicts of an episode in their order: the first is on the first step, and so on."""
    found, asked, call, position = list[Inspection](), "", "", 0
    ends = iter(t.ends)
    for turn in t.turns:
        position += len(turn.ids)
        if turn.author is None:
            # a call that was refused says nothing, and before it is answered none does
            asked, call = "", "" if turn.text.strip() == REFUSED else asked
            continue
        at = next(ends)
        for _, right in verdicts_in(turn.text):
            found.append(Inspection(right, at, call))
            call = ""
        asked = call_in(turn.text)
    return found


# ---- what a call asks about ------------------------------------------------------------------------------------------

_SQL = re.compile(r"\bselect\b", re.IGNORECASE)
_CODE = re.compile(r"\w[(\[]|\w\.[A-Za-z_]|==")
_TEXT = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"|`([^`\n]*)`")
_NAME = r"[A-Za-z_][\w.]*"
_KEYWORDS = frozenset((
    "select", "distinct", "from", "where", "and", "or", "not", "in", "is", "null", "like", "ilike", "between", "as", "on",
    "join", "inner", "left", "right", "outer", "full", "cross", "group", "by", "order", "having", "limit", "offset", "union",
    "all", "asc", "desc", "case", "when", "then", "else", "end", "cast", "integer", "int", "real", "float", "text", "numeric",
    "with", "exists",
))  # fmt: skip
_LOOKED_UP_BY = re.compile(
    rf"(?:{_NAME}\.)?(?:\"[^\"\n]*\"|`[^`\n]*`|{_NAME})\s*(?:==?|like\b|ilike\b|in\b)\s*\(?\s*(?=['\"\d-])", re.IGNORECASE
)
_NO_VALUE = re.compile(
    rf"\b(?:from|join)\s+{_NAME}(?:\s+(?:as\s+)?(?!(?:{'|'.join(sorted(_KEYWORDS))})\b){_NAME})?|\bas\s+{_NAME}"
    r"|\b(?:limit|offset)\s+\d+|[A-Za-z_]\w*\s*(?=\()",
    re.IGNORECASE,
)
_COLUMN = r"(?:\[\s*(?:'[^'\n]*'|\"[^\"\n]*\")\s*\]|\.\w+)"
_MEMBERS = frozenset(["loc", "iloc", "at", "iat", "str", "dt", "values", "index", "columns", "shape", "size", "empty", "T", "item"])


def is_about(call: str, step: str) -> bool:
    """Whether all that a call asks about, its values and the columns that it reads, stands in the step."""
    asked = arguments(call[:LONGEST])
    return bool(asked) and asked <= _words(step)


def arguments(call: str) -> set[str]:
    """The words of the values and columns in a call."""
    if found := _SQL.search(call):
        return _words(" ".join(_of_sql(call[found.start() :])))
    if _CODE.search(call):
        return _words(" ".join(_of_code(call)))
    plain = words(call)
    # the first word names the tool; a bare sum has none
    return _words(" ".join(plain if plain and plain[0].isdigit() else plain[1:]))


def _of_sql(query: str) -> Iterator[str]:
    # the column by which a value is looked up is not what is asked about, nor are tables, their short names, functions and limits
    query = _LOOKED_UP_BY.sub(" ", query)
    yield from (a or b or c for a, b, c in _TEXT.findall(query))
    bare = _NO_VALUE.sub(" ", _TEXT.sub(" ", query))
    for name in re.findall(rf"{_NAME}|\d+(?:\.\d+)?", bare):
        if name.lower() not in _KEYWORDS:
            yield name if name[0].isdigit() else name.rpartition(".")[2]


def _of_code(code: str) -> Iterator[str]:
    # the column by which a value is looked up: df["name"] == "Bo", df.name == "Bo"; within query("name == 'Bo'") too
    code = re.sub(rf"(?:{_COLUMN}|\b\w+)(?:\.str\.\w+\(\))?\s*==\s*", " == ", code)
    code = re.sub(rf"{_COLUMN}\.(?:str\.contains|isin|eq)\s*(?=\()", " ", code)
    for a, b, c in _TEXT.findall(code):
        text = a or b or c
        yield from _TEXT.sub(" ", text).split() if "==" in text else [text]
        yield from (x or y or z for x, y, z in _TEXT.findall(text))
    bare = _TEXT.sub(" ", code)
    # positions and roundings are not values
    bare = re.sub(r"iloc\[[^\]]*\]|\[\s*-?\d+\s*\]|\b(?:head|tail|item|round|nlargest|nsmallest)\([^()]*\)", " ", bare)
    yield from re.findall(r"(?<![\w.])\d+(?:\.\d+)?", bare)
    yield from (name for name in re.findall(r"(?<=\w)\.([A-Za-z_]\w*)\b(?!\s*\()", bare) if name not in _MEMBERS)


def _words(text: str) -> set[str]:
    """Words as they are compared: in lower case, underscores divide them, 1,200 is 1200, 5.0 is 5, plurals are singulars."""
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text).replace("_", " ")
    text = re.sub(r"(?<=\d)\.0+\b", "", text)
    return {w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in words(text)}
