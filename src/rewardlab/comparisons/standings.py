"""Who is better in a world: differences from the baseline, decided together, with what was guarded.

All differences are oriented: above 0 is better. Each member gets one of the words in `words.WORDS`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rewardlab.comparisons.words import AT_A_COST, BASELINE, BETTER, EQUAL, INERT, INSIDE, OFTEN, ROOM, UNDECIDED, WORSE
from rewardlab.util.intervals import holm, interval, p_value, t_quantile

if TYPE_CHECKING:
    from rewardlab.comparisons.league import Guard, Outcome

LEVEL = 0.05
"""Of all decisions of a world together: that any of them is false."""
CLEAR = 4.0
"""Standard errors by which the baseline must learn."""


@dataclass(frozen=True)
class Standing:
    """Where a member stands in a world.  effect, low, high: the mean paired difference to the baseline, oriented, with its 95%
    interval.  p, adjusted: of that it is 0.  guard: the same of what is guarded, not oriented; None without one.
    """

    word: str
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    p: float = 1.0
    adjusted: float = 1.0
    guard: tuple[float, float, float] | None = None

    def to_json(self) -> dict[str, Any]:
        return {**self.__dict__, "guard": self.guard and list(self.guard)}


def standings(
    runs: Mapping[str, Sequence[Mapping[str, float]]], baseline: str, outcome: Outcome, guard: Guard | None = None,
    starts: Sequence[int] | None = None,
) -> dict[str, Standing]:  # fmt: skip
    """The standing of every member.  runs: by member, the numbers of its runs, seed by seed in one order.

    starts: by seed, the initial policy of its run. Seeds that share one count as one, by their mean: it may suit a method.
    """
    known = {name: _differences(own, runs[baseline], outcome, starts) for name, own in runs.items() if name != baseline}
    adjusted = _adjusted(known)
    found = {baseline: Standing(BASELINE)}
    for name, values in known.items():
        guarded = _guarded(runs[name], runs[baseline], guard, starts)
        found[name] = _standing(values, adjusted[name], outcome.margin, guarded, guard, _undefined(runs[name], outcome))
        if _same(runs[name], runs[baseline]):
            found[name] = Standing(INERT, 0.0, 0.0, 0.0, guard=guarded)
    return found


def decided(differences: Mapping[str, np.ndarray], margin: float) -> dict[str, Standing]:
    """The standing of every rival by its paired differences, oriented, of which nothing is guarded."""
    adjusted = _adjusted(differences)
    return {name: _standing(values, adjusted[name], margin, None, None, False) for name, values in differences.items()}


def _adjusted(differences: Mapping[str, np.ndarray]) -> dict[str, float]:
    return dict(zip(differences, holm([p_value(values) for values in differences.values()]), strict=True))


def _standing(
    values: np.ndarray, adjusted: float, margin: float, guarded: tuple[float, float, float] | None, guard: Guard | None,
    undefined: bool,
) -> Standing:  # fmt: skip
    mean, low, high = (float(x) for x in interval(values)) if len(values) > 1 else (math.nan,) * 3
    kept = _kept(guarded, guard)
    word = UNDECIDED
    if adjusted <= LEVEL and mean > 0 and not undefined:
        word = {True: BETTER, False: AT_A_COST, None: UNDECIDED}[kept]
    elif kept is False or (adjusted <= LEVEL and mean < 0):
        word = WORSE
    elif low > -margin and high < margin and not undefined:
        word = EQUAL
    effect, lowest, highest = (None if math.isnan(x) else x for x in (mean, low, high))
    return Standing(word, effect, lowest, highest, p_value(values), adjusted, guarded)


def _kept(guarded: tuple[float, float, float] | None, guard: Guard | None) -> bool | None:
    """Whether all of the guard's interval is within its bounds; False if all of it is outside; None if it lies across."""
    if guard is None:
        return True
    if guarded is None:
        return None
    _, low, high = guarded
    if low >= guard.at_least and high <= guard.at_most:
        return True
    return False if high < guard.at_least or low > guard.at_most else None


def _differences(
    own: Sequence[Mapping[str, float]], other: Sequence[Mapping[str, float]], outcome: Outcome, starts: Sequence[int] | None
) -> np.ndarray:
    """(n,) paired differences, oriented, of the pairs in which both numbers are defined; means over the seeds of a start."""
    pairs = [outcome.gain(_number(a, outcome.number) - _number(b, outcome.number)) for a, b in zip(own, other, strict=True)]
    return by_start(pairs, starts)


def _guarded(
    own: Sequence[Mapping[str, float]], other: Sequence[Mapping[str, float]], guard: Guard | None, starts: Sequence[int] | None
) -> tuple[float, float, float] | None:
    if guard is None:
        return None
    values = by_start([_number(a, guard.number) - _number(b, guard.number) for a, b in zip(own, other, strict=True)], starts)
    if len(values) < 2:
        return None
    mean, low, high = (float(x) for x in interval(values))
    return mean, low, high


def by_start(values: Sequence[float], starts: Sequence[int] | None) -> np.ndarray:
    """The means of the values that are defined over the seeds of each start; the values themselves without starts."""
    groups: dict[int, list[float]] = {}
    for value, start in zip(values, starts or range(len(values)), strict=True):
        if math.isfinite(value):
            groups.setdefault(start, []).append(value)
    return np.array([sum(group) / len(group) for group in groups.values()], float)


def _undefined(runs: Sequence[Mapping[str, float]], outcome: Outcome) -> bool:
    """Whether a run has no such number, as the length of right replies where none is right: such a member is never the better."""
    return any(not math.isfinite(_number(run, outcome.number)) for run in runs)


def _same(own: Sequence[Mapping[str, float]], other: Sequence[Mapping[str, float]]) -> bool:
    """Whether two members measured the same in every run, to the last bit."""
    shared = [name for name in other[0] if name in own[0] and not name.startswith(("before.", "train.seconds"))] if own else []
    return bool(shared) and all(a.get(name) == b.get(name) for a, b in zip(own, other, strict=True) for name in shared)


def _number(run: Mapping[str, float], name: str) -> float:
    value = run.get(name)
    return math.nan if value is None else float(value)


# ---- Whether a world can tell anything, and what it will be able to tell ------------------------------------------------


def fitness(
    baseline: Sequence[Mapping[str, float]], learns: str | None, *, must_learn: bool = True, starts: Sequence[int] | None = None
) -> list[dict[str, Any]]:
    """The conditions of a world, by the runs of its baseline: what, value, needs, ok. It is fit where all are met.

    learns: the number that must rise; without must_learn it need not, and only must not be near 0.  starts: as of `standings`.
    """
    if not learns:
        return []
    ends = float(np.mean([_number(run, learns) for run in baseline]))
    low, high = INSIDE
    if not must_learn:
        return [_condition(f"{OFTEN} ({learns})", ends, f"at least {low:g}", ends >= low)]
    gain = by_start([_number(run, learns) - _number(run, f"before.{learns}") for run in baseline], starts)
    error = float(gain.std(ddof=1)) / math.sqrt(len(gain)) if len(gain) > 1 else math.inf
    needs = f"at least {CLEAR:g} standard errors ({CLEAR * error:.3g})"
    rises = _condition(f"the baseline learns ({learns} rises)", float(gain.mean()), needs, 0 < gain.mean() >= CLEAR * error)
    return [rises, _condition(f"{ROOM} ({learns})", ends, f"{low:g} to {high:g}", low <= ends <= high)]


def told_apart(runs: Mapping[str, Sequence[Mapping[str, float]]], outcome: Outcome) -> dict[str, Any]:
    """Whether the best and the worst member lie farther apart than so many alike ones would by chance.

    Where they do not, the world may still say that members are equal; it does not make a world unfit.
    """
    levels = [np.array([_number(run, outcome.number) for run in own]) for own in runs.values()]
    defined = [values for values in levels if len(values) > 1 and np.isfinite(values).all()]
    if len(defined) < 2:
        return _condition("members can be told apart", math.nan, "two members with the number in every run", False)
    # what a seed gives to all of them, such as a better start, does not part them
    table = np.stack(defined) - np.mean(defined, axis=0)
    spread = float(np.ptp(table.mean(1)))
    # the median: one member that collapses now and then does not hide that others differ
    error = float(np.sqrt(np.median(table.var(1, ddof=1)) / table.shape[1]))
    needs = f"more than {_range_of(len(defined)):.1f} standard errors ({_range_of(len(defined)) * error:.3g})"
    return _condition("members can be told apart", spread, needs, spread > _range_of(len(defined)) * error)


def _condition(what: str, value: float, needs: str, ok: Any) -> dict[str, Any]:
    return {"what": what, "value": value if math.isfinite(value) else None, "needs": needs, "ok": bool(ok)}


def _range_of(members: int) -> float:
    """The range that the means of so many alike members exceed one time in twenty, in standard errors, by sampling normal ones."""
    draws = np.random.default_rng(0).standard_normal((4000, members))
    return float(np.quantile(np.ptp(draws, axis=1), 0.95))


def independent(seeds: int, starts: int) -> int:
    """The pairs that decide: seeds, or the starts among which they are divided, where these are fewer.  starts: 1 for a model."""
    return min(seeds, starts) if starts > 1 else seeds


def noise(rows: Sequence[Mapping[str, Any]], baseline: str, starts: int = 1) -> float | None:
    """The standard deviation between pairs of a difference to the baseline, typical of the members of a recorded world; None where
    no member has three pairs, or all of them measured the same.  starts: among which the seeds were divided, as of `independent`.
    """
    base = next(row["values"] for row in rows if row["member"] == baseline)
    own = [seed % starts for seed in range(len(base))] if starts > 1 else None
    spreads = []
    for row in rows:
        if len(row["values"]) != len(base):
            continue
        each = [math.nan if a is None or b is None else a - b for a, b in zip(row["values"], base, strict=True)]
        pairs = by_start(each, own)
        if len(pairs) > 2 and any(pairs):
            spreads.append(float(np.std(pairs, ddof=1)))
    return float(np.median(spreads)) if spreads else None


def detectable(deviation: float, pairs: int, rivals: int) -> float:
    """The difference that is found four times in five: by so many pairs whose differences have this standard deviation.

    Decided among so many rivals, at the level that Holm's correction asks of the first.
    """
    if pairs < 2:
        return math.inf
    freedom = pairs - 1
    return (t_quantile(freedom, 1 - LEVEL / max(rivals, 1)) + t_quantile(freedom, 0.6)) * deviation / math.sqrt(pairs)
