"""Similarity of two texts, from 0 to 1, over words, sentences, n-grams and common subsequences.

Everything takes linear time except `distance` and `common`, which keep a row of the dynamic-programming table in the bits of one
integer (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"; 2003, for edit distance). Two texts of 20,000
characters take 0.2 s.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Hashable, Sequence

LONGEST = 20_000
"""Longest texts that are compared in quadratic time, in characters or words."""
UNSPACED = (
    "\u3005-\u3007\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u312f\u31a0-\u31bf\u31f0-\u31ff\uff66-\uff9f"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u1100-\u11ff\u3131-\u318e\uac00-\ud7ff"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u1000-\u103f\u1050-\u109f\u1780-\u17d3"
)
"""What stands in [...] of a pattern for the letters and marks of Japanese, Chinese, Thai, Lao, Burmese and Khmer, which leave no
spaces between words, and of Korean, which leaves none before a word's endings."""

_WORD = re.compile(r"[^\W_]+")
_WORD_OR_SIGNS = re.compile(r"\w+|[^\w\s]+")
_MTEVAL = (
    # signs but ' , - . stand alone; a comma or full stop does unless between digits; so does a hyphen after a digit
    (re.compile(r"([!-&(-+/:-@\[-`{-~])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))
_STOP = re.compile(r"[.!?。！？][.!?。！？\"'”’)\]]{0,9}(?=\s|$)|[。！？]")
_ABBREVIATED = {
    "mr", "mrs", "ms", "dr", "prof", "st", "jr", "sr", "vs", "etc", "inc", "ltd", "co", "fig", "no", "vol", "approx", "capt", "lt",
    "gen", "col", "rev", "hon", "e.g", "i.e", "cf", "al", "ph.d", "u.s", "u.k", "a.m", "p.m",
}  # fmt: skip


def normalised(text: str) -> str:
    """A text as SQuAD compares it: lower case, no punctuation, no articles, single spaces.

    Rajpurkar et al. 2016, arXiv:1606.05250, and its evaluation script.
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def words(text: str) -> list[str]:
    """Runs of letters and digits, in lower case. For ASCII text, the tokens of the package rouge-score without its stemmer."""
    return _WORD.findall(text.lower())


def words_and_signs(text: str) -> list[str]:
    """Runs of letters and digits, and runs of other signs, in their case, as wordpunct_tokenize of NLTK divides text."""
    return _WORD_OR_SIGNS.findall(text)


def mteval_tokens(text: str) -> list[str]:
    """Words and signs, in their case, as mteval-v13a divides Western text; it is the default tokeniser of the package sacrebleu."""
    # a word that was divided at the end of a line is one word
    text = text.replace("-\n", "").join("  ")
    for pattern, spaced in _MTEVAL:
        text = pattern.sub(spaced, text)
    return text.split()


def sentences(text: str) -> list[str]:
    """Split after . ! ? followed by a space, but not after an abbreviation or an initial. A line break alone ends no sentence."""
    parts, start = [], 0
    for stop in _STOP.finditer(text):
        before = text[max(start, stop.start() - 20) : stop.start()].split()
        last = before[-1].lstrip("(\"'[") if before else ""
        abbreviated = last.lower() in _ABBREVIATED or (len(last) == 1 and last.isupper() and last != "I")
        continues = text[stop.end() : stop.end() + 50].strip()
        # an abbreviation at the very end does end the sentence
        if stop.group() == "." and abbreviated and continues:
            continue
        parts.append(text[start : stop.end()].strip())
        start = stop.end()
    return [sentence for sentence in (*parts, text[start:].strip()) if sentence]


def ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[i:] for i in range(n)), strict=False))


def f1(shared: float, said: float, wanted: float) -> float:
    """The harmonic mean of precision shared/said and recall shared/wanted; 0 if nothing is shared."""
    return 2 * shared / (said + wanted) if shared else 0.0


def overlap(said: Sequence[str], wanted: Sequence[str], n: int = 1) -> float:
    """F1 over n-grams, each counted as often as both texts contain it. n = 1 on words is SQuAD's F1; in general it is ROUGE-n.

    Two texts too short for an n-gram score 1 if they are equal and not empty, else 0.
    """
    a, b = ngrams(said, n), ngrams(wanted, n)
    if not a and not b:
        return float(list(said) == list(wanted) != [])
    return f1((a & b).total(), a.total(), b.total())


def rouge_l(said: Sequence[str], wanted: Sequence[str]) -> float:
    """F1 over the longest common subsequence (Lin 2004, with equal weights, as in the package rouge-score)."""
    return f1(len(common(wanted, said)), len(said), len(wanted))


def rouge_lsum(said: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]) -> float:
    """ROUGE-L over sentences: each reference sentence is matched with the union of its common subsequences with all said sentences.

    A word counts at most as often as it occurs in either text (Lin 2004, section 3.2; counted as in the package rouge-score).
    """
    available = Counter(word for sentence in said for word in sentence)
    shared = 0
    for sentence in wanted:
        union = sorted({i for other in said for i in common(sentence, other)})
        for i in union:
            shared += available[sentence[i]] > 0
            available[sentence[i]] -= 1
    return f1(shared, sum(map(len, said)), sum(map(len, wanted)))


def bleu(
    said: Sequence[str], wanted: Sequence[Sequence[str]], order: int = 4, unigrams: bool = False, shortest: bool = False
) -> float:
    """BLEU of one text against one or more references (Papineni et al. 2002), with add-one smoothing above unigrams.

    The smoothing is that of Lin and Och 2004 (ORANGE); without it, most single sentences have a BLEU of 0.  unigrams: smooth them
    too.  shortest: texts must not be shorter than the shortest reference, and not than the one that is closest in length. Both are
    as in the script of TensorFlow's NMT, which the package evaluate has taken over.
    """
    if not said:
        return 0.0
    log_sum = 0.0
    for n in range(1, order + 1):
        said_counts, reference_counts = ngrams(said, n), Counter[tuple[str, ...]]()
        for reference in wanted:
            # the maximum over references, as in BLEU's clipped counts
            reference_counts |= ngrams(reference, n)
        hits, total, added = (said_counts & reference_counts).total(), said_counts.total(), int(n > 1 or unigrams)
        if not hits + added:
            return 0.0
        log_sum += math.log((hits + added) / (total + added))
    lengths = [len(reference) for reference in wanted]
    # of two references at the same distance the shorter one, as in the original BLEU
    length = min(lengths) if shortest else min(lengths, key=lambda n: (abs(n - len(said)), n))
    return math.exp(log_sum / order + min(0.0, 1 - length / len(said)))


def similarity(a: str, b: str) -> float:
    """1 - Levenshtein distance / length of the longer text."""
    longer = max(len(a), len(b))
    return 1 - distance(a, b) / longer if longer else 1.0


def distance(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """Levenshtein distance: the fewest insertions, deletions and substitutions that turn one text into the other."""
    if not a or not b:
        return max(len(a), len(b))
    positions, full = _places(a), (1 << len(a)) - 1
    # bits of `up` and `down` say where the distance grows or falls by 1 from one row of the table to the next
    up, down, total, last = full, 0, len(a), 1 << (len(a) - 1)
    for item in b:
        equal = positions.get(item, 0) | down
        same = (((equal & up) + up) ^ up) | equal
        grows, falls = (down | ~(same | up)) & full, up & same
        total += bool(grows & last) - bool(falls & last)
        grows, falls = (grows << 1 | 1) & full, (falls << 1) & full
        up, down = (falls | ~(same | grows)) & full, grows & same
    return total


def common(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[int]:
    """Positions in `a` of a longest common subsequence with `b`."""
    positions, full = _places(a), (1 << len(a)) - 1
    rows = [full]
    for item in b:
        # bit i of a row is 0 if the subsequence gets longer when the i-th item of `a` becomes available
        row = rows[-1]
        equal = row & positions.get(item, 0)
        rows.append((row + equal | row - equal) & full)
    return _trace(a, b, rows)


def _trace(a: Sequence[Hashable], b: Sequence[Hashable], rows: list[int]) -> list[int]:
    """Follow the table back from its end, breaking ties as the package rouge-score does."""

    def length(i: int, j: int) -> int:
        return i - (rows[j] & ((1 << i) - 1)).bit_count()

    positions, i, j = [], len(a), len(b)
    while i and j:
        if a[i - 1] == b[j - 1]:
            i, j = i - 1, j - 1
            positions.append(i)
        elif length(i, j - 1) > length(i - 1, j):
            j -= 1
        else:
            i -= 1
    return positions[::-1]


def _places(items: Sequence[Hashable]) -> dict[Hashable, int]:
    """For each item, an integer whose set bits are its positions."""
    bits: dict[Hashable, int] = {}
    for i, item in enumerate(items):
        bits[item] = bits.get(item, 0) | 1 << i
    return bits
