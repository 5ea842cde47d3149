"""Pairs by outcome, and, where both replies are right, by how they got there."""

from __future__ import annotations

from dataclasses import replace

from rewardlab.core import Group, Problem, Run, Sampling, rollout
from rewardlab.core.domain import NonNegativeFloat, PositiveInt
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.ranked import recorded_pairs, written
from rewardlab.text.splitters import mark

Judged = tuple[str, bool, float]
"""A text, whether it is right, and what the process reward says of it."""


@rollout(rows=lambda **_: 2)
def process_pairs(
    problems: list[Problem], run: Run, *, by: Reward, n: PositiveInt = 8, best: PositiveInt = 3, wrong: PositiveInt = 3,
    margin: NonNegativeFloat = 0.7, model: str = "reference", temperature: NonNegativeFloat = 1.0,
    splitter: str = "newline",
) -> list[Group]:  # fmt: skip
    """Of n replies to each problem: the `best` right ones that `by` pays most, each preferred to the `wrong` wrong ones that it
    pays most, and to every right one that it pays less by more than `margin`.

    So there are several pairs to a problem, the better reply first, and none where no reply is right. Equal texts count once;
    replies without a verdict or without a score by `by` are left out. If there is no pair at all, replies are paired with
    themselves, which teaches nothing, so that a step always has a batch. Steps are marked.  model: who writes, as in `ranked`.
    Logged: pairs, per problem, and right_pairs, the share of them that are both right.

    Jiao et al. 2024, arXiv:2402.00658
    """
    groups = _marked(written(problems, run, n, model, Sampling(run.max_new, temperature)), splitter, run)
    chosen: list[tuple[Problem, list[str]]] = []
    both_right = 0
    for group, verdicts, scores in zip(groups, run.verdicts(groups), by(groups, run), strict=True):
        judged: dict[str, Judged] = {}
        for t, v, s in zip(group, verdicts, scores, strict=True):
            if v.value is not None and s.total is not None:
                judged.setdefault(t.reply, (t.reply, v.value >= 1.0, s.total))
        outcome, process = paired_by_process(list(judged.values()), best, wrong, margin)
        both_right += len(process)
        chosen += [(group[0].problem, list(pair)) for pair in (*outcome, *process)]
    run.log("pairs", len(chosen) / len(problems))
    run.log("right_pairs", both_right / max(1, len(chosen)))
    chosen = chosen or [(group[0].problem, [group[0].reply] * 2) for group in groups]
    return _marked(recorded_pairs(chosen, run), splitter, run)


def paired_by_process(
    judged: list[Judged], best: int, wrong: int, margin: float
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:  # fmt: skip
    """(better, worse) texts: pairs of a right and a wrong one, and pairs of two right ones."""
    # sorted keeps the order of equals
    ordered = sorted(judged, key=lambda row: -row[2])
    right, others = [row for row in ordered if row[1]], [row for row in ordered if not row[1]]
    outcome = [(a, b) for a, _, _ in right[:best] for b, _, _ in others[:wrong]]
    process = [(a, b) for a, _, x in right[:best] for b, _, y in right if x - y > margin]
    return outcome, process


def _marked(groups: list[Group], splitter: str, run: Run) -> list[Group]:
    """Steps of recorded and of sampled replies alike: those of the author who wrote the last turn."""
    return [
        [mark(replace(t, steps=()), splitter, run.policy.pieces, t.turns[-1].author or run.policy.name) for t in g] for g in groups
    ]
