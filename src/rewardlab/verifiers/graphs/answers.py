"""Reading paths, colourings, matchings and sets of nodes out of replies, as JSON or as people write them.

    ["A", "B", "C"]     A -> B -> C     A, B, C             orders and sets of nodes
    {"A": 1, "B": 2}    A: red, B: blue                     colourings, one or several a line
    [["A", "B"]]        (A, B), (C, D)     A-B, C-D         edges

Every name must be that of a node: a reply that says anything else in its place, or two answers, is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rewardlab.text.replies import LONGEST, end_of, first_json, marked

Names = dict[str, str]
"""How a node may be written, to its name."""

_TO = re.compile(r"\\(?:to|rightarrow)\b")
_ARROW = re.compile(r"\s*(?:-{1,2}>|=>|→|⟶|⇒)\s*")
_DASH = re.compile(r"\s*[-–—]\s*")
_SEPARATORS = (_ARROW, re.compile(r"\s*[,;]\s*"), _DASH, re.compile(r"\s+"))
_PAIR = re.compile(r"[(\[{]([^()\[\]{},]{1,100}),([^()\[\]{},]{1,100})[)\]}]")
_ASSIGNS = re.compile(r"\s*(?::|=>|->|→|=|\bis\b)\s*")
_CLUTTER = re.compile(r"^(?:[-*•]\s|[0-9]{1,3}[.)]\s|node |vertex |city )|[*_`\"'$\\()\[\]{}]", re.IGNORECASE)
_NONE = re.compile(
    r"(?:there (?:is|are) |it has )?(?:none|null|no|impossible|infeasible|unsolvable|unreachable|not possible|does not exist"
    r"|no (?:such |valid |feasible |proper |perfect ){0,2}(?:path|route|tour|walk|solution|matching|colou?ring|order|ordering|cycle"
    r"|circuit|tree|set|cover|clique|answer)s?(?: exists?)?)",
    re.IGNORECASE,
)


class Unreadable(ValueError):
    """What the reply is to blame for, in words."""


def names(nodes: Iterable[str]) -> Names:
    """Nodes by their names, and by these without marks and in lower case where that leaves them apart."""
    every = list(nodes)
    loose: dict[str, set[str]] = {}
    for node in every:
        for written in (_tidy(node), _tidy(node).casefold()):
            loose.setdefault(written, set()).add(node)
    return {written: next(iter(same)) for written, same in loose.items() if len(same) == 1} | {node: node for node in every}


def answer(reply: str) -> str:
    """The statement that holds the answer: what follows "answer:" up to an empty line, else the last lines before the end."""
    found = marked(reply)
    text = _TO.sub("->", end_of(reply) if found is None else found).strip()
    if len(text) > LONGEST:
        raise Unreadable("the answer is too long to be read")
    paragraphs = [paragraph.strip() for paragraph in re.split(r"\n[ \t]{0,20}\n", text) if paragraph.strip()]
    if not paragraphs:
        raise Unreadable("no answer found")
    if first_json(text):
        return text
    told = [paragraph for paragraph in paragraphs if not paragraph.endswith(":")] or paragraphs
    first, line, rest = (told[-1] if found is None else told[0]).partition("\n")
    return rest if line and first.rstrip().endswith(":") else first + line + rest


def says_none(text: str) -> bool:
    return _NONE.fullmatch(_CLUTTER.sub("", text).strip(" .!\n")) is not None


def read_nodes(text: str, known: Names) -> list[str]:
    """An order, or a set, of nodes."""
    data = _json(text)
    if data is not None:
        return [_node(item, known) for item in _list(data)]
    lines = text.strip().splitlines()
    if len(lines) > 1 and all(in_lines := [_look_up(line, known) for line in lines]):
        return [node for node in in_lines if node]
    for part in (part for line in (lines[0], lines[-1]) for part in (line, line.rpartition(":")[2], line.rpartition(" is ")[2])):
        part = re.split(r"\.(?:\s|$)|\s\(", part.strip(), maxsplit=1)[0]
        for separator in _SEPARATORS:
            pieces = separator.split(_tidy(part))
            nodes = [_look_up(piece, known) for piece in pieces]
            if all(nodes):
                return [node for node in nodes if node]
            if separator is _ARROW and len(pieces) > 1:
                break
    raise Unreadable(f"no list of nodes: {lines[0][:80]!r}")


def read_colours(text: str, known: Names) -> dict[str, str]:
    """A colour for each node that is named; the same node twice is not read."""
    data = _json(text)
    if isinstance(data, dict) and len(data) == 1 and isinstance(next(iter(data.values())), dict | list):
        data = next(iter(data.values()))
    pairs = data.items() if isinstance(data, dict) else data if isinstance(data, list) else _assignments(text)
    colours: dict[str, str] = {}
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or isinstance(pair[1], list | dict | None):
            raise Unreadable(f"no node with its colour: {str(pair)[:80]!r}")
        node, colour = _node(pair[0], known), _tidy(str(pair[1])).casefold().rstrip(".")
        if node in colours or not colour:
            raise Unreadable(f"node {node} has two colours" if node in colours else f"node {node} has no colour")
        colours[node] = colour
    return colours


def read_edges(text: str, known: Names) -> list[tuple[str, str]]:
    data = _json(text)
    if data is None:
        pairs: Any = _PAIR.findall(text)
        left = _PAIR.sub("", text)
        if not pairs or re.sub(r"\band\b|[\s,;.{}\[\]]", "", left):
            pairs = [_two(part) for part in re.split(r"[,;\n]", text.strip().rstrip(".")) if part.strip()]
    else:
        pairs = _list(data)
    if any(not isinstance(pair, tuple | list) or len(pair) != 2 for pair in pairs):
        raise Unreadable("no list of edges")
    return [(_node(u, known), _node(v, known)) for u, v in pairs]


def _assignments(text: str) -> list[tuple[str, ...]]:
    parts = re.split(r"[,;\n]", text.strip().rstrip("."))
    return [tuple(_ASSIGNS.split(part.strip(), maxsplit=1)) for part in parts if part.strip()]


def _two(part: str) -> tuple[str, ...]:
    """The ends of an edge "A-B", "A -> B"."""
    pieces = _ARROW.split(part)
    return tuple(pieces if len(pieces) > 1 else _DASH.split(part))


def _json(text: str) -> Any:
    """The one JSON value in a text, None where there is none."""
    found = first_json(text)
    if found and re.search(r"[\[{]|\bor\b", found[2]):
        raise Unreadable("there are two answers")
    return found[0] if found else None


def _list(data: Any) -> list[Any]:
    """A list, or the only list in an object."""
    if isinstance(data, dict):
        lists = [value for value in data.values() if isinstance(value, list)]
        data = lists[0] if len(lists) == 1 else None
    if not isinstance(data, list):
        raise Unreadable("no list")
    return data


def _node(item: Any, known: Names) -> str:
    written = str(item) if isinstance(item, str | int | float) else ""
    found = known.get(written) or _look_up(written, known)
    if found is None:
        raise Unreadable(f"{str(item)[:40]!r} is no node")
    return found


def _look_up(written: str, known: Names) -> str | None:
    plain = _tidy(written)
    return known.get(plain) or known.get(plain.casefold())


def _tidy(text: str) -> str:
    return _CLUTTER.sub("", text.strip()).strip().strip(".").strip()
