"""Retrieval-augmented mask prediction (RAMP): salient spans of a text are hidden, and must be found by searching.

    Ada Lovelace met Charles Babbage in 1833.     ->     [mask 1] met Charles Babbage in [mask 2].

Which spans are salient is for a model or for named entity recognition to say (a column of spans), as in MaskSearch (Wu et al. 2025,
arXiv:2505.20285), whose kinds they are: people, places, organisations, dates, numbers, terms. Without them a rule finds names,
dates and numbers by how they are written. A span is hidden wherever it stands, under one number (inferred), so that no copy of it
gives the answer away.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.text.bm25 import BM25
from rewardlab.text.filled import filled

from .drops import Drop
from .tables import Places, Table
from .values import list_of, text_of, value_of

PROMPT = (
    "Some spans of this text are hidden. Find out what they are, by searching where you have to.\n\n{text}\n\n"
    "End with a line of what each mask hides, in order: Answer: first; second"
)
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_SMALL = "The|A|An|In|On|At|By|To|Of|For|From|With|After|Before|And|But|Or|If|It|He|She|We|They|I|This|That|His|Her|Its|Their"
"""Words that begin a sentence before a name, and are none of it."""
_SALIENT = re.compile(
    rf"\b\d{{1,2}} (?:{_MONTHS})(?: \d{{4}})?\b|\b(?:{_MONTHS}) \d{{1,2}}(?:, \d{{4}})?\b"
    r"|(?<![\w.])\d[\d,]*(?:\.\d+)?%?(?!\w)"
    rf"|\b(?!(?:{_SMALL})\b)[A-Z][\w'’-]*(?: (?:(?:of|the|de|von|van|der) ){{0,2}}[A-Z][\w'’-]*)*"
)  # fmt: skip
_OPENS = re.compile(r"(?:^|[.!?:]\s+|\n)$")


def mask(i: int) -> str:
    """What stands for the i-th hidden span, counted from 1."""
    return f"[mask {i}]"


def salient(text: str) -> list[str]:
    """The different names, dates and numbers of a text, in their order. A single word that only begins a sentence is none."""
    found: dict[str, bool] = {}
    for match in _SALIENT.finditer(text):
        span = match[0].rstrip(",")
        opens = " " not in span and span[0].isalpha() and bool(_OPENS.search(text[: match.start()][-3:] or "\n"))
        # named elsewhere within a sentence, it is a name where it opens one too
        found[span] = found.get(span, False) or not opens
    return [span for span, named in found.items() if named]


def hide(text: str, spans: Sequence[str]) -> tuple[str, list[str]]:
    """The text with these spans hidden wherever they stand as whole words, numbered in the order of their first place; and they."""
    if not spans:
        return text, []
    # the longest first: "Ada" must not be hidden within "Ada Lovelace"
    anywhere = re.compile("|".join(rf"(?<!\w){re.escape(s)}(?!\w)" for s in sorted(spans, key=len, reverse=True)))
    order = list(dict.fromkeys(match[0] for match in anywhere.finditer(text)))
    return anywhere.sub(lambda match: mask(order.index(match[0]) + 1), text), order


def ramp_file(
    source: Path | str, out: Path | str, dropped: Path | str | None = None, *, max_masks: int = 4, around: int = 8,
    text_column: str = "text", spans_column: str | None = None, seed: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """Documents as problems of which the spans must be found: prompt, answer (a list), masks, and facts, what can be searched.

    Of each document one row for 1, 2 ... `max_masks` masks, as far as it has so many different spans.  around: of other documents,
    so many of the nearest by BM25 are searchable beside it.  spans_column: a list of texts, what may be hidden; without it a rule
    finds them. A document without a span is left out.
    """
    for name, number, least in (("max_masks", max_masks, 1), ("around", around, 0)):
        if number < least:
            raise RewardlabError(f"{name} is a whole number from {least} up, not {number}")
    places = Places("ramp", [source], out, dropped)
    table = Table.load(source)
    table.require(text_column, *([spans_column] if spans_column else []))
    texts = [text_of(value_of(row, text_column)).strip() for row in table.rows]
    index, kept, left_out = BM25(texts), [], []
    for i, (row, text) in enumerate(zip(table.rows, texts, strict=True)):
        spans = salient(text) if spans_column is None else [str(s) for s in list_of(value_of(row, spans_column)) or []]
        spans = hide(text, [s for s in spans if s.strip()])[1]
        if not spans:
            left_out.append((table.places[i], row, Drop("no span", "no name, date or number is found in the text")))
            continue
        rng, near = random.Random(f"ramp {seed} {i}"), _nearest(index, text, around)
        rest = {k: v for k, v in row.items() if k not in (text_column, spans_column)}
        for n in range(1, min(max_masks, len(spans)) + 1):
            hidden, answers = hide(text, rng.sample(spans, n))
            searchable = rng.sample([text, *near], 1 + len(near))
            kept.append({**rest, "prompt": filled(PROMPT, text=hidden), "answer": answers, "masks": n, "facts": searchable})
    return places.finish([table], left_out, kept)


def _nearest(index: BM25, text: str, n: int) -> list[str]:
    """The n documents that share most with a text, without it and without its copies."""
    return [other for other in index.best(text, n + 1 + index.documents.count(text)) if other != text][:n]
