"""Where reasoning steps end. Process rewards, annotators and step-wise credit all use these splitters, so their steps agree.

A splitter maps the decoded tokens of one reply (its pieces) to the index of the last token of each step. Blank steps belong
to the step before them. The last step always ends with the reply, so an end-of-text token belongs to it too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import accumulate, groupby, pairwise

import numpy as np

from rewardlab.core import Trajectory
from rewardlab.errors import RewardlabError, unknown

Splitter = Callable[[list[str]], list[int]]

_BLANK = re.compile(r"\n[ \t\r]*\n")
_TAG = re.compile(r"</[A-Za-z_][\w-]{0,40}>")
_SENTENCE = re.compile(r"[.!?。！？][\"')\]]{0,3}(?=\s)|\n")


def newline(pieces: list[str]) -> list[int]:
    """Each line is a step."""
    return _ends(pieces, (match.end() for match in re.finditer("\n", "".join(pieces))))


def paragraph(pieces: list[str]) -> list[int]:
    """Each block of lines is a step, up to a blank line."""
    return _ends(pieces, (match.end() for match in _BLANK.finditer("".join(pieces))))


def tag(pieces: list[str]) -> list[int]:
    """Each closing tag, such as `</step>`, ends a step."""
    return _ends(pieces, (match.end() for match in _TAG.finditer("".join(pieces))))


def sentence(pieces: list[str]) -> list[int]:
    """Each sentence or line is a step."""
    return _ends(pieces, (match.end() for match in _SENTENCE.finditer("".join(pieces))))


def token(pieces: list[str]) -> list[int]:
    """Each token is a step."""
    last = max((i for i, piece in enumerate(pieces) if piece.strip()), default=0)
    return [*range(last), len(pieces) - 1] if pieces else []


SPLITTERS: dict[str, Splitter] = {f.__name__: f for f in (newline, paragraph, tag, sentence, token)}


def splitter(name: str) -> Splitter:
    if name not in SPLITTERS:
        raise unknown("splitter", name, SPLITTERS)
    return SPLITTERS[name]


def of_text(name: str) -> Splitter:
    """The splitter of this name, of those that need no tokens. Raises RewardlabError for another."""
    if name == "token":
        raise RewardlabError(
            "a text alone does not show its tokens: use the splitter 'newline', 'paragraph', 'tag' or 'sentence' here"
        )
    return splitter(name)


def cut(text: str, name: str) -> list[str]:
    """The steps of a reply as text, in order. A blank reply has one step. Raises RewardlabError for the splitter `token`."""
    ends = [0, *(i + 1 for i in of_text(name)(list(text)))]
    return [text[a:b].strip() for a, b in pairwise(ends)] or [""]


def mark(trajectory: Trajectory, name: str, pieces_of: Callable[[np.ndarray], list[str]], of: str = "policy") -> Trajectory:
    """The trajectory with `steps` set to the token positions at which the steps of one author's replies end.

    pieces_of(ids) gives the text of each token. A reply written over several turns is split as one.
    """
    split_pieces, steps, position = splitter(name), [], 0
    for author, turns in groupby(trajectory.turns, key=lambda turn: turn.author):
        ids = np.concatenate([turn.ids for turn in turns])
        if author == of and len(ids):
            steps += [position + i for i in split_pieces(pieces_of(ids))]
        position += len(ids)
    return replace(trajectory, steps=tuple(steps))


def _ends(pieces: list[str], cuts: Iterable[int]) -> list[int]:
    """Index of the last piece of each step. A step begins at the first visible character after a cut.

    A piece belongs to the step of its first visible character; a blank piece to the step of the piece before it.
    """
    if not pieces:
        return []
    text = "".join(pieces)
    starts = sorted({start for at in cuts if (start := _visible(text, at)) is not None})
    starts = [at for at in starts if at > (_visible(text, 0) or 0)]
    step: list[int] = []
    for at, piece in zip(accumulate(map(len, pieces), initial=0), pieces, strict=False):
        first_visible = at + len(piece) - len(piece.lstrip())
        step.append(bisect_right(starts, first_visible) if piece.strip() else step[-1] if step else 0)
    return [i for i in range(len(step) - 1) if step[i] != step[i + 1]] + [len(step) - 1]


def _visible(text: str, at: int) -> int | None:
    """The position of the first visible character from `at` on; None if there is none."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at if at < len(text) else None
