"""Embedders as raters: prompt and reply each read by itself (a bi-encoder), so that a pool of replies is read once. The score is
their cosine, or what a linear head says of the two vectors that was fitted to pairs of one's own (`preference_head.py`).

PATH?as=embedder                  a folder of sentence-transformers, or any encoder of transformers; minilm: all-MiniLM-L6-v2
ngrams?as=embedder                words and their sequences that both have (`text/embedding.py`): what an embedder should beat
PATH?as=embedder&instruct=yes     the benchmark's instruction before the prompt, where it has one
minilm?as=embedder&head=FILE      a head fitted to the pairs in a file: prompt, chosen, rejected
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rewardlab.errors import unknown
from rewardlab.scoreboard import own_pairs
from rewardlab.scoreboard.items import Item, Verdict
from rewardlab.scoreboard.raters.preference_head import fitted
from rewardlab.scoreboard.raters.rater import Rater, verdicts
from rewardlab.text.embedding import NGRAMS, embedded
from rewardlab.util.progress import console

if TYPE_CHECKING:
    from rewardlab.scoreboard.benchmark import Benchmark

ANSWERS = ("no", "yes")
EMPTY = "the reply is empty, and has no vector"


class Embedder(Rater):
    """Its vectors are kept while it is in use: replies that many prompts have in common are read once.  head: a file of pairs that
    a head is fitted to; its scores are then log-odds."""

    def __init__(self, name: str, model: str, device: str, dtype: str, *, instruct: str = "no", head: str = ""):
        super().__init__(name)
        if instruct not in ANSWERS:
            raise unknown("answer to whether an instruction stands before the prompt", instruct, ANSWERS)
        self.instruct, self.known, self.cut = instruct == "yes", dict[str, np.ndarray](), set[str]()
        pairs = own_pairs.benchmark.items(head) if head else []
        self.encoder = None
        if model != NGRAMS:
            from rewardlab.models.encoder import Encoder

            self.encoder = Encoder(model, device, dtype)
        self.weights = self.encoder.weights if self.encoder else NGRAMS
        self.head = fitted(pairs, self._vectors, self.weights) if head else None
        if self.head:
            self.scale = True
            said = f"{name}: fitted to {self.head.pairs:,} pairs, {self.head.held_out:.1%} right on prompts left out"
            console.print(said, highlight=False, soft_wrap=True)

    def fingerprint(self) -> str:
        head = f" head {hashlib.sha256(self.head.weights.tobytes()).hexdigest()[:16]}" if self.head else ""
        return f"embedder {self.weights} {self.instruct}{head}"

    def reads(self, item: Item) -> str:
        return self._instruction(item)

    def judge(self, items: Sequence[Item], benchmark: Benchmark) -> list[Verdict]:
        asked = [self._instruction(item) + item.question for item in items]
        self._vectors([text for item, question in zip(items, asked, strict=True) for text in (question, *item.replies)])
        return [self._verdict(item, question) for item, question in zip(items, asked, strict=True)]

    def _verdict(self, item: Item, question: str) -> Verdict:
        replies = np.stack([self.known[reply] for reply in item.replies])
        found = self.head.rewards(self.known[question], replies) if self.head else replies @ self.known[question]
        # a text of which the tokenizer makes nothing has no direction
        none = [not np.isfinite(vector).all() for vector in replies]
        scores = [None if gone else score for gone, score in zip(none, found.astype(float).tolist(), strict=True)]
        why, cut = [EMPTY if gone else "" for gone in none], [reply in self.cut for reply in item.replies]
        (verdict,) = verdicts([item], scores, why, cut=cut)
        return verdict

    def _vectors(self, texts: Sequence[str]) -> np.ndarray:
        """(n, d) of texts, each of which is read once."""
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        if new:
            self.known |= dict(zip(new, self.encoder.embed(new) if self.encoder else embedded(new), strict=True))
            self.cut |= self.encoder.too_long(new) if self.encoder else set()
        return np.stack([self.known[text] for text in texts])

    def _instruction(self, item: Item) -> str:
        text = str(item.meta.get("instruction") or "") if self.instruct else ""
        return f"{text} " if text else ""
