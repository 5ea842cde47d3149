"""Docstrings of tools in the three styles that people write, all as the one that is read into a schema.

    Args:                      Parameters                    :param query: what to look for
        query: what to         ----------                    :type query: str
            look for           query : str
                                   what to look for
    (Google)                   (NumPy)                       (Sphinx)

transformers reads Google's alone (`get_json_schema`), and so its models are told of tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

GOOGLE = re.compile(r"^\s*Args:\s*$", re.MULTILINE)
_UNDERLINED = re.compile(r"^(\w[\w ]*)\n-{3,}[ \t]*$", re.MULTILINE)
"""The head of a section in NumPy's style."""
_ENTRY = re.compile(r"^(\w+(?:\s*,\s*\w+)*)[ \t]*(?::.*)?$")
"""What one or several arguments of NumPy's style begin with: names, and perhaps a type."""
_FIELD = re.compile(r"^:(\w+)((?:[ \t]+[^:\n]+)?):", re.MULTILINE)
"""What a field of Sphinx's style begins with. The last word before the colon is the argument, after its type."""
PARAM = ("param", "parameter", "arg", "argument", "key", "keyword")


def in_google(doc: str) -> str:
    """The docstring, which has no common indent, with its arguments in Google's style; as it is where it has none of the others."""
    if GOOGLE.search(doc):
        return doc
    for heads, arguments in ((_UNDERLINED, _of_numpy), (_FIELD, _of_sphinx)):
        if found := dict(arguments(doc)):
            first = heads.search(doc)
            assert first is not None
            return _written(doc[: first.start()].strip(), found)
    return doc


def _of_numpy(doc: str) -> Iterator[tuple[str, str]]:
    for head, body in _parts(_UNDERLINED, doc):
        if head[1] not in ("Parameters", "Other Parameters"):
            continue
        names: list[str] = []
        said: list[str] = []
        for line in body.splitlines():
            # what describes an argument is indented
            if line[:1].isspace() or not line:
                said.append(line)
                continue
            yield from ((name, _one_line(said)) for name in names)
            entry = _ENTRY.match(line)
            names, said = (re.split(r"\s*,\s*", entry[1]) if entry else []), []
        yield from ((name, _one_line(said)) for name in names)


def _of_sphinx(doc: str) -> Iterator[tuple[str, str]]:
    for field, body in _parts(_FIELD, doc):
        if field[1] in PARAM and field[2].strip():
            # an empty line ends it
            yield field[2].split()[-1], _one_line(re.split(r"\n\s*\n", body, maxsplit=1)[0].splitlines())


def _parts(head: re.Pattern[str], doc: str) -> Iterator[tuple[re.Match[str], str]]:
    """What begins a part of the docstring, and the text from there to the next part."""
    found = list(head.finditer(doc))
    for i, one in enumerate(found):
        yield one, doc[one.end() : found[i + 1].start() if i + 1 < len(found) else len(doc)]


def _one_line(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def _written(about: str, arguments: Mapping[str, str]) -> str:
    # an argument of which nothing is said is refused as one that is missing
    lines = [f"    {name}: {text}" for name, text in arguments.items() if text]
    return "\n".join([about, "", "Args:", *lines])
