"""Measures of how alike two texts are, from 0 to 1, and what they are counted on: words, sentences, n-grams, subsequences.

Everything takes linear time but `distance` and `common`, which keep a row of the table of dynamic programming in the bits of one
integer (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"; 2003, for edit distance): two texts of 20,000
characters take a fifth of a second.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Hashable, Sequence

LONGEST = 20_000
"""Characters, or words, up to which two texts are compared in quadratic time."""

_WORD = re.compile(r"[^\W_]+")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))
_STOP = re.compile(r"[.!?。！？][.!?。！？\"'”’)\]]{0,9}(?=\s|$)|[。！？]")
_ABBREVIATED = {
    "mr", "mrs", "ms", "dr", "prof", "st", "jr", "sr", "vs", "etc", "inc", "ltd", "co", "fig", "no", "vol", "approx", "capt", "lt",
    "gen", "col", "rev", "hon", "e.g", "i.e", "cf", "al", "ph.d", "u.s", "u.k", "a.m", "p.m",
}  # fmt: skip


def normalised(text: str) -> str:
    """A text as SQuAD compares it: in lower case, without punctuation, articles and more than single spaces.

    Rajpurkar et al. 2016, arXiv:1606.05250, and the script that came with it.
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def words(text: str) -> list[str]:
    """Runs of letters and digits, in lower case: for ASCII, the tokens of the package rouge-score without its stemmer."""
    return _WORD.findall(text.lower())


def sentences(text: str) -> list[str]:
    """Cut after . ! ? that a space follows, but not after an abbreviation or an initial. A line break alone ends no sentence."""
    found, start = [], 0
    for stop in _STOP.finditer(text):
        before = text[max(start, stop.start() - 20) : stop.start()].split()
        last = before[-1].lstrip("(\"'[") if before else ""
        short = last.lower() in _ABBREVIATED or (len(last) == 1 and last.isupper() and last != "I")
        goes_on = text[stop.end() : stop.end() + 50].strip()
        if stop.group() == "." and short and goes_on:
            continue
        found.append(text[start : stop.end()].strip())
        start = stop.end()
    return [sentence for sentence in (*found, text[start:].strip()) if sentence]


def ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[i:] for i in range(n)), strict=False))


def f1(shared: float, said: float, wanted: float) -> float:
    """The harmonic mean of precision shared/said and recall shared/wanted; 0 where nothing is shared."""
    return 2 * shared / (said + wanted) if shared else 0.0


def overlap(said: Sequence[str], wanted: Sequence[str], n: int = 1) -> float:
    """F1 over n-grams, each counted as often as both have it: SQuAD's F1 for words, ROUGE-n.

    Texts that are too short for an n-gram are alike if they are equal.
    """
    a, b = ngrams(said, n), ngrams(wanted, n)
    if not a and not b:
        return float(list(said) == list(wanted) != [])
    return f1((a & b).total(), a.total(), b.total())


def rouge_l(said: Sequence[str], wanted: Sequence[str]) -> float:
    """F1 over the longest common subsequence (Lin 2004, with equal weights, as the package rouge-score has it)."""
    return f1(len(common(wanted, said)), len(said), len(wanted))


def rouge_lsum(said: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]) -> float:
    """ROUGE-L over sentences: for each wanted one, the union of what it has in common with every sentence that was said.

    A word pays no more often than either text has it (Lin 2004, section 3.2; counted as the package rouge-score does).
    """
    left = Counter(word for sentence in said for word in sentence)
    shared = 0
    for sentence in wanted:
        union = sorted({i for other in said for i in common(sentence, other)})
        for i in union:
            shared += left[sentence[i]] > 0
            left[sentence[i]] -= 1
    return f1(shared, sum(map(len, said)), sum(map(len, wanted)))


def bleu(said: Sequence[str], wanted: Sequence[Sequence[str]], order: int = 4) -> float:
    """BLEU of one text against one or more references (Papineni et al. 2002), with 1 added to the counts above unigrams.

    The smoothing is that of Lin and Och 2004 (ORANGE), without which most single sentences have a BLEU of 0.
    """
    if not said:
        return 0.0
    logs = 0.0
    for n in range(1, order + 1):
        mine, most = ngrams(said, n), Counter[tuple[str, ...]]()
        for reference in wanted:
            most |= ngrams(reference, n)
        hits, total = (mine & most).total(), mine.total()
        if not hits and n == 1:
            return 0.0
        logs += math.log(hits / total if n == 1 else (hits + 1) / (total + 1))
    closest = min((len(reference) for reference in wanted), key=lambda n: (abs(n - len(said)), n))
    return math.exp(logs / order + min(0.0, 1 - closest / len(said)))


def similarity(a: str, b: str) -> float:
    """1 - Levenshtein distance / length of the longer text."""
    longer = max(len(a), len(b))
    return 1 - distance(a, b) / longer if longer else 1.0


def distance(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """Levenshtein's: insertions, deletions and substitutions that make one of the other."""
    if not a or not b:
        return max(len(a), len(b))
    where, full = _places(a), (1 << len(a)) - 1
    up, down, found, last = full, 0, len(a), 1 << (len(a) - 1)
    for item in b:
        equal = where.get(item, 0) | down
        same = (((equal & up) + up) ^ up) | equal
        more, less = (down | ~(same | up)) & full, up & same
        found += bool(more & last) - bool(less & last)
        more, less = (more << 1 | 1) & full, (less << 1) & full
        up, down = (less | ~(same | more)) & full, more & same
    return found


def common(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[int]:
    """Positions in `a` of a longest common subsequence."""
    where, full = _places(a), (1 << len(a)) - 1
    rows = [full]
    for item in b:
        # bit i of a row is 0 where one more item of `a`, the i-th, adds to the subsequence
        row = rows[-1]
        equal = row & where.get(item, 0)
        rows.append((row + equal | row - equal) & full)
    return _trace(a, b, rows)


def _trace(a: Sequence[Hashable], b: Sequence[Hashable], rows: list[int]) -> list[int]:
    """Follow the table back from its end, as the package rouge-score does where there is a choice."""

    def length(i: int, j: int) -> int:
        return i - (rows[j] & ((1 << i) - 1)).bit_count()

    found, i, j = [], len(a), len(b)
    while i and j:
        if a[i - 1] == b[j - 1]:
            i, j = i - 1, j - 1
            found.append(i)
        elif length(i, j - 1) > length(i - 1, j):
            j -= 1
        else:
            i -= 1
    return found[::-1]


def _places(items: Sequence[Hashable]) -> dict[Hashable, int]:
    """For each item, an integer whose bits say where it stands."""
    at: dict[Hashable, int] = {}
    for i, item in enumerate(items):
        at[item] = at.get(item, 0) | 1 << i
    return at
