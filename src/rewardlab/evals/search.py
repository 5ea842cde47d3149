"""Accuracy of a search, compared with plain samples at the same token count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, Sampling, Trajectory, measure
from rewardlab.settings.domain import NonNegativeFloat
from rewardlab.text.votes import answer_of, majority_of
from rewardlab.util.outputs import last_values
from rewardlab.util.ranking import auc_of


@measure
def search_accuracy(
    problems: Sequence[Problem], run: Run, *, search: Rollout, value: str = "value", temperature: NonNegativeFloat = 1.0
) -> dict[str, float]:
    """pass@1 of single samples, of `search`, and of best-of-n and a majority vote with as many tokens.

    search, best_of_n: accuracy of the answer that the model `value` values most, among the leaves of the search and among n plain
    replies.  majority: of the first reply with the most frequent answer, among as many plain replies as nobody values.  Tokens are
    those that the policy generates and those that `value` reads, on all sides: a search reads every step that it tries, best-of-n
    each reply once, a vote none.  draws, votes: how many plain replies cost as much as the search, valued and not, rounded up.
    value_share: the share of the search's tokens that `value` read.  value_auc: how often `value` values a right one of the plain
    replies above a wrong one; a search by values at chance, .5, shows nothing.
    """
    # measured, not computed: searches stop early where their trees end
    before = _spent(run, value)
    chosen = [[_best(g, value, run)] for g in search(list(problems), run)]
    generated, read = (after - at_first for after, at_first in zip(_spent(run, value), before, strict=True))
    sampled = _Plain(problems, run, temperature)
    singles = sampled.more(1)
    # a reply costs its own tokens, and all of its text once more where it is valued
    written, texts = sum(int(g[0].mask.sum()) for g in singles), sum(len(g[0]) for g in singles)
    n, votes = (max(1, math.ceil((generated + read) / cost)) for cost in (written + texts, written))
    # the single sample is the first of the n, so that no tokens are sampled twice
    replies = [[*one, *others] for one, others in zip(singles, sampled.more(n - 1), strict=True)]
    voters = [[*some, *others] for some, others in zip(replies, sampled.more(votes - n), strict=True)]
    verdicts = _verdicts(replies, run)
    valued = [last_values(run.model(value), group) for group in replies]
    best = [row[int(np.argmax(known))] for row, known in zip(verdicts, valued, strict=True)]
    pairs = [pair for known, row in zip(valued, verdicts, strict=True) for pair in zip(known, row, strict=True)]
    return {
        "pass@1": float(np.mean([row[0] for row in verdicts])),
        "search": float(np.mean(_verdicts(chosen, run))),
        "best_of_n": float(np.mean(best)),
        "majority": float(np.mean(_verdicts([[_most_frequent(group)] for group in voters], run))),
        "draws": float(n),
        "votes": float(votes),
        "value_share": read / (generated + read),
        "value_auc": auc_of(pairs),
    }


class _Plain:
    """Plain replies to each problem, sampled a few at a time."""

    def __init__(self, problems: Sequence[Problem], run: Run, temperature: float):
        self.prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
        self.run, self.sampling, self.rng = run, Sampling(run.max_new, temperature), run.rng("eval")

    def more(self, n: int) -> list[Group]:
        rows = self.run.policy.extend([t for t in self.prompts for _ in range(n)], self.sampling, self.rng)
        return [rows[i * n : (i + 1) * n] for i in range(len(self.prompts))]


def _spent(run: Run, value: str) -> tuple[int, int]:
    """Tokens that the policy has generated so far, and those that the model `value` has read."""
    return run.policy.token_count.generated, run.model(value).token_count.scored


def _best(group: Group, value: str, run: Run) -> Trajectory:
    """The row that the model `value` values most."""
    values = last_values(run.model(value), group)
    return replace(group[int(np.argmax(values))])


def _most_frequent(group: Group) -> Trajectory:
    answers = [answer_of(t.reply) for t in group]
    winner = majority_of(answers)
    return group[0] if winner is None else group[answers.index(winner)]


def _verdicts(groups: list[Group], run: Run) -> list[list[bool]]:
    """Whether each row is right; a row without a verdict counts as wrong."""
    return [[(s.value or 0.0) >= 1.0 for s in row] for row in run.verify(groups, run)]
