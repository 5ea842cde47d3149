"""Verifiers that measure the similarity of a reply to a reference: token F1, ROUGE, BLEU, edit similarity.

Each pays its similarity, between 0 and 1, and calls a reply right if that is at least `at`. A gold answer is a text, or a list
of texts of which the most similar counts. Thinking before </think> is ignored; with of="answer", only the answer that
the reply states is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from rewardlab.core import Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.text import words
from rewardlab.text.answers import after_thinking
from rewardlab.text.replies import accepted, stated

from .contract import Verdict, no_verdict, verifier, wrong

Measure = Callable[[str, list[str]], float]

ROUGE: dict[str, Callable[[str, str], float]] = {
    "1": lambda said, gold: words.overlap(words.words(said), words.words(gold), 1),
    "2": lambda said, gold: words.overlap(words.words(said), words.words(gold), 2),
    "L": lambda said, gold: words.rouge_l(words.words(said), words.words(gold)),
    "Lsum": lambda said, gold: words.rouge_lsum(_lines(said), _lines(gold)),
}
MOST_LINES = 200
"""Most lines of either text. ROUGE-Lsum compares every pair of lines, which takes quadratic time."""


@verifier
def token_f1(response: str, answer: Any, *, at: Share = 1.0, of: Literal["reply", "answer"] = "reply") -> Verdict:
    """F1 over words as SQuAD computes it: in any order, ignoring case, punctuation and articles (arXiv:1606.05250)."""

    def measure(text: str, golds: list[str]) -> float:
        text_words = words.normalised(text).split()
        return max(words.overlap(text_words, words.normalised(gold).split()) for gold in golds)

    return _measured(response, answer, at, of, measure, lambda gold: words.normalised(gold).split())


@verifier
def rouge(
    response: str,
    answer: Any,
    *,
    variant: Literal["1", "2", "L", "Lsum"] = "L",
    at: Share = 1.0,
    of: Literal["reply", "answer"] = "reply",
) -> Verdict:
    """ROUGE F1 without stemming (Lin 2004), as in the package rouge-score. variant: "1", "2", "L", or "Lsum" (by lines)."""
    measure = ROUGE[variant]
    return _measured(response, answer, at, of, lambda text, golds: max(measure(text, gold) for gold in golds), words.words)


@verifier
def bleu(
    response: str,
    answer: Any,
    *,
    order: PositiveInt = 4,
    variant: Literal["orange", "nmt"] = "orange",
    references: PositiveInt | None = None,
    at: Share = 1.0,
    of: Literal["reply", "answer"] = "reply",
) -> Verdict:
    """Smoothed sentence BLEU over n-grams of up to `order` words; several gold texts are its references.

    variant: "orange", over words in lower case, single words not smoothed; or "nmt", over words and signs in their case, smoothed
    throughout, and not to be shorter than the shortest reference: BLEU of the package evaluate with smooth=True.  references: the
    first so many of the gold texts; None: all.
    """
    nmt = variant == "nmt"
    units = words.mteval_tokens if nmt else words.words

    def measure(text: str, golds: list[str]) -> float:
        return words.bleu(units(text), [units(gold) for gold in golds[:references]], order, unigrams=nmt, shortest=nmt)

    return _measured(response, answer, at, of, measure, units)


@verifier
def edit_similarity(response: str, answer: Any, *, at: Share = 1.0, of: Literal["reply", "answer"] = "reply") -> Verdict:
    """1 - Levenshtein distance / length of the longer text, both stripped of surrounding spaces."""

    def measure(text: str, golds: list[str]) -> float:
        return max(words.similarity(text.strip(), gold) for gold in golds)

    return _measured(response, answer, at, of, measure, list)


@reward
def repetition_penalty(trajectory: Trajectory, *, n: PositiveInt = 3, max_penalty: float = 1.0) -> float:
    """Minus `max_penalty` times the share of word n-grams that repeat an earlier one of the reply (Yeo et al. 2025,
    arXiv:2502.03373)."""
    counts = words.ngrams(words.words(trajectory.reply), n)
    return -max_penalty * (1 - len(counts) / counts.total()) if counts else 0.0


def _measured(response: str, answer: Any, at: Share, of: str, measure: Measure, units_of: Callable[[str], list[str]]) -> Verdict:
    """The verdict on a reply. units: the words or characters of a gold text that are compared; one without any is unusable."""
    golds = [gold for gold in accepted(answer) if units_of(gold)]
    if not golds:
        return no_verdict("the gold answer has no words or characters to compare")
    # the measures take quadratic time, so the length of both texts is bounded
    if max(map(_size, golds)) > 1:
        return no_verdict(f"the gold answer is over {words.LONGEST} characters or {MOST_LINES} lines long")
    text = {"reply": after_thinking, "answer": stated}[of](response)
    if _size(text) > 1:
        return wrong(f"over {words.LONGEST} characters or {MOST_LINES} lines long", value=0.0)
    value = measure(text, golds)
    return Verdict(value >= at, text.strip(), f"{value:.3f} of 1, where {at:g} is required", value)


def _size(text: str) -> float:
    return max(len(text) / words.LONGEST, text.count("\n") / MOST_LINES)


def _lines(text: str) -> list[list[str]]:
    return [line_words for line in text.split("\n") if (line_words := words.words(line))]
