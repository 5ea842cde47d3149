"""Whether a reply gives the answer that most replies give: to its own question, or to the same question in other words."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Literal

from rewardlab.core import Group, Run, Score, Scores
from rewardlab.rewards.reward import reward
from rewardlab.text.votes import answer_of, majority_of

Voters = Literal["other", "own"]


@reward(over="groups", relative=True)
def with_majority(groups: list[Group], run: Run, *, voters: Literal["other", "own"] = "other") -> Scores:
    """1 for the answer that most of the voters give, else 0; no gold answer is read.

    voters: "own": the replies to the same prompt, itself among them.  "other": those to the same question in other words, which
    `with_rewrites` samples; so a mistake that comes with one wording is paid in neither. Answers are compared by value, and of
    equally frequent ones the first counts. No verdict where no voter states an answer, or a question has no other wording.
    """
    answers = [[answer_of(t.reply) for t in group] for group in groups]
    votes: dict[tuple[str, bool], list[Any]] = defaultdict(list)
    for group, row in zip(groups, answers, strict=True):
        votes[_wording(group)] += row
    return [_agree(row, votes.get(_voters(group, voters), [])) for group, row in zip(groups, answers, strict=True)]


def _wording(group: Group) -> tuple[str, bool]:
    """The key of the original problem, and whether this is its rewrite; ("", False) for a group without rows."""
    if not group:
        return "", False
    problem = group[0].problem
    return problem.meta.get("rewrite_of", problem.key), "rewrite_of" in problem.meta


def _voters(group: Group, voters: Voters) -> tuple[str, bool]:
    key, rewritten = _wording(group)
    return key, rewritten if voters == "own" else not rewritten


def _agree(answers: list[Any], votes: list[Any]) -> list[Score]:
    label = majority_of(votes)
    if label is None:
        return [Score(None, why="none of the voters states an answer") for _ in answers]
    return [Score(float(answer == label), why=f"the voters say {label}") for answer in answers]
