"""An index of documents by the meaning of their texts: vectors on disk, whose products with a query's are cosines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.text.bm25 import top
from rewardlab.text.embedding import embedded

AT_ONCE = 1024
"""Documents that are embedded together."""
VECTORS, DOCUMENTS = "vectors.npy", "documents.jsonl"


class Embedded:
    """An index that was saved in a folder.  model: of `text/embedding.py`, by which it was made, and queries are read."""

    def __init__(self, folder: Path, model: str):
        from bm25s.utils.corpus import JsonlCorpus

        self.model = model
        # both stay on disk until they are read
        self.vectors = np.load(folder / VECTORS, mmap_mode="r")
        self.documents = JsonlCorpus(folder / DOCUMENTS, show_progress=False, verbosity=0)

    def best(self, query: str, k: int = 1) -> list[Any]:
        """The k documents nearest to the query, ties in document order."""
        return [document for document, _ in self.search([query], k)[0]]

    def search(self, queries: Sequence[str], k: int = 1) -> list[list[tuple[Any, float]]]:
        """For each query the documents of `best`, with their cosines. A query that is no text at all finds nothing."""
        asked = embedded(queries, self.model)
        return [
            [(self.documents[i], score) for i, score in top(self.vectors @ vector, k)] if vector.any() else [] for vector in asked
        ]


def save(documents: Sequence[dict[str, str]], texts: Sequence[str], folder: Path, model: str) -> None:
    """Write the vectors of the texts, by which the documents are searched, and the documents, to a folder."""
    table: Any = None
    for start in range(0, len(texts), AT_ONCE):
        part = embedded(texts[start : start + AT_ONCE], model)
        if table is None:
            table = np.lib.format.open_memmap(folder / VECTORS, "w+", np.float32, (len(texts), part.shape[1]))
        table[start : start + AT_ONCE] = part
    table.flush()
    (folder / DOCUMENTS).write_text("".join(json.dumps(document) + "\n" for document in documents), "utf-8")
