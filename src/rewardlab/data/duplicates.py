"""Duplicates: equal texts, near-duplicates, and texts of a test set in the training data.

Two texts are near duplicates if the Jaccard similarity of their n-grams of words is at least a threshold t. All such pairs are
found, and no others, without comparing every two texts: of two sets with that similarity, each has one of its (1 - t) |set| + 1
rarest n-grams in common with the other's (prefix filtering; Bayardo, Ma and Srikant 2007, "Scaling Up All Pairs Similarity
Search").
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from rewardlab.errors import RewardlabError
from rewardlab.util.progress import unless_quick

from .drops import Drop, Fates
from .tokens import shingles, words

NGRAM = 3
"""Words of an n-gram in the similarity of two texts."""
SIMILARITY = 0.8
OVERLAP = 13
"""Words in a row that a training text may not share with a test text, as in Brown et al. 2020 (arXiv:2005.14165, appendix C)."""
FEWEST = 8
"""Words of the shortest text that is looked for within another, and of one that all texts share."""
MOST_TEXTS = 0.9
"""The share of the texts that begin, or end, with an instruction which tells none from another."""
TEXTS = 10
"""Fewer texts may have the same beginning by chance."""
_SENTENCES, _WHOLE_WORDS = re.compile(r".*(?:[.:!?]\s|\n|[。：？！])\s*", re.DOTALL), re.compile(r".*\s", re.DOTALL)


def shared_ends(texts: Sequence[str]) -> tuple[str, str]:
    """What at least `MOST_TEXTS` of the texts begin with, up to the end of a sentence or line, and end with; "" for none."""
    begin = _shared_beginning(texts, _SENTENCES)
    end = _shared_beginning([text[::-1] for text in without_ends(texts, begin, "")], _WHOLE_WORDS)[::-1]
    return begin, end


def without_ends(texts: Sequence[str], begin: str, end: str) -> list[str]:
    return [text.removeprefix(begin).removesuffix(end) for text in texts]


def _shared_beginning(texts: Sequence[str], until: re.Pattern[str]) -> str:
    ranked, most = sorted(texts), math.ceil(MOST_TEXTS * len(texts))
    if len(texts) < TEXTS:
        return ""
    # of texts in order, the first and the last of a window share what all between them share
    windows = zip(ranked, ranked[most - 1 :], strict=False)
    shared = max((_common(*both) for both in windows), key=len)
    whole = until.match(shared)
    return whole[0] if whole and len(words(whole[0])) >= FEWEST else ""


def _common(a: str, b: str) -> str:
    return a[: next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))]


def duplicates(
    texts: Sequence[str], similarity: float = SIMILARITY, n: int = NGRAM, places: Sequence[str] | None = None,
    answers: Sequence[str] | None = None,
) -> Fates:  # fmt: skip
    """The first of several texts that are equal or nearly so stays; those after it go. Texts without a word stay.

    similarity: the least Jaccard similarity of near duplicates; 1: only equal texts.  places: of the texts, for messages.
    answers: where those of two duplicates differ, the reason says so.
    """
    if not 0 < similarity <= 1:
        raise RewardlabError(f"similarity must be above 0 and at most 1, not {similarity}")
    places = places or [f"text {i}" for i in range(1, len(texts) + 1)]
    split = [words(text) for part in unless_quick("reading texts", texts) for text in part]
    fates: Fates = [None] * len(texts)
    seen: dict[tuple[str, ...], int] = {}
    for i, of in enumerate(split):
        first = seen.setdefault(tuple(of), i) if of else i
        if first != i:
            fates[i] = Drop("duplicate", f"equals {places[first]}{_differ(answers, i, first)}", places[first])
    sets = [set() if fate else shingles(of, n) for of, fate in zip(split, fates, strict=True)]
    nearly = {i: (first, alike) for i, first, alike in _near(sets, similarity)}
    for i, of in enumerate(split):
        # a text that equals one that goes is nearly equal to the same one that stays
        first, alike = nearly.get(seen.get(tuple(of), i), (i, 1.0))
        if first != i:
            why = f"similarity {alike:.2f} to {places[first]}{_differ(answers, i, first)}"
            fates[i] = Drop("near duplicate", why, places[first])
    return fates


def _differ(answers: Sequence[str] | None, i: int, first: int) -> str:
    if answers is None or words(answers[i]) == words(answers[first]):
        return ""
    return f"; its answer is another: {answers[i][:60]!r}, not {answers[first][:60]!r}"


def _near(sets: Sequence[set[tuple[str, ...]]], t: float) -> Iterator[tuple[int, int, float]]:
    """(row, earlier row that stays, similarity) for each row that is at least t alike to an earlier one: the most alike."""
    if t == 1:
        return
    frequency = Counter(gram for of in sets for gram in of)
    index: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for i in (i for part in unless_quick("comparing texts", range(len(sets))) for i in part):
        of = sets[i]
        # rare ones first; of equally rare ones any order will do, as long as it is always the same
        rare = sorted(of, key=lambda gram: (frequency[gram], gram))[: len(of) - math.ceil(t * len(of) - 1e-9) + 1]
        earlier = {
            j for gram in rare for j in index[gram] if t * len(of) <= len(sets[j]) + 1e-9 and t * len(sets[j]) <= len(of) + 1e-9
        }
        found = max(((jaccard(of, sets[j]), -j) for j in earlier), default=(0.0, 0))
        if found[0] >= t:
            yield i, -found[1], found[0]
            # what resembles this one is compared with rows that stay
            continue
        for gram in rare:
            index[gram].append(i)


def jaccard(a: set, b: set) -> float:
    """The share of what two sets have together that they have in common; 0 for two empty ones."""
    common = len(a & b)
    return common / (len(a) + len(b) - common) if common else 0.0


def contaminated(texts: Sequence[str], tests: Sequence[tuple[str, str]], n: int = OVERLAP) -> Fates:
    """Rows go whose text shares n words in a row with a text of a test set, or holds the whole of a shorter one.

    tests: the place of each test text, and the text. Signs are no words here, or every long sum would be in the test set; but of
    texts under n words, they must agree. Those of fewer than FEWEST words count only where they equal the row's text.
    """
    grams: dict[tuple[str, ...], str] = {}
    whole: dict[tuple[str, ...], str] = {}
    for place, text in tests:
        if len(of := _spoken(text)) >= n:
            for gram in shingles(of, n):
                grams.setdefault(gram, place)
        elif text_words := tuple(words(text)):
            whole.setdefault(text_words, place)
    sizes = sorted({len(of) for of in whole if len(of) >= FEWEST}, reverse=True)
    parts = unless_quick("comparing with the test set", texts)
    return [_contamination(text, grams, whole, n, sizes) for part in parts for text in part]


def _contamination(
    text: str, grams: dict[tuple[str, ...], str], whole: dict[tuple[str, ...], str], n: int, sizes: Sequence[int]
) -> Drop | None:
    of = words(text)
    if (place := whole.get(tuple(of))) is not None:
        return Drop("in the test set", f"equals {place}", place)
    for gram in _runs(_spoken(text), n):
        if (place := grams.get(gram)) is not None:
            return Drop("in the test set", f"shares {n} words in a row with {place}: {' '.join(gram)!r}", place)
    for run in (run for size in sizes for run in _runs(of, size)):
        if (place := whole.get(run)) is not None:
            return Drop("in the test set", f"holds all of {place}: {' '.join(run)!r}", place)
    return None


def same_answers(answers: Sequence[str], tests: Sequence[tuple[str, str]]) -> Fates:
    """Rows go whose answer equals one of a test set and has at least FEWEST words: a worked one, since 18 may answer anything."""
    known: dict[tuple[str, ...], str] = {}
    for place, answer in tests:
        known.setdefault(tuple(words(answer)), place)
    found = [known.get(tuple(of)) if len(of) >= FEWEST else None for of in map(words, answers)]
    return [None if place is None else Drop("in the test set", f"its answer is that of {place}", place) for place in found]


def _spoken(text: str) -> list[str]:
    return [word for word in words(text) if word[0].isalnum()]


def _runs(of: list[str], n: int) -> Iterator[tuple[str, ...]]:
    return (tuple(of[start : start + n]) for start in range(len(of) - n + 1))
