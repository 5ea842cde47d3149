"""Pairs that survive a filter of what is rejected in them."""

from __future__ import annotations

from rewardlab.core import Group, Problem, Rollout, Run, rollout
from rewardlab.core.domain import PositiveInt
from rewardlab.data.drops import Fates, first, staying
from rewardlab.data.filters import Bounds, within
from rewardlab.rewards.reward import Reward

MEMORY = "survivors.bounds"


# the bounds are found on the problems of the first step, which processes must not find apart
@rollout(inner="of", across_problems=True)
def filter_pairs(
    problems: list[Problem], run: Run, *, of: Rollout, by: Reward, rejected_score: str | None = "50%:",
    rejected_length: str | None = "50%:", gap: str | None = ":50%", pool: PositiveInt = 256, attempts: PositiveInt = 20,
) -> list[Group]:  # fmt: skip
    """The pairs of `of`, the better reply first, whose numbers lie within bounds: the score of the rejected reply, its length in
    tokens, and the difference of the two scores under the reward `by`.

    Bounds are written as for `rewardlab data filter`, "0.2:", ":30%"; None is no bound. Those in percent are quantiles of the first
    `pool` pairs of the training data, found once in the first step and kept in run.memory. Problems whose pair does not survive are
    replaced by further ones, `attempts` times at most; if none survives, the first are kept, so that a step always has a batch.
    Held-out problems are all kept. Logged: the share that survives, the share dropped for each reason, and the means of the
    three numbers over the pairs that are kept.
    """
    if run.more_problems is None:
        return of(problems, run)
    wanted = len(problems)
    if MEMORY not in run.memory:
        problems = [*problems, *run.more_problems(max(0, pool - wanted))]
    groups = of(problems, run)
    rows = _rows(groups, by, run)
    if MEMORY not in run.memory:
        given = {"rejected_score": rejected_score, "rejected_length": rejected_length, "gap": gap}
        run.memory[MEMORY] = _settled(rows, {name: text for name, text in given.items() if text is not None})
    fates = _fates(rows, run)
    for _ in range(attempts - 1):
        missing = wanted - fates.count(None)
        if missing <= 0:
            break
        further = of(run.more_problems(missing), run)
        groups, rows = [*groups, *further], [*rows, *_rows(further, by, run)]
        fates = _fates(rows, run)
    kept = staying(list(zip(groups, rows, strict=True)), fates) or list(zip(groups, rows, strict=True))
    _log(fates, [row for _, row in kept[:wanted]], run)
    return [group for group, _ in kept[:wanted]]


Row = dict[str, float | None]


def _fates(rows: list[Row], run: Run) -> Fates:
    judged = [within(rows, name, Bounds(*ends)) for name, ends in run.memory[MEMORY].items()]
    return first([None] * len(rows), *judged)


def _rows(groups: list[Group], by: Reward, run: Run) -> list[Row]:
    """The numbers of each pair, under the names of the columns that `rewardlab data pairs` writes."""
    rows: list[Row] = []
    for (_, rejected), scores in zip(groups, by(groups, run), strict=True):
        better, worse = (s.total for s in scores)
        gap = None if better is None or worse is None else better - worse
        rows.append({"rejected_score": worse, "rejected_length": float(rejected.mask.sum()), "gap": gap})
    return rows


def _settled(rows: list[Row], bounds: dict[str, str]) -> dict[str, list[float | None]]:
    """The bounds as plain numbers, quantiles among them settled by these rows."""
    found = {}
    for name, text in bounds.items():
        settled = Bounds.read(text).settled([x for row in rows if (x := row[name]) is not None])
        found[name] = [settled.low, settled.high]
    return found


def _log(fates: Fates, kept: list[Row], run: Run) -> None:
    for name in run.memory[MEMORY]:
        run.log(f"dropped/{name}", sum(fate is not None and fate.reason == name for fate in fates) / len(fates))
    run.log("survived", fates.count(None) / len(fates))
    for name in kept[0]:
        if known := [x for row in kept if (x := row[name]) is not None]:
            run.log(name, sum(known) / len(known))
