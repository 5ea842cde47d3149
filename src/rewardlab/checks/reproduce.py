"""Run a method and its baseline in pairs, with looks after 5, 8, 12 and 20, and decide on the claim."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rewardlab import api, registry
from rewardlab.checks import results
from rewardlab.checks.canary import canary_of
from rewardlab.checks.claim import Claim
from rewardlab.checks.judge import finite, judge
from rewardlab.checks.pairs import Outcomes, Pairs
from rewardlab.checks.runs import Done
from rewardlab.checks.verdict import LOOKS, NOT_RUN, STOPPED, UNDECIDED
from rewardlab.checks.workers import Failed
from rewardlab.errors import RewardlabError
from rewardlab.util.progress import console

DEVELOPMENT = 100  # runs on seeds below this are not recorded: methods are tuned on them, and a claim must hold on others
APART = 100  # seeds between the first ones of two versions of a claim
MOST = LOOKS[-1]

Record = dict[str, Any]


def seeds_of(version: int, pairs: int = MOST) -> range:
    """The seeds of a version of a claim: 100 and up of the first, 200 and up of the second, which the first has not seen."""
    first = DEVELOPMENT + APART * (version - 1)
    return range(first, first + pairs)


def reproduce(
    name: str, seeds: Sequence[int] | None = None, *, pairs: int = MOST, claim: Claim | None = None, jobs: int | None = None,
    into: Path | None = None, device: str = "auto",
) -> Record:  # fmt: skip
    """Run a claim and append the result to NAME.json in its folder of results; returns what was appended, with the method's name
    and the file ("recorded", None if nothing was).

    seeds: one pair of runs each, in this order, until a look at them decides; None: those of the claim's version (`seeds_of`), of
    which so many `pairs` at most.  Seeds below 100 are for development: all of them are run, and nothing is recorded.  claim:
    instead of the method's own.  jobs: processes at a time.  into: folder of the record (default: `catalogue.results_folder`).
    device: where the runs compute.

    A reproduction that is stopped stays in the record, with the pairs that it had.
    Raises RewardlabError for a method without claim, and for a claim about a number that is not measured.
    """
    name, claim = registry.spell(name), claim or claim_of(name)
    seeds = seeds_of(claim.version, pairs) if seeds is None else seeds
    where = (into or results.folder_for(name)) if _recorded(seeds) else None
    if where:
        # now, and not after hours of runs
        results.prepare(name, where)
    began, when = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    looks = LOOKS if where else (len(seeds),)
    with Pairs(name, claim, jobs, device) as done:
        try:
            decided = look(name, claim, seeds, looks, done)
        except (KeyboardInterrupt, SystemExit):
            # what was seen is told: a result that looked bad could be stopped, and run again
            if where and done.seeds:
                stopped = {**judge(name, claim, done.method, done.baseline), "looks": [], "verdict": STOPPED}
                results.append(name, results.as_record(claim), _document(name, claim, done, stopped, when, began), where)
            raise
        canary = canary_of(done, done.seeds[0]) if where and done.seeds else None
    record = {**_document(name, claim, done, decided, when, began), **({"canary": canary} if canary else {})}
    path = results.append(name, record["claim"], record, where) if where else None
    if path:
        done.recorded(record["seeds"])
    return {"name": name, "recorded": path and str(path), **record}


def _document(name: str, claim: Claim, done: Pairs, decided: Record, when: str, began: float) -> Record:
    """What the record holds of one reproduction."""
    return {
        "when": when, "seeds": list(done.seeds), "claim": results.as_record(claim),
        "method": [_as_record(x) for x in done.method], "baseline": [_as_record(x) for x in done.baseline],
        "measure": claim.measure, **decided, "curves": {k: _curves(v) for k, v in done.sides().items()},
        "budget": claim.budget, "spent": _means(done, "tokens"), "updates": _means(done, "updates"),
        "versions": api.versions(), "code": results.code(name, claim),
        "seconds": round(time.monotonic() - began, 1), "machine": results.machine(),
    }  # fmt: skip


def look(name: str, claim: Claim, seeds: Sequence[int], looks: Sequence[int], pairs: Pairs) -> Record:
    """Add pairs until a look at them decides, or no seeds are left; returns what `judge` says at the last look."""
    seen: list[Record] = []
    for stop in sorted({min(stop, len(seeds)) for stop in looks}):
        pairs.add(seeds[len(pairs.method) : stop])
        decided = judge(name, claim, pairs.method, pairs.baseline)
        seen.append({"pairs": stop, **{k: decided[k] for k in ("effect", "interval", "verdict")}})
        if decided["verdict"] != UNDECIDED:
            break
    return {**decided, "looks": seen}


def reproduce_all(
    seeds: Sequence[int] | None = None, *, pairs: int = MOST, jobs: int | None = None, into: Path | None = None,
    device: str = "auto",
) -> list[Record]:  # fmt: skip
    """Reproduce every claim that has no complete run with its present method file; returns one row for each method with a claim."""
    claims = {name: claim for name in sorted(registry.methods()) if (claim := registry.claim_of(name))}
    rows = []
    for i, (name, claim) in enumerate(claims.items(), 1):
        own = seeds_of(claim.version, pairs) if seeds is None else seeds
        where = (into or results.folder_for(name)) if _recorded(own) else None
        if where and results.fresh(name, claim, where) and not _stopped(last := results.read(name, where)):
            assert last is not None  # or it would not be fresh
            rows.append({"name": name, **last["runs"][-1]})
            continue
        console.print(f"{i}/{len(claims)} {name}: {claim.says}", highlight=False, markup=False)
        try:
            rows.append(reproduce(name, own, jobs=jobs, into=where, device=device))
        # one claim that cannot run must not stop the others
        except RewardlabError as e:
            rows.append({"name": name, "measure": claim.measure, "verdict": NOT_RUN, "error": str(e)})
    return rows


def claim_of(name: str) -> Claim:
    """The claim or the check of a method; raises RewardlabError if it has none."""
    claim = registry.claim_of(name)
    if claim is None:
        raise RewardlabError(f"{name} makes no claim: there is nothing to reproduce")
    return claim


def _stopped(record: Record | None) -> bool:
    """Whether the newest run of a record was stopped before it was decided."""
    return record is not None and record["runs"][-1]["verdict"] == STOPPED


def _recorded(seeds: Sequence[int]) -> bool:
    """Whether runs on these seeds are recorded."""
    if not seeds:
        raise RewardlabError("there are no seeds to run on")
    low, high = min(seeds), max(seeds)
    if low < DEVELOPMENT <= high:
        raise RewardlabError(f"seeds {low} to {high} mix those for development, below {DEVELOPMENT}, with those for reproduction")
    return low >= DEVELOPMENT


def _as_record(outcome: Done | Failed) -> Record:
    if isinstance(outcome, Failed):
        return {"error": outcome.error}
    return {**{k: finite(v) for k, v in outcome.numbers.items()}, "seconds": outcome.seconds}


def _means(pairs: Pairs, name: str) -> Record:
    """The mean of a count over each side's runs."""
    counts = {
        side: [x.numbers[name] for x in runs if isinstance(x, Done) and name in x.numbers] for side, runs in pairs.sides().items()
    }
    return {side: round(sum(values) / len(values)) for side, values in counts.items() if values}


def _curves(outcomes: Outcomes) -> dict[str, list[float]]:
    """The mean learning curves of runs, of those that have as many points as the first."""
    curves = [outcome.training for outcome in outcomes if isinstance(outcome, Done) and outcome.training]
    means = {}
    for name in curves[0] if curves else ():
        rows = [curve[name] for curve in curves if len(curve.get(name, ())) == len(curves[0][name])]
        means[name] = [round(sum(column) / len(rows), 4) for column in zip(*rows, strict=True)]
    return means
