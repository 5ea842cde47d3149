"""Embedders as raters: the cosine of prompt and reply, each read by itself (a bi-encoder), so that a pool of replies is read once.

PATH?as=embedder                  a folder of sentence-transformers, or any encoder of transformers; minilm: all-MiniLM-L6-v2
ngrams?as=embedder                words and their sequences that both have (`text/embedding.py`): what an embedder should beat
PATH?as=embedder&instruct=yes     the benchmark's instruction before the prompt, where it has one
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rewardlab.errors import unknown
from rewardlab.scoreboard.items import Item, Verdict
from rewardlab.scoreboard.raters.rater import Rater
from rewardlab.text.embedding import NGRAMS, embedded

if TYPE_CHECKING:
    from rewardlab.scoreboard.benchmark import Benchmark

ANSWERS = ("no", "yes")


class Embedder(Rater):
    """Its vectors are kept while it is in use: replies that many prompts have in common are read once."""

    def __init__(self, name: str, model: str, device: str, dtype: str, *, instruct: str = "no"):
        super().__init__(name)
        if instruct not in ANSWERS:
            raise unknown("answer to whether an instruction stands before the prompt", instruct, ANSWERS)
        self.instruct, self.known = instruct == "yes", dict[str, np.ndarray]()
        self.encoder = None
        if model != NGRAMS:
            from rewardlab.models.encoder import Encoder

            self.encoder = Encoder(model, device, dtype)

    def fingerprint(self) -> str:
        return f"embedder {self.encoder.weights if self.encoder else NGRAMS} {self.instruct}"

    def reads(self, item: Item) -> str:
        return self._instruction(item)

    def judge(self, items: Sequence[Item], benchmark: Benchmark) -> list[Verdict]:
        asked = [self._instruction(item) + item.question for item in items]
        texts = dict.fromkeys(text for item, question in zip(items, asked, strict=True) for text in (question, *item.replies))
        new = [text for text in texts if text not in self.known]
        vectors = (self.encoder.embed(new) if self.encoder else embedded(new)) if new else ()
        self.known |= dict(zip(new, vectors, strict=True))
        return [self._verdict(item, question) for item, question in zip(items, asked, strict=True)]

    def _verdict(self, item: Item, question: str) -> Verdict:
        replies = np.stack([self.known[reply] for reply in item.replies])
        return Verdict(tuple((replies @ self.known[question]).astype(float).tolist()))

    def _instruction(self, item: Item) -> str:
        text = str(item.meta.get("instruction") or "") if self.instruct else ""
        return f"{text} " if text else ""
