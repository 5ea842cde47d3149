"""Prompts for a verifier of an attempt, and for a refiner of the attempt given the verifier's output."""

from __future__ import annotations

from rewardlab.core import Problem

from .filled import filled

# a small policy has no need of more words, and its prompts stay short
VERIFY = "Verify.\n{question}\n{attempt}"
REFINE = "Refine.\n{question}\n{attempt}\n{critique}"


def to_verify(problem: Problem, attempt: str, template: str = VERIFY) -> Problem:
    """The problem as its verifier reads it; answer and columns stay."""
    return problem.reworded(filled(template, question=problem.question, attempt=attempt))


def to_improve(problem: Problem, attempt: str, critique: str, template: str = REFINE) -> Problem:
    """The problem as its refiner reads it; answer and columns stay, so that the refined reply is judged as any other."""
    return problem.reworded(filled(template, question=problem.question, attempt=attempt, critique=critique))
