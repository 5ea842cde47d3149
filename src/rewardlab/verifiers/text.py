"""Verifiers that measure how like a reply is to a reference: token F1, ROUGE, BLEU, edit similarity.

Each pays its measure, between 0 and 1, and calls a reply right where that reaches `at`. A gold answer is a text, or a list
of texts of which the most alike counts. Thinking before </think> is left out; of="answer" measures only the answer that
the reply states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rewardlab.core import Trajectory
from rewardlab.rewards.reward import reward
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
"""Lines of either text that ROUGE-Lsum compares, each with each."""


@verifier
def token_f1(response: str, answer: Any, *, at: float = 1.0, of: str = "reply") -> Verdict:
    """F1 over words as SQuAD counts it: in any order, without case, punctuation and articles (arXiv:1606.05250)."""

    def measure(said: str, golds: list[str]) -> float:
        mine = words.normalised(said).split()
        return max(words.overlap(mine, words.normalised(gold).split()) for gold in golds)

    return _measured(response, answer, at, of, measure, lambda gold: words.normalised(gold).split())


@verifier
def rouge(response: str, answer: Any, *, variant: str = "L", at: float = 1.0, of: str = "reply") -> Verdict:
    """ROUGE F1 without stemming (Lin 2004), as the package rouge-score gives it. variant: "1", "2", "L", or "Lsum" (by lines)."""
    alike = ROUGE[variant]
    return _measured(response, answer, at, of, lambda said, golds: max(alike(said, gold) for gold in golds), words.words)


@verifier
def bleu(response: str, answer: Any, *, order: int = 4, at: float = 1.0, of: str = "reply") -> Verdict:
    """Smoothed sentence BLEU up to n-grams of `order` words, in lower case; several gold texts are its references."""

    def measure(said: str, golds: list[str]) -> float:
        return words.bleu(words.words(said), [words.words(gold) for gold in golds], order)

    return _measured(response, answer, at, of, measure, words.words)


@verifier
def edit_similarity(response: str, answer: Any, *, at: float = 1.0, of: str = "reply") -> Verdict:
    """1 - Levenshtein distance / length of the longer text, both without spaces around them."""

    def measure(said: str, golds: list[str]) -> float:
        return max(words.similarity(said.strip(), gold) for gold in golds)

    return _measured(response, answer, at, of, measure, list)


@reward
def repetition_penalty(trajectory: Trajectory, *, n: int = 3, most: float = 1.0) -> float:
    """Minus `most` times the share of n-grams of words that stood in the reply before (Yeo et al. 2025, arXiv:2502.03373)."""
    found = words.ngrams(words.words(trajectory.reply), n)
    return -most * (1 - len(found) / found.total()) if found else 0.0


def _measured(response: str, answer: Any, at: float, of: str, measure: Measure, units: Callable[[str], list[str]]) -> Verdict:
    """units: what of a gold text can be measured at all; a gold text without any is of no use."""
    golds = [gold for gold in accepted(answer) if units(gold)]
    if not golds:
        return no_verdict("the gold answer holds nothing that can be measured")
    if max(map(_size, golds)) > 1:
        return no_verdict(f"the gold answer is over {words.LONGEST} characters or {MOST_LINES} lines long")
    said = {"reply": after_thinking, "answer": stated}[of](response)
    if _size(said) > 1:
        return wrong(f"over {words.LONGEST} characters or {MOST_LINES} lines long", value=0.0)
    value = measure(said, golds)
    return Verdict(value >= at, said.strip(), f"{value:.3f} of 1, and {at:g} is asked for", value)


def _size(text: str) -> float:
    return max(len(text) / words.LONGEST, text.count("\n") / MOST_LINES)


def _lines(text: str) -> list[list[str]]:
    return [found for line in text.split("\n") if (found := words.words(line))]
