"""What a verifier reads, and how it answers: it repeats the gold answer and the one that the reply states, then gives the letter.

    What is 7+5?
    Gold: 12              ->      12 | 12.0 | A
    Reply: 7+5=12
    Answer: 12.0

A small model compares two answers that stand side by side, and hardly two that are lines apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rewardlab.core import Message, Problem
from rewardlab.text.answers import after_answer
from rewardlab.text.boxes import boxes, inside

LONGEST = 40
"""Characters of an answer that is repeated; of a longer one nothing is."""


@dataclass(frozen=True)
class Case:
    """A reply to a question with its gold answer.  judgment: A, B or C; None where it is not known."""

    question: str
    gold: str
    response: str
    judgment: str | None = None


def to_judge(case: Case) -> Problem:
    """The problem of judging a case, in the columns of VerifierBench, and with the verifier's text where the judgement is known."""
    prompt = (Message("user", f"{case.question}\nGold: {case.gold}\nReply: {case.response}"),)
    columns = {"question": case.question, "gold_answer": case.gold, "llm_response": case.response}
    if case.judgment is None:
        return Problem(prompt, None, columns)
    return Problem(prompt, case.judgment, {**columns, "gold_judgment": case.judgment, "solution": written(case, case.judgment)})


def written(case: Case, judgment: str) -> str:
    """A judgement as a verifier writes it."""
    said = stated(case.response) or "none"
    return judgment if max(len(case.gold), len(said)) > LONGEST else f"{case.gold} | {said} | {judgment}"


def case_of(problem: Problem) -> Case:
    """The case that a problem is about."""
    meta = problem.meta
    return Case(meta["question"], meta["gold_answer"], meta["llm_response"], meta.get("gold_judgment"))


def but(case: Case, answer: str, judgment: str | None = None) -> Case | None:
    """The case with another final answer in its reply; None where the reply does not state one that can be found."""
    where = place(case.response)
    if where is None:
        return None
    start, end = where
    return replace(case, response=f"{case.response[:start]}{answer}{case.response[end:]}", judgment=judgment or case.judgment)


def place(response: str) -> tuple[int, int] | None:
    r"""Where a reply states its final answer: in its last \boxed{...}, else after "Answer:" and the like; None if nowhere."""
    if found := boxes(response):
        said = inside(found[-1])
        # braces and spaces around it stay
        start = response.find(said, found[-1].start) if said else -1
    else:
        said = after_answer(response) or ""
        start = response.rfind(said) if said else -1
    return (start, start + len(said)) if start >= 0 else None


def stated(response: str) -> str | None:
    """The final answer of a reply."""
    where = place(response)
    return None if where is None else response[where[0] : where[1]]
