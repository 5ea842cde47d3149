"""The learning rate of each side of a claim, chosen from one list on development seeds.

The rate outweighs most methods: a comparison in which one side has the better one says nothing about the methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from rewardlab import registry
from rewardlab.checks.claim import Claim
from rewardlab.checks.pairs import Pairs, run_one
from rewardlab.checks.reproduce import DEVELOPMENT, claim_of
from rewardlab.checks.runs import number
from rewardlab.checks.workers import Failed, run_all
from rewardlab.errors import RewardlabError
from rewardlab.util.progress import Bar

# ---- The power sum of a claim: what development seeds say about its margin, before the record is run -----------------

AIM = 3.0
"""Standard deviations of the pair difference that an effect should have, so that five to eight pairs decide."""


def power(effects: Sequence[float | None]) -> dict[str, Any] | None:
    """effect, sd of the pair difference, their ratio, and the margin by rule: half the effect, and at least one sd.

    None with fewer than three effects, whose spread says nothing.
    """
    values = np.array([e for e in effects if e is not None], float)
    if len(values) < 3:
        return None
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    wanted = max(abs(mean) / 2, sd)
    # without any spread there is no ratio
    return {"effect": mean, "sd": sd, "ratio": mean / sd if sd else None, "margin": wanted}


RATES = (1e-4, 3e-4, 1e-3)
SEEDS = range(2)
CHOSEN_BY = "auc.truth"


def rates(
    name: str, values: Sequence[float] = RATES, seeds: Sequence[int] = SEEDS, *, claim: Claim | None = None,
    chosen_by: str | None = None, jobs: int | None = None, device: str = "auto",
) -> dict[str, Any]:  # fmt: skip
    """Both sides of a claim at every rate; for each side the numbers by rate, and the rate at which `chosen_by` is best.

    chosen_by: a number of the runs, by default the mean accuracy of training, or what is compared where nothing is sampled. More of
    it is better, but of what is compared, as the claim says. A rate at which a run fails is not chosen. Under "tied", by side, the
    rates that it does not tell apart.
    Raises RewardlabError for a number that is not measured, and where every rate of a side fails.
    """
    name, claim = registry.spell(name), claim or claim_of(name)
    if any(seed >= DEVELOPMENT for seed in seeds):
        raise RewardlabError(f"rates are chosen on development seeds, below {DEVELOPMENT}")
    with Pairs(name, claim, jobs, device) as pairs:
        work = [
            (side, rate, pairs.job(side, seed, lr=rate)) for side in range(len(pairs.names)) for rate in values for seed in seeds
        ]  # fmt: skip
        found: dict[int, Any] = {}
        runs = run_all(run_one, [(job, False) for *_, job in work], jobs)
        with Bar(f"rates of {name}", len(work)) as bar, closing(runs) as outcomes:
            for i, outcome in outcomes:
                side, rate, _ = work[i]
                bar.advance(f"{pairs.names[side]} at {rate:g}")
                found[i] = outcome
    done = [outcome for outcome in found.values() if not isinstance(outcome, Failed)]
    chosen_by = chosen_by or (CHOSEN_BY if all(CHOSEN_BY in run.numbers for run in done) else claim.measure)
    rows = []
    for side, method in enumerate(pairs.names):
        for rate in values:
            runs_at = [found[i] for i, (s, r, _) in enumerate(work) if (s, r) == (side, rate)]
            rows.append({"side": ("method", "baseline")[side], "name": method, "rate": rate, **_numbers(runs_at, claim, chosen_by)})
    best = _best_of_sides(rows, chosen_by, lower=chosen_by == claim.measure and claim.direction == "lower")
    return {
        "name": name, "task": claim.task, "chosen_by": chosen_by, "seeds": list(seeds), "rates": rows,
        "chosen": {side: middle(of) if of else None for side, of in best.items()},
        "tied": {side: of for side, of in best.items() if len(of) > 1},
    }  # fmt: skip


def _best_of_sides(rows: Sequence[Mapping[str, Any]], chosen_by: str, lower: bool) -> dict[str, list[float]]:
    """The best rates of each side; none where every rate of it fails."""
    levels: dict[str, dict[float, float]] = {row["side"]: {} for row in rows}
    for row in rows:
        if row[chosen_by] is not None:
            levels[row["side"]][row["rate"]] = row[chosen_by]
    return {side: best_rates(known, lower) for side, known in levels.items()}


def best_rates(levels: Mapping[float, float], lower: bool = False) -> list[float]:
    """The rates with the best level, which nothing tells apart, in their order.  lower: whether less is better."""
    best = (min if lower else max)(levels.values(), default=None)
    return sorted(rate for rate, level in levels.items() if level == best)


def middle(rates: Sequence[float]) -> float:
    """Of rates that nothing tells apart, the one in the middle, the lower one of two."""
    return rates[(len(rates) - 1) // 2]


def _numbers(runs: Sequence[Any], claim: Claim, chosen_by: str) -> dict[str, Any]:
    """The means over seeds of what decides, of what is compared and of what is learnt; None where a run failed."""
    names = dict.fromkeys(filter(None, (chosen_by, claim.measure, claim.learns)))
    if failed := next((run for run in runs if isinstance(run, Failed)), None):
        return {**dict.fromkeys(names), "error": failed.error}
    return {key: float(np.mean([number(run.numbers, key, "a run") for run in runs])) for key in names}
