"""Generated text in the OpenAI API's terms: up to a stop string, with log-probs and finish reason."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from rewardlab.servers.generator import Written

LOWEST = -9999.0
"""In place of minus infinity, which JSON has no word for."""


@dataclass(frozen=True)
class Text:
    """text: without the stop string.  tokens: how many of the reply's tokens it takes.  finish: stop, length, or None.
    by: the stop string that ended it.
    """

    text: str
    tokens: int
    finish: str | None
    by: str | None = None


def text_of(policy: Any, written: Written, stops: Sequence[str], final: bool) -> Text:
    """The text of a reply. Before it is `final`, what may change is held back: half a character, the beginning of a stop string."""
    ids, stop = written.ids, written.row.stop
    text = policy.decode(ids)
    found = min(((at, s) for s in stops if (at := text.find(s)) >= 0), default=None)
    ended = found is not None or (stop is not None and stop != "length")
    if found:
        text = text[: found[0]]
    elif not final and not ended:
        text = text[: len(text) - _unsure(text, stops)]
    finish = "stop" if ended else "length" if final else None
    return Text(text, _tokens_of(policy, ids, len(text), finish, found is not None), finish, found[1] if found else None)


def _unsure(text: str, stops: Sequence[str]) -> int:
    """How many characters at the end of a text may yet change, or be cut off."""
    # a character of which only some bytes are there decodes to U+FFFD
    broken = len(text) - len(text.rstrip("\ufffd"))
    begun = [n for s in stops for n in range(1, len(s)) if text.endswith(s[:n])]
    return max([broken, *begun])


def _tokens_of(policy: Any, ids: Any, length: int, finish: str | None, cut: bool) -> int:
    """How many tokens the first `length` characters take; the token that ends a reply is none of them."""
    if finish and not cut:
        return len(ids) - bool(len(ids) and int(ids[-1]) in policy.ends)
    # whole beginnings are decoded: a token alone may lack the space before it
    return bisect_right(range(1, len(ids) + 1), length, key=lambda n: len(policy.decode(ids[:n])))


def pieces_of(policy: Any, ids: np.ndarray) -> list[str]:
    # tokenizers take no tokens at all for one text
    return policy.pieces(ids) if len(ids) else []


def chat_logprobs(policy: Any, written: Written, start: int, stop: int) -> dict[str, Any]:
    """The log-probs of the tokens start..stop of a reply, of the raw policy."""
    ids, logprobs = written.ids[start:stop], written.logprobs[start:stop]
    tops = written.tops[start:stop] or [[]] * len(ids)
    rows = zip(pieces_of(policy, ids), logprobs.tolist(), tops, strict=True)
    return {"content": [{**token(piece, x), "top_logprobs": _named(policy, top)} for piece, x, top in rows]}


def _named(policy: Any, top: Sequence[tuple[int, float]]) -> list[dict[str, Any]]:
    pieces = pieces_of(policy, np.asarray([i for i, _ in top], np.int64))
    return [token(piece, x) for piece, (_, x) in zip(pieces, top, strict=True)]


def token(piece: str, logprob: float) -> dict[str, Any]:
    return {"token": piece, "logprob": finite(logprob), "bytes": list(piece.encode("utf-8", "replace"))}


def finite(logprob: float) -> float:
    return logprob if math.isfinite(logprob) else LOWEST


def text_logprobs(policy: Any, written: Written, start: int, stop: int, echo: bool) -> dict[str, Any]:
    """The older form, of text completions. echo: with those of the prompt, of which the first has none."""
    first = 0 if echo else written.before + start
    last = written.before + stop
    ids = written.row.ids[first:last]
    pieces = pieces_of(policy, ids)
    if echo and written.scores is not None:
        numbers = [None, *map(finite, written.scores[1:last].tolist())]
    else:
        numbers = list(map(finite, written.logprobs[start:stop].tolist()))
    # tops begin with the second token where the prompt is told too
    tops = [[], *written.tops][: len(ids)] if echo else written.tops[start:stop]
    named = [{t["token"]: t["logprob"] for t in _named(policy, top)} or None for top in tops] if written.tops else None
    offsets = [0, *accumulate(map(len, pieces))][: len(pieces)]
    return {"tokens": pieces, "token_logprobs": numbers, "top_logprobs": named, "text_offset": offsets}
