"""Files of documents to search. Their index is made once, kept in the cache folder, and read from there by every process.

docs.jsonl                     by the words that documents share with a query (BM25)
embed:docs.jsonl               by what they mean, with the embedding model minilm
embed:docs.jsonl#wordllama     with another one (`text/embedding.py`)
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.text.bm25 import BM25
from rewardlab.text.embedding import MINILM
from rewardlab.text.words import UNSPACED
from rewardlab.util.files import cached

from .embedded import Embedded, save
from .entries import Row, halved, not_utf8
from .files import check_source, read

TEXTS = ("text", "contents", "content", "passage", "document")
"""Columns that hold the text of a document, the first that is there."""
PLAIN = (".txt", ".md")


EMBED = "embed:"
"""Before the name of a file that is searched by embeddings."""


def corpus_of(name: Path | str) -> BM25 | Embedded:
    """The index of a file of documents {"id", "title", "text"}, which are searched by title and text.

    A .jsonl, .csv or .parquet file has a row for each, with a column `text` (or contents, content, passage, document) and perhaps
    `id` and `title`; a .txt or .md file has paragraphs, or without a blank line lines. Raises RewardlabError for anything else.
    """
    path, model = _named(name)
    check_source(path, "the corpus")
    file = file_of(path)
    state = file.stat()
    return _index(file, state.st_size, state.st_mtime_ns, model)


def absolute(corpus: str) -> str:
    """The same corpus by a name that holds in any working folder."""
    _, model = _named(corpus)
    return f"{EMBED}{file_of(corpus)}#{model}" if model else str(file_of(corpus))


def file_of(corpus: Path | str) -> Path:
    """The file of a corpus, however it is searched."""
    return Path(_named(corpus)[0]).expanduser().resolve()


def _named(corpus: Path | str) -> tuple[str, str]:
    """The file, and the embedding model by which it is searched; "": by words."""
    if not str(corpus).startswith(EMBED):
        return str(corpus), ""
    path, _, model = str(corpus).removeprefix(EMBED).partition("#")
    return path, model or MINILM


@lru_cache(maxsize=4)
def _index(file: Path, size: int, changed: int, model: str) -> BM25 | Embedded:
    import bm25s

    # of words: what divides a text into them
    key = hashlib.sha256(f"{file} {size} {changed} {bm25s.__version__} {model or UNSPACED}".encode()).hexdigest()[:16]
    folder = cached(f"corpus-{key}", partial(_save, file, model))
    return Embedded(folder, model) if model else BM25.load(folder)


def _save(file: Path, model: str, folder: Path) -> None:
    documents = list(_documents(file))
    texts = [f"{document['title']} {document['text']}" for document in documents]
    if not any(re.search(r"\w", text) for text in texts):
        raise RewardlabError(f"{file} holds no document with a word in it")
    if model:
        save(documents, texts, folder, model)
    else:
        BM25(documents, texts).save(folder)


def _documents(file: Path) -> Iterator[dict[str, str]]:
    if file.suffix.lower() in PLAIN:
        text = _plain(file)
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
        yield _document(entry.row, i, f"{file}, {entry.place}")


def _plain(file: Path) -> str:
    data = file.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise RewardlabError(f"{file}, line {data.count(10, 0, e.start) + 1}: {not_utf8(data)}") from None


def _document(row: Row, number: int, place: str) -> dict[str, str]:
    """The document of a row. Raises RewardlabError that says what it lacks."""
    text = next((row[name] for name in TEXTS if isinstance(row.get(name), str)), None)
    title, named = row.get("title"), row.get("id")
    if text is None:
        wrong = [f"{name!r} is {_kind(row[name])}" for name in TEXTS if name in row]
        lacks = f"its {' and '.join(wrong)}" if wrong else f"here are {', '.join(row) or 'no columns'}"
        raise RewardlabError(f"{place}: a document has its text in a column {TEXTS[0]!r} (or {', '.join(TEXTS[1:])}); {lacks}")
    if isinstance(title, list | dict):
        raise RewardlabError(f"{place}: the title of a document is a text, and here {_kind(title)}")
    if problem := halved(row):
        raise RewardlabError(f"{place}: {problem}")
    title = "" if title is None else str(title)
    if not (text.strip() or title.strip()):
        raise RewardlabError(f"{place}: the document is empty, and no search would find it: take it out")
    return {"id": str(number if named is None else named), "title": title, "text": text}


def _kind(value: Any) -> str:
    return "null" if value is None else f"a {type(value).__name__}"
