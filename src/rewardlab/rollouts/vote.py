"""Choose the answer that most replies agree on."""

from __future__ import annotations

from rewardlab.core import Group, Run, Score, Trajectory, select
from rewardlab.text.votes import answer_of, majority_of


@select
def majority(group: Group, scores: list[Score], run: Run) -> Trajectory:
    """The first reply with the most frequent answer (Wang et al. 2023, arXiv:2203.11171).

    Numbers are compared by value. Replies without an answer do not vote.
    """
    answers = [answer_of(t.reply) for t in group]
    winner = majority_of(answers)
    return group[0] if winner is None else group[answers.index(winner)]
