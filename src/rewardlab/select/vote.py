"""Choose the answer that most replies agree on."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rewardlab.core import Group, Run, Score, Trajectory, select
from rewardlab.text.answers import final_answer
from rewardlab.text.numbers import number


@select
def majority(group: Group, scores: list[Score], run: Run) -> Trajectory:
    """The first reply with the most frequent answer (Wang et al. 2023, arXiv:2203.11171).

    Numbers are compared by value. Replies without an answer do not vote.
    """
    answers = [answer_of(t.reply) for t in group]
    votes = Counter(a for a in answers if a is not None)
    if not votes:
        return group[0]
    # of answers with equally many votes, the one that was counted first
    winner = votes.most_common(1)[0][0]
    return group[answers.index(winner)]


def answer_of(reply: str) -> Any:
    """The final answer, as a number if it is one; None if there is none."""
    answer = final_answer(reply)
    if answer is None:
        return None
    value = number(answer)
    # so that "0.50" and "1/2" are one answer, and "Paris" and "paris"
    return answer.strip().lower() if value is None else value
