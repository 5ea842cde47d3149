"""Scores made of scores: their sum, a multiple, and a new term that is computed from others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rewardlab.core.score import Score, Term, exact_sum
from rewardlab.errors import RewardlabError


def add(scores: list[Score]) -> Score:
    """The sum of scores: all their terms and constants. Missing if any of them is missing."""
    constants = [s.constant for s in scores if s.constant is not None]
    return Score(
        terms=merge_terms(s.terms for s in scores),
        constant=exact_sum(constants) if constants else None,
        missing=any(s.missing for s in scores),
        why=join_reasons(scores),
        extracted=_first_extracted(scores),
    )


def scale(score: Score, by: float) -> Score:
    """The score times a number: the weights of its terms are multiplied, their values stay."""
    terms = {name: t if t.weight is None else replace(t, weight=by * t.weight) for name, t in score.terms.items()}
    return replace(score, terms=terms, constant=None if score.constant is None else by * score.constant)


def derive(name: str, term: Term | None, sources: list[Score]) -> Score:
    """A score of one new term, computed from `sources`, whose own terms are kept without a weight. term None: no verdict."""
    source_terms = merge_terms(s.terms for s in sources)
    unpaid = {key: replace(t, weight=None) for key, t in source_terms.items()}
    return Score(
        terms=merge_terms([unpaid, {name: term or Term(None)}]),
        missing=term is None,
        why=join_reasons(sources),
        extracted=_first_extracted(sources),
    )


def merge_terms(tables: Iterable[Mapping[str, Term]]) -> dict[str, Term]:
    """The terms of several scores. Raises RewardlabError where two terms have the same name."""
    terms: dict[str, Term] = {}
    for table in tables:
        for name, term in table.items():
            if name in terms:
                raise same_name(name)
            terms[name] = term
    return terms


def same_name(name: str) -> RewardlabError:
    return RewardlabError(f"two rewards are named {name!r}; tell them apart with .named('...')")


def join_reasons(scores: list[Score]) -> str:
    return "; ".join(s.why for s in scores if s.why)


def _first_extracted(scores: list[Score]) -> str:
    return next((s.extracted for s in scores if s.extracted), "")
