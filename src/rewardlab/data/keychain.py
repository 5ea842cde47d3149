"""KeyChain: a question is hidden in a long text behind a chain of keys, one of several (Wang et al. 2025, arXiv:2510.19363).

    {"k0": "k1"}. ... {"k1": "k2"}. ... {"k2": "Who directed ...?"}.      among documents, in any order; other chains end elsewhere

Who reads it is told k0, must follow the chain to the question, and then answer it from the documents. Chains and how they are put
in follow the authors' synthesis (Wangmerlyn/KeyChain, 7c3ff92: 4 keys of a chain, and 4 chains for each 1024 tokens, so many more
than the 4 chains that are the default here); the words of the prompt are our own. Where documents have fewer
ends of sentences than there are links, several stand in one place; there that is an error.
"""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.text.filled import filled

from .drops import Drop
from .tables import Places, Table
from .values import list_of, text_of, value_of

_END = re.compile(r"[.?!](?=\s|$)|(?=\n)|$")
PROMPT = (
    "Read the following text. It holds key-value pairs.\n\n{text}\n\nOne question is to be answered. It stands at the end of the "
    "chain of keys that begins with {start}: the value of each key is the next key, that of the last one is the question. Find the "
    "question, then answer it by what the text says. Put the final answer into \\boxed{}."
)
NewKey = Callable[[random.Random], str]


def uuid_key(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def chain(question: str, links: int, rng: random.Random, key: NewKey = uuid_key) -> list[tuple[str, str]]:
    """`links` pairs of a key and its value: the next key, at last the question."""
    keys = [key(rng) for _ in range(links)]
    return list(zip(keys, [*keys[1:], question], strict=True))


def hidden(
    question: str, documents: Sequence[str], decoys: Sequence[str], rng: random.Random, *, links: int = 4, key: NewKey = uuid_key,
    prompt: str = PROMPT,
) -> tuple[str, str]:  # fmt: skip
    """A prompt in which the question stands at the end of a chain, and each decoy at the end of another; and the first key.

    documents: shuffled; the pairs stand at random after sentences of them.  prompt: with {text} and {start}.
    """
    chains = [chain(q, links, rng, key) for q in (question, *decoys)]
    pairs = [f'{{"{a}": "{b}"}}.' for found in chains for a, b in found]
    rng.shuffle(pairs)
    text = "\n\n".join(rng.sample(list(documents), len(documents)))
    ends = sorted({match.end() for match in _END.finditer(text)})
    places = sorted(rng.sample(ends, len(pairs)) if len(ends) >= len(pairs) else [rng.choice(ends) for _ in pairs])
    parts = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    woven = parts[0] + "".join(f" {pair}{part}" for pair, part in zip(pairs, parts[1:], strict=True))
    start = chains[0][0][0]
    return filled(prompt, text=woven, start=start), start


def keychain_file(
    source: Path | str, out: Path | str, dropped: Path | str | None = None, *, words: int = 8000, chains: int = 4, links: int = 4,
    prompt_column: str = "prompt", documents_column: str = "documents", seed: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """Rows of questions with their documents as rows in which the question is hidden: the prompt anew, and the columns question,
    start, chains, links and words.

    documents_column: a list of texts, or a text.  words: about how long a prompt gets, by documents of other rows, never below its
    own.  chains: the true one and those that end at questions of other rows.  links: pairs of a chain.  A row without a question or
    documents is left out, and all of them where the file has fewer different questions than chains.
    """
    for name, number in (("words", words), ("chains", chains), ("links", links)):
        if number < 1:
            raise RewardlabError(f"{name} is a whole number from 1 up, not {number}")
    places = Places("keychain", [source], out, dropped)
    table = Table.load(source)
    table.require(prompt_column, documents_column)
    questions = [text_of(value_of(row, prompt_column)).strip() for row in table.rows]
    own = [_documents(row, documents_column) for row in table.rows]
    pool = {doc: len(doc.split()) for documents in own for doc in documents}
    others = list(dict.fromkeys(q for q, documents in zip(questions, own, strict=True) if q and documents))
    kept, left_out = [], []
    for i, row in enumerate(table.rows):
        why = _lacking(questions[i], own[i], len(others), chains)
        if why:
            left_out.append((table.places[i], row, Drop(why[0], why[1])))
            continue
        rng = random.Random(f"keychain {seed} {i}")
        decoys = [q for q in rng.sample(others, chains) if q != questions[i]][: chains - 1]
        text, start = hidden(questions[i], _filled(own[i], pool, words, rng), decoys, rng, links=links)
        added = {"question": questions[i], "start": start, "chains": chains, "links": links, "words": len(text.split())}
        kept.append({**{k: v for k, v in row.items() if k != documents_column}, prompt_column: text, **added})
    return places.finish([table], left_out, kept)


def _documents(row: Mapping[str, Any], column: str) -> list[str]:
    value = value_of(row, column)
    listed = list_of(value)
    texts = [str(x).strip() for x in listed] if listed is not None else [value.strip()] if isinstance(value, str) else []
    return [text for text in texts if text]


def _lacking(question: str, documents: Sequence[str], questions: int, chains: int) -> tuple[str, str] | None:
    if not question or not documents:
        return "no question" if not question else "no documents", "a question and documents that answer it are needed"
    short = f"{chains} chains need as many different questions, and the file has {questions}"
    return ("too few questions", short) if questions < chains else None


def _filled(own: Sequence[str], pool: Mapping[str, int], words: int, rng: random.Random) -> list[str]:
    """A row's documents with others until so many words are reached. pool: all documents with their words."""
    documents, known, texts = list(own), set(own), list(pool)
    left = words - sum(pool[text] for text in own)
    # every document has a word at least
    for text in rng.sample(texts, max(0, min(len(texts), left + len(own)))):
        if left <= 0:
            break
        if text not in known and pool[text] <= left:
            documents.append(text)
            left -= pool[text]
    return documents
