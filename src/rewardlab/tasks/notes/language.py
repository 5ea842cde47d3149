"""What a note looks like, and how good it is.

    17 people on the farm need corn. Hurry. Be kind.      ->      Please send fresh fine corn today. Thanks!

A note is `(Please s|S)end PRAISE* NOUN [today][, FILLER]*.[ Thanks!]`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PRAISES = ("fresh", "fine", "lovely", "golden")
FILLERS = ("of course", "as ever", "you know", "by the way")
NEEDS = ("corn", "rice", "bread", "milk", "wood", "wool", "salt", "fish", "tea", "soap")

_PRAISE, _FILLER, _NEED = ("|".join(words) for words in (PRAISES, FILLERS, NEEDS))
_NOTE = re.compile(rf"(?:Please s|S)end(?: (?:{_PRAISE}))* (?:{_NEED})(?: today)?(?:, (?:{_FILLER}))*\.(?: Thanks!)?")
_PRAISED, _FILLED, _NEEDED = (re.compile(rf"\b(?:{words})\b") for words in (_PRAISE, _FILLER, _NEED))


@dataclass(frozen=True)
class Note:
    """What a note says, as far as its quality depends on it.

    polite: markers of politeness ("Please", "Thanks!"), 0 to 2.  praise, filler: how many such words.  names: the needs that it
    names.  well_formed: whether it is a note at all.
    """

    polite: int
    today: bool
    praise: int
    filler: int
    names: tuple[str, ...]
    well_formed: bool


def read(reply: str) -> Note:
    """The note in a reply, whatever the reply is."""
    text = reply.strip()
    return Note(
        polite=text.startswith("Please") + text.endswith("Thanks!"),
        today="today" in text,
        praise=len(_PRAISED.findall(text)),
        filler=len(_FILLED.findall(text)),
        names=tuple(_NEEDED.findall(text)),
        well_formed=_NOTE.fullmatch(text) is not None,
    )


def write(note: Note) -> str:
    """A note that says this, with the same words for praise and filler each time."""
    please = note.polite == 2
    return compose(please, PRAISES[: note.praise], note.names[0], note.today, FILLERS[: note.filler], note.polite > 0)


def compose(please: bool, praises: tuple[str, ...], need: str, today: bool, fillers: tuple[str, ...], thanks: bool) -> str:
    """The text of a note with these words."""
    words = ["Please send" if please else "Send", *praises, need, *(["today"] if today else [])]
    return f"{', '.join([' '.join(words), *fillers])}.{' Thanks!' if thanks else ''}"


def quality(reply: str, meta: Mapping[str, Any]) -> float:
    """How good a reply is, from 0 to 1, where meta says what is needed (`need`), and how it is asked for (`hurry`, `kind`).

    .2 for a note; .2 if "today" stands there where there is hurry, and only there; .15 per marker of politeness if it should be
    kind, and .3 less .15 per marker if it should be brief; .15 for each of the first two words of praise, and -.15 for each
    further one; -.1 per filler; -.3 if it is malformed. A note that does not name what is needed, and that alone, is worth 0.
    """
    note = read(reply)
    if set(note.names) != {meta["need"]}:
        return 0.0
    polite = 0.15 * note.polite if meta["kind"] else 0.3 - 0.15 * note.polite
    praise = 0.15 * min(note.praise, 2) - 0.15 * max(note.praise - 2, 0)
    value = 0.2 + 0.2 * (note.today == meta["hurry"]) + polite + praise - 0.1 * note.filler - 0.3 * (not note.well_formed)
    # rounded, so that sums of such steps in another order are not another quality
    return max(0.0, round(value, 6))
