"""Files of documents to search. Their index is made once, kept in the cache folder, and read from there by every process."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.text.bm25 import BM25
from rewardlab.util.files import cached

from .files import check_source, read

TEXTS = ("text", "contents", "content", "passage", "document")
"""Columns that hold the text of a document, the first that is there."""
PLAIN = (".txt", ".md")


def corpus_of(path: Path | str) -> BM25:
    """The index of a file of documents {"id", "title", "text"}, which are searched by title and text.

    A .jsonl, .csv or .parquet file has a row for each, with a column `text` (or contents, content, passage, document) and perhaps
    `id` and `title`; a .txt or .md file has paragraphs, or without a blank line lines. Raises RewardlabError for anything else.
    """
    check_source(path, "the corpus")
    file = Path(path).expanduser().resolve()
    state = file.stat()
    return _index(file, state.st_size, state.st_mtime_ns)


def absolute(corpus: str) -> str:
    """The same corpus by a name that holds in any working folder."""
    return str(Path(corpus).expanduser().resolve())


@lru_cache(maxsize=4)
def _index(file: Path, size: int, changed: int) -> BM25:
    import bm25s

    key = hashlib.sha256(f"{file} {size} {changed} {bm25s.__version__}".encode()).hexdigest()[:16]
    return BM25.load(cached(f"corpus-{key}", partial(_save, file)))


def _save(file: Path, folder: Path) -> None:
    documents = list(_documents(file))
    texts = [f"{document['title']} {document['text']}" for document in documents]
    if not any(re.search(r"\w", text) for text in texts):
        raise RewardlabError(f"{file} holds no document with a word in it")
    BM25(documents, texts).save(folder)


def _documents(file: Path) -> Iterator[dict[str, str]]:
    if file.suffix.lower() in PLAIN:
        text = file.read_text("utf-8", errors="replace")
        parts = re.split(r"\n\s*\n", text.strip())
        for i, part in enumerate(parts if len(parts) > 1 else text.splitlines()):
            if part.strip():
                yield {"id": str(i), "title": "", "text": part.strip()}
        return
    for i, entry in enumerate(read(file)):
        if entry.blank:
            continue
        if entry.row is None:
            raise RewardlabError(f"{file}, {entry.place}, is no document: {entry.why}")
        yield {
            "id": str(entry.row.get("id", i)),
            "title": str(entry.row.get("title") or ""),
            "text": _text(entry.row, file, entry.place),
        }


def _text(row: dict[str, Any], file: Path, place: str) -> str:
    found = next((row[name] for name in TEXTS if isinstance(row.get(name), str)), None)
    if found is None:
        raise RewardlabError(
            f"{file}, {place}: a document has its text in a column {TEXTS[0]!r} (or {', '.join(TEXTS[1:])}); here are "
            f"{', '.join(row) or 'no columns'}"
        )
    return found
