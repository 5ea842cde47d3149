"""The best and the worst of several replies."""

from __future__ import annotations

import itertools
from dataclasses import replace

from rewardlab.core import Group, Problem, Run, Sampling, Trajectory, rollout
from rewardlab.rewards.reward import Reward
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, PositiveShare
from rewardlab.util.ranking import kendall_tau


@rollout(rows=lambda ranks, **_: len(ranks))
def ranked(
    problems: list[Problem], run: Run, *, by: Reward, n: PositiveInt = 8, ranks: tuple[int, ...] = (0, -1),
    model: str = "reference", temperature: NonNegativeFloat = 1.0, top_p: PositiveShare = 1.0,
) -> list[Group]:  # fmt: skip
    """Of n replies to each problem those at these ranks under the reward `by` (0 the best, -1 the worst), recorded as the policy's
    own. One rank imitates; two make a pair, the better one first.

    model: who writes them, "policy", "reference" or a learner of the run. By a frozen model they are what a file of its replies,
    written and scored beforehand, would hold. Equal texts count once. A problem whose replies have all the same score makes no
    pair and is dropped; if there is no other, all are kept, so that a step always has a batch. A reply that was cut off is learnt
    as if it ended there.
    """
    groups = written(problems, run, n, model, Sampling(run.max_new, temperature, top_p))
    orders = [_best_first(group, [s.total for s in row]) for group, row in zip(groups, by(groups, run), strict=True)]
    chosen = [(group[0].problem, at) for group, order in zip(groups, orders, strict=True) if (at := _at(order, ranks))]
    if not chosen:
        chosen = [(group[0].problem, [group[0].reply] * len(ranks)) for group in groups]
    return recorded_pairs(chosen, run)


@rollout(rows=lambda **_: 2)
def ranked_by_each(
    problems: list[Problem], run: Run, *, by: dict[str, Reward], n: PositiveInt = 8, model: str = "reference",
    temperature: NonNegativeFloat = 1.0,
) -> list[Group]:  # fmt: skip
    """Of the same n replies to each problem a pair for each reward in `by`, its best and its worst, better first; the problem of a
    pair has the reward's name in the column `objective`.

    Equal texts count once; where a reward is the same for all replies there is no pair by it. If there is none at all, replies are
    paired with themselves, which teaches nothing, so that a step always has a batch.  model: who writes, as in `ranked`.
    """
    groups = written(problems, run, n, model, Sampling(run.max_new, temperature))
    chosen = []
    for name, reward in by.items():
        orders = [_best_first(group, [s.total for s in row]) for group, row in zip(groups, reward(groups, run), strict=True)]
        pairs = [(group[0].problem, _at(order, (0, -1))) for group, order in zip(groups, orders, strict=True)]
        chosen += [(_under(problem, name), at) for problem, at in pairs if at]
    return recorded_pairs(chosen or [(_under(group[0].problem, next(iter(by))), [group[0].reply] * 2) for group in groups], run)


def _under(problem: Problem, objective: str) -> Problem:
    return replace(problem, meta={**problem.meta, "objective": objective})


@rollout(rows=lambda **_: 2)
def ranked_twice(
    problems: list[Problem], run: Run, *, by: Reward, again: Reward, n: PositiveInt = 8, model: str = "reference",
    temperature: NonNegativeFloat = 1.0, top_p: PositiveShare = 1.0,
) -> list[Group]:  # fmt: skip
    """The best and the worst of n replies under `by`, as `ranked`; the column `consistency` of the problem says how far the reward
    `again` ranks the n replies alike: (tau + 1) / 2, with tau Kendall's coefficient, so 1/2 for unrelated rankings. None where no
    problem has a pair, and replies stand beside themselves.

    Equal texts count once; replies without both scores are left out. Logged: true_labels, the share of pairs whose chosen reply is
    the better one by the task's verifier, among those that it finds unlike; nothing else reads it.
    """
    groups = written(problems, run, n, model, Sampling(run.max_new, temperature, top_p))
    twice = zip(groups, by(groups, run), again(groups, run), strict=True)
    rows = [
        _known(group, [(a.total, b.total) for a, b in zip(first, second, strict=True)])
        for group, first, second in twice
    ]  # fmt: skip
    chosen = []
    for problem, row in zip(problems, rows, strict=True):
        order = sorted(((text, first) for text, (first, _) in row), key=lambda item: -item[1])
        if at := _at(order, (0, -1)):
            tau = kendall_tau([first for _, (first, _) in row], [second for _, (_, second) in row])
            chosen.append((replace(problem, meta={**problem.meta, "consistency": (tau + 1) / 2}), at))
    if not chosen:
        # a reply compared with itself has no gradient, and says nothing of how consistent the ranking is
        chosen = [(replace(g[0].problem, meta={**g[0].problem.meta, "consistency": None}), [g[0].reply] * 2) for g in groups]
    pairs = recorded_pairs(chosen, run)
    _log_truth(pairs, run)
    return pairs


def _log_truth(pairs: list[Group], run: Run) -> None:
    if run.verify is None:
        return
    values = [[s.value for s in row] for row in run.verify(pairs, run)]
    unlike = [better > worse for better, worse in values if better is not None and worse is not None and better != worse]
    if unlike:
        run.log("true_labels", sum(unlike) / len(unlike))


def written(problems: list[Problem], run: Run, n: int, model: str, sampling: Sampling) -> list[Group]:
    """n replies to each problem, by a model of the run."""
    writer = run.model(model)
    prompts = writer.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = writer.extend([t for t in prompts for _ in range(n)], sampling, run.rng("rollout"))
    return [done[i : i + n] for i in range(0, len(done), n)]


def _known(group: Group, scores: list[tuple[float | None, float | None]]) -> list[tuple[str, tuple[float, float]]]:
    """The different texts that have both scores, in the order in which they were written."""
    known: dict[str, tuple[float, float]] = {}
    for t, (first, second) in zip(group, scores, strict=True):
        if first is not None and second is not None:
            known.setdefault(t.reply, (first, second))
    return list(known.items())


def _best_first(group: Group, scores: list[float | None]) -> list[tuple[str, float]]:
    """The different texts with their scores, the best one first; those without a score are left out."""
    known: dict[str, float] = {}
    for t, score in zip(group, scores, strict=True):
        if score is not None:
            known.setdefault(t.reply, score)
    return sorted(known.items(), key=lambda item: -item[1])


def _at(order: list[tuple[str, float]], ranks: tuple[int, ...]) -> list[str] | None:
    """The texts at these ranks; None where there are not so many, or where their scores do not fall."""
    if not all(-len(order) <= rank < len(order) for rank in ranks):
        return None
    found = [order[rank] for rank in ranks]
    if any(a[1] <= b[1] for a, b in itertools.pairwise(found)):
        return None
    return [text for text, _ in found]


def recorded_pairs(chosen: list[tuple[Problem, list[str]]], run: Run) -> list[Group]:
    """A group for each problem and its texts, as replies of the policy; the texts are numbered in `path`."""
    problems = [problem for problem, _ in chosen]
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = [replace(t, path=(i,)) for t, (_, texts) in zip(prompts, chosen, strict=True) for i in range(len(texts))]
    done = iter(run.policy.write(rows, [text for _, texts in chosen for text in texts]))
    return [[next(done) for _ in texts] for _, texts in chosen]


def learnt(chosen: list[tuple[Problem, list[str]]], run: Run) -> list[Group]:
    """`recorded_pairs` of texts that are learnt whole. Raises RewardlabError for one that does not fit the policy's context."""
    groups = recorded_pairs(chosen, run)
    for group in groups:
        for t in group:
            run.policy.check_fits(t, 0)
    return groups
