"""Words for comparison of texts: case, spacing, quotation marks and punctuation make no difference."""

from __future__ import annotations

import re
import unicodedata

from rewardlab.text.words import UNSPACED

# a number is one word with its separators; scripts without spaces give a word a character; signs are words, since 2+3 is not 2-3
_WORD = re.compile(rf"\d+(?:[.,]\d+)*|[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s.,;:!?\"'`’‘“”、。，！？；：]")


def words(text: str) -> list[str]:
    """The words of a text: in small letters, with the characters that Unicode holds to be the same made the same (NFKC)."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def shingles(text: list[str], n: int) -> set[tuple[str, ...]]:
    """The n-grams of words; of a text of fewer words, all of it as one."""
    if len(text) <= n:
        return {tuple(text)} if text else set()
    return set(zip(*(text[i:] for i in range(n)), strict=False))
