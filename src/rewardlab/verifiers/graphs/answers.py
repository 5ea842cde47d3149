"""Read paths, colourings, matchings and sets of nodes from replies, as JSON or as people write them.

    ["A", "B", "C"]     A -> B -> C     A, B, C             orders and sets of nodes
    {"A": 1, "B": 2}    A: red, B: blue                     colourings, one or several per line
    [["A", "B"]]        (A, B), (C, D)     A-B, C-D         edges

Every name must be the name of a node. A reply that says anything else in its place, or gives two answers, is Unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rewardlab.text.replies import LONGEST, end_of, first_json, marked

Names = dict[str, str]
"""Maps each spelling of a node to its name."""

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
    """The reply has no readable answer; the message says why."""


def names(nodes: Iterable[str]) -> Names:
    """Accepted spellings: each node's name, and its name without markup and in lower case unless two nodes would share it."""
    all_names = list(nodes)
    loose: dict[str, set[str]] = {}
    for node in all_names:
        for spelling in (_tidy(node), _tidy(node).casefold()):
            loose.setdefault(spelling, set()).add(node)
    return {spelling: next(iter(sharing)) for spelling, sharing in loose.items() if len(sharing) == 1} | {
        node: node for node in all_names
    }


def answer(reply: str) -> str:
    """The text that contains the answer: the paragraph after "answer:", else the last paragraph. Raises Unreadable."""
    stated = marked(reply)
    text = _TO.sub("->", end_of(reply) if stated is None else stated).strip()
    if len(text) > LONGEST:
        raise Unreadable("the answer is too long to be read")
    paragraphs = [paragraph.strip() for paragraph in re.split(r"\n[ \t]{0,20}\n", text) if paragraph.strip()]
    if not paragraphs:
        raise Unreadable("no answer found")
    if first_json(text):
        return text
    # "The path is:" only announces the paragraph, or the lines, that follow
    candidates = [paragraph for paragraph in paragraphs if not paragraph.endswith(":")] or paragraphs
    first, line, following = (candidates[-1] if stated is None else candidates[0]).partition("\n")
    return following if line and first.rstrip().endswith(":") else first + line + following


def says_none(text: str) -> bool:
    """Whether an answer says that there is no solution: "none", "no such path exists"."""
    return _NONE.fullmatch(_CLUTTER.sub("", text).strip(" .!\n")) is not None


def read_nodes(text: str, known: Names) -> list[str]:
    """The nodes of an order or a set, one per line or separated. Raises Unreadable."""
    data = _json(text)
    if data is not None:
        return [_node(item, known) for item in _list(data)]
    lines = text.strip().splitlines()
    if len(lines) > 1 and all(by_line := [_look_up(line, known) for line in lines]):
        return [node for node in by_line if node]
    # the list is in the first or the last line, perhaps after "The path is" or "Path:"
    for part in (part for line in (lines[0], lines[-1]) for part in (line, line.rpartition(":")[2], line.rpartition(" is ")[2])):
        part = re.split(r"\.(?:\s|$)|\s\(", part.strip(), maxsplit=1)[0]
        for separator in _SEPARATORS:
            pieces = separator.split(_tidy(part))
            nodes = [_look_up(piece, known) for piece in pieces]
            if all(nodes):
                return [node for node in nodes if node]
            # an arrow separates nodes for certain: splitting further would only break up their names
            if separator is _ARROW and len(pieces) > 1:
                break
    raise Unreadable(f"not a list of nodes: {lines[0][:80]!r}")


def read_colours(text: str, known: Names) -> dict[str, str]:
    """The colour of each node that is named. Raises Unreadable, also for a node that is named twice."""
    data = _json(text)
    if isinstance(data, dict) and len(data) == 1 and isinstance(next(iter(data.values())), dict | list):
        # {"colors": {"A": 1}}: the answer under a heading
        data = next(iter(data.values()))
    pairs = data.items() if isinstance(data, dict) else data if isinstance(data, list) else _assignments(text)
    colours: dict[str, str] = {}
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or isinstance(pair[1], list | dict | None):
            raise Unreadable(f"not a node with its colour: {str(pair)[:80]!r}")
        node, colour = _node(pair[0], known), _tidy(str(pair[1])).casefold().rstrip(".")
        if node in colours or not colour:
            raise Unreadable(f"node {node} has two colours" if node in colours else f"node {node} has no colour")
        colours[node] = colour
    return colours


def read_edges(text: str, known: Names) -> list[tuple[str, str]]:
    """The edges of a matching or a tree. Raises Unreadable."""
    data = _json(text)
    if data is None:
        pairs: Any = _PAIR.findall(text)
        left = _PAIR.sub("", text)
        if not pairs or re.sub(r"\band\b|[\s,;.{}\[\]]", "", left):
            pairs = [_two(part) for part in re.split(r"[,;\n]", text.strip().rstrip(".")) if part.strip()]
    else:
        pairs = _list(data)
    if any(not isinstance(pair, tuple | list) or len(pair) != 2 for pair in pairs):
        raise Unreadable("not a list of edges")
    return [(_node(u, known), _node(v, known)) for u, v in pairs]


def _assignments(text: str) -> list[tuple[str, ...]]:
    parts = re.split(r"[,;\n]", text.strip().rstrip("."))
    return [tuple(_ASSIGNS.split(part.strip(), maxsplit=1)) for part in parts if part.strip()]


def _two(part: str) -> tuple[str, ...]:
    """The ends of an edge such as "A-B" or "A -> B"."""
    pieces = _ARROW.split(part)
    return tuple(pieces if len(pieces) > 1 else _DASH.split(part))


def _json(text: str) -> Any:
    """The only JSON value in a text; None if there is none. Raises Unreadable if there are two."""
    first = first_json(text)
    if first and re.search(r"[\[{]|\bor\b", first[2]):
        raise Unreadable("there are two answers")
    return first[0] if first else None


def _list(data: Any) -> list[Any]:
    """A list, or the only list in an object. Raises Unreadable."""
    if isinstance(data, dict):
        lists = [value for value in data.values() if isinstance(value, list)]
        data = lists[0] if len(lists) == 1 else None
    if not isinstance(data, list):
        raise Unreadable("not a list")
    return data


def _node(item: Any, known: Names) -> str:
    text = str(item) if isinstance(item, str | int | float) else ""
    node = known.get(text) or _look_up(text, known)
    if node is None:
        raise Unreadable(f"{str(item)[:40]!r} is not a node")
    return node


def _look_up(text: str, known: Names) -> str | None:
    plain = _tidy(text)
    return known.get(plain) or known.get(plain.casefold())


def _tidy(text: str) -> str:
    return _CLUTTER.sub("", text.strip()).strip().strip(".").strip()
