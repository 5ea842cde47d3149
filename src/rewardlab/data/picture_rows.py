"""The pictures of a row: in its column `image` or `images`, or within the parts of its messages.

    {"prompt": "<image> What is this?", "images": ["a.png"]}                                  verl, EasyR1, LLaMA-Factory, ms-swift
    {"conversations": [{"from": "human", "value": "<image>What is this?"}, ...], "image": "a.png"}          LLaVA, VLM-R1
    {"prompt": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What?"}]}], "images": [...]}      TRL
    {"prompt": [{"role": "user", "content": [{"type": "image", "image": "a.png"}, ...]}]}                   Qwen-VL, OpenAI

A mark <image> in a text says where a picture stands (`conversations.text_in` writes one for a part that is a picture). Without any
mark the pictures stand before the last text of the user.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError

from .conversations import MARK, WHAT, decoded, first_of, is_picture
from .in_memory import GivenRows
from .pictures import digest_of, may_be_picture, pictures_in
from .values import is_missing, list_of, value_of

COLUMNS = ("image", "images")
"""The columns that hold pictures where no other is named."""
NO_COLUMN = "none"
"""Named in place of a column: no column holds pictures."""
SAID = ("messages", "conversations", "chosen", "rejected")
"""Columns of conversations besides that of the prompt."""
NAME = "--image-column"


def columns_of(named: str | None) -> tuple[str, ...]:
    """The columns that hold pictures.  named: by the user; None: none is."""
    return COLUMNS if named is None else () if named == NO_COLUMN else (named,)


def pictures_of(row: Mapping[str, Any], prompt: str, named: str | None, folder: Path, place: str) -> tuple[Any, ...]:
    """The pictures of a row in their order.  prompt: the column of the prompt.  folder: from which paths go.

    A text in a column that nobody named, beside a prompt without marks, may be another kind of image, such as a container's.
    Raises RewardlabError, with the place, for one that is missing or broken.
    """
    if named == NO_COLUMN:
        return ()
    parts = _in_messages(row, prompt, place)
    marked = bool(parts) or MARK in str(value_of(row, prompt))
    filled = {name: cell for name in columns_of(named) if not _is_empty(cell := value_of(row, name))}
    cells = [name for name, cell in filled.items() if named or marked or may_be_picture(cell, folder)]
    own = [value for value in parts if value is not None]
    if own and len(own) < len(parts) and not cells:
        raise RewardlabError(f"{place}: {len(parts) - len(own)} of {len(parts)} parts that are pictures hold none")
    found = [_read(value_of(row, name), name, folder, place) for name in cells]
    if len(found) > 1 and found[0] != found[1]:
        raise RewardlabError(f"{place}: the columns {' and '.join(cells)} hold different pictures: name one with {NAME}")
    column = found[0] if found else ()
    shown = tuple(picture for value in own for picture in _read(value, "messages", folder, place))
    if not parts:
        return column
    if len(own) == len(parts):
        if column and column != shown:
            raise RewardlabError(
                f"{place}: the messages hold {len(shown)} pictures, and the column {cells[0]} {len(column)} others"
            )
        return shown
    return _filled(parts, iter(shown), column, place)


def _filled(parts: Sequence[Any], own: Iterator[Any], column: Sequence[Any], place: str) -> tuple[Any, ...]:
    """The pictures of parts, some of which hold none and take the next one of the column."""
    wanted = sum(value is None for value in parts)
    if wanted != len(column):
        held = f"the column of pictures holds {len(column)}" if column else "there is no column of them (image or images)"
        raise RewardlabError(f"{place}: the messages have a place for {_n(wanted)}, and {held}; {NAME} names another column")
    rest = iter(column)
    return tuple(next(rest) if value is None else next(own) for value in parts)


def placed(texts: Sequence[str], roles: Sequence[str], n: int, place: str) -> list[int]:
    """How many of n pictures each message of a prompt shows: as many as it has marks, or all of them the last of the user.

    Raises RewardlabError where there are marks, and not as many as pictures.
    """
    marks = [text.count(MARK) for text in texts]
    if sum(marks) == n:
        return marks
    if sum(marks):
        raise RewardlabError(
            f"{place}: the prompt has {sum(marks)} marks {MARK}, and the row {_n(n)}: write a mark for each picture, or none, "
            "which puts them before the text"
        )
    last = max((i for i, role in enumerate(roles) if role == "user"), default=len(texts) - 1)
    return [n if i == last else 0 for i in range(len(texts))]


def _n(pictures: int) -> str:
    return f"{pictures} picture{'s' * (pictures != 1)}"


def _is_empty(value: Any) -> bool:
    """Whether a value is no picture: nothing, or a list or an object of nothing."""
    if isinstance(value, Mapping | list | tuple):
        return all(map(_is_empty, value.values() if isinstance(value, Mapping) else value))
    # an array has a truth for each of its entries
    return not hasattr(value, "shape") and is_missing(value)


def _read(value: Any, name: str, folder: Path, place: str) -> tuple[Any, ...]:
    # a table of text holds a list as JSON
    value = list_of(value) if isinstance(value, str) and list_of(value) is not None else value
    try:
        return pictures_in(value, folder)
    except ValueError as e:
        where = " (--image-folder names the folder from which paths go)" if str(e).startswith("there is no picture") else ""
        other = f"{NAME} names another column of pictures, or {NO_COLUMN}"
        raise RewardlabError(f"{place}, column {name}: {e}{where}; {other}") from None


def _in_messages(row: Mapping[str, Any], prompt: str, place: str) -> list[Any]:
    """What each part of the row's messages that is a picture holds; None: nothing, it takes one of the column."""
    found: list[list[Any]] = []
    for name in dict.fromkeys((prompt, *SAID)):
        messages = decoded(value_of(row, name))
        contents = [first_of(m, WHAT) for m in messages if isinstance(m, Mapping)] if isinstance(messages, list) else []
        parts = [part for content in contents if isinstance(content, list) for part in content if is_picture(part)]
        if parts:
            found.append(list(map(_held, parts)))
    if any(other != found[0] for other in found[1:]):
        raise RewardlabError(f"{place}: the conversations of this row show different pictures")
    return found[0] if found else []


def _held(part: Mapping[str, Any]) -> Any:
    """The picture within a part of a content, however it is written; None for one that stands for a picture elsewhere."""
    for key in ("image", "image_url", "input_image", "url", "path", "base64", "data", "bytes", "source"):
        if not _is_empty(value := part.get(key)):
            return value
    return None


def folder_of(source: Any, named: str | None = None) -> Path:
    """From where the paths of a source's pictures go: the folder that is named, or the one that the file is in, or a folder of
    rows itself; for rows in memory and of the hub the current one."""
    if named is not None:
        if not Path(named).expanduser().is_dir():
            raise RewardlabError(f"there is no folder {named} of pictures")
        return Path(named).expanduser()
    path = Path() if isinstance(source, GivenRows) else Path(source).expanduser()
    return path if path.is_dir() else path.parent if path.is_file() else Path()


def shown_by(row: Mapping[str, Any], prompt: str, folder: Path) -> tuple[str, ...]:
    """What tells the pictures of a row from those of others, for rows whose texts are compared; empty where it shows none.

    A cell that is no picture after all counts as it is written.
    """
    try:
        return tuple(map(digest_of, pictures_of(row, prompt, None, folder, "")))
    except RewardlabError:
        return tuple(repr(value_of(row, name)) for name in COLUMNS)
