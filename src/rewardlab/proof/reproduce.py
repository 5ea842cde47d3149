"""Run a method and its baseline in pairs, with the same budget, and decide whether the claim holds."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rewardlab import api, registry
from rewardlab.core import Recipe
from rewardlab.errors import RewardlabError
from rewardlab.models.load import load_policy
from rewardlab.runs.config import RunConfig
from rewardlab.util.progress import Bar, console

from . import results
from .claim import Claim
from .rehearse import rehearsed
from .runs import Done, Job, as_plain, kind_of, number, recipe_of, run
from .verdict import INCOMPLETE, verdict
from .workers import Failed, run_all

SEEDS = range(100, 105)
DEVELOPMENT = 100  # runs on seeds below this are not recorded: methods are tuned on them, and a claim must hold on others

Record = dict[str, Any]
Outcomes = list[Done | Failed]


def reproduce(
    name: str, seeds: Sequence[int] = SEEDS, *, claim: Claim | None = None, jobs: int | None = None, into: Path | None = None,
    device: str = "auto",
) -> Record:  # fmt: skip
    """Run a claim and append the result to NAME.json in its folder of results; returns what was appended, with the method's name
    and the file ("recorded", None if nothing was).

    seeds: one pair of runs each; runs on seeds below 100 are for development and are not recorded.  claim: instead of the
    method's own.  jobs: processes at a time.  into: folder of the record (default: `catalogue.results_folder`).  device: where the
    runs compute.
    Raises RewardlabError for a method without claim, and for a claim about a number that is not measured.
    """
    name, claim = registry.spell(name), claim or claim_of(name)
    where = (into or results.folder_for(name)) if _recorded(seeds) else None
    if where:
        # now, and not after hours of runs
        results.prepare(name, where)
    began, when = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    method, baseline = run_pairs(name, claim, seeds, jobs, device)
    sides = {"method": [_as_record(x) for x in method], "baseline": [_as_record(x) for x in baseline]}
    record = {
        "when": when, "seeds": list(seeds), "claim": results.as_record(claim), **sides, "measure": claim.measure,
        **judge(name, claim, method, baseline), "budget": claim.budget, "spent": _token_counts(method, baseline),
        "versions": api.versions(), "code": results.code(name, claim.versus),
        "seconds": round(time.monotonic() - began, 1), "machine": results.machine(),
    }  # fmt: skip
    path = results.append(name, record["claim"], record, where) if where else None
    return {"name": name, "recorded": path and str(path), **record}


def reproduce_all(
    seeds: Sequence[int] = SEEDS, *, jobs: int | None = None, into: Path | None = None, device: str = "auto"
) -> list[Record]:
    """Reproduce every claim that has no complete run with its present method file; returns one row for each method with a claim."""
    claims = {name: claim for name in sorted(registry.methods()) if (claim := getattr(registry.module_of(name), "claim", None))}
    rows = []
    for i, (name, claim) in enumerate(claims.items(), 1):
        where = (into or results.folder_for(name)) if _recorded(seeds) else None
        if where and results.fresh(name, claim, where):
            last = results.read(name, where)
            assert last is not None  # or it would not be fresh
            rows.append({"name": name, **last["runs"][-1]})
            continue
        console.print(f"{i}/{len(claims)} {name}: {claim.says}", highlight=False, markup=False)
        try:
            rows.append(reproduce(name, seeds, jobs=jobs, into=where, device=device))
        # one claim that cannot run must not stop the others
        except RewardlabError as e:
            rows.append({"name": name, "measure": claim.measure, "verdict": "not run", "error": str(e)})
    return rows


def claim_of(name: str) -> Claim:
    """The claim of a method; raises RewardlabError if it has none."""
    claim = getattr(registry.module_of(name), "claim", None)
    if claim is None:
        raise RewardlabError(f"{name} makes no claim: there is nothing to reproduce")
    return claim


def run_pairs(
    name: str, claim: Claim, seeds: Sequence[int], jobs: int | None = None, device: str = "auto"
) -> tuple[Outcomes, Outcomes]:
    """The outcomes of method and baseline (empty if the claim has none), seed by seed."""
    sides = [(name, claim.settings)] + ([(claim.versus, claim.versus_settings)] if claim.versus else [])
    recipes = [registry.build(method, as_plain(settings)) for method, settings in sides]
    _cache_policy(claim, recipes)
    by = claim.by.to_json() if claim.by else None
    config = RunConfig(task=claim.task, model=claim.model, eval_problems=claim.problems, budget=claim.budget, eval_every=0)
    config = config.but(steps=claim.steps, device=device)
    with tempfile.TemporaryDirectory(prefix="rewardlab-") as folder:
        jobs_to_run = [
            Job(method, recipe.to_json(), config.but(seed=seed), f"{folder}/{side}-{seed}", by)
            for seed in seeds for side, ((method, _), recipe) in enumerate(zip(sides, recipes, strict=True))
        ]  # fmt: skip
        measures = [claim.measure, *filter(None, [claim.against])]
        _rehearse(jobs_to_run[: len(sides)], measures, jobs)
        outcomes = dict(_outcomes_of(f"reproducing {name}", jobs_to_run, jobs, measures))
    # jobs end in any order; by position, method and baseline take turns
    ordered = [outcomes[i] for i in range(len(outcomes))]
    return ordered[:: len(sides)], ordered[1::2] if claim.versus else []


def judge(name: str, claim: Claim, method: Outcomes, baseline: Outcomes) -> Record:
    """effects (None where a run of the pair failed or measured no finite number), their mean with its interval, the verdict."""
    # an effect is positive where it supports the claim, whichever direction that is
    sign = 1.0 if claim.direction == "higher" else -1.0
    references = baseline if claim.versus else method
    effects = [_effect(name, claim, method_run, other_run) for method_run, other_run in zip(method, references, strict=True)]
    effects = [None if e is None or not math.isfinite(e) else sign * e for e in effects]
    finite = [e for e in effects if e is not None]
    result = verdict(finite, claim.margin)
    complete = len(finite) == len(effects)
    return {
        "effects": effects,
        "effect": _finite(result.effect),
        "ci95": [_finite(result.low), _finite(result.high)],
        # a failed run may be a bad one: a verdict on the others alone would be biased
        "verdict": result.verdict if complete else INCOMPLETE,
    }


def _effect(name: str, claim: Claim, method_run: Done | Failed, other_run: Done | Failed) -> float | None:
    """The measure of the method's run minus the baseline's, `against`, or 0; None where a run failed."""
    if isinstance(method_run, Failed) or isinstance(other_run, Failed):
        return None
    value = number(method_run.numbers, claim.measure, name)
    if claim.versus:
        return value - number(other_run.numbers, claim.measure, claim.versus)
    return value - (number(method_run.numbers, claim.against, name) if claim.against else 0.0)


def _outcomes_of(what: str, work: list[Job], jobs: int | None, measures: list[str]) -> Iterator[tuple[int, Done | Failed]]:
    """Run jobs under a progress bar, and report a failure as it happens."""
    with Bar(what, len(work)) as bar, closing(run_all(run, work, jobs)) as outcomes:
        for i, outcome in outcomes:
            job = work[i]
            if isinstance(outcome, Failed):
                console.print(
                    f"{job.method}, seed {job.config.seed}, failed: {outcome.error}", style="red", markup=False, highlight=False
                )
            else:
                _check(job, outcome, measures)
            bar.advance(f"{job.method}, seed {job.config.seed}")
            yield i, outcome


def _rehearse(sides: list[Job], measures: list[str], processes: int | None) -> None:
    """Raise RewardlabError if a side cannot do one step, or lacks a metric that the claim needs."""
    # a study has no steps, and what training logs may begin after its first one: both are noticed after the first run
    trained = [job for job in sides if kind_of(recipe_of(job)) == "train"]
    for job, names in zip(trained, rehearsed(trained, processes), strict=True):
        for measure in measures:
            if not measure.startswith("train."):
                number(dict.fromkeys(names, 0.0), measure, job.method)


def _check(job: Job, outcome: Done, measures: list[str]) -> None:
    """Raise RewardlabError if a run lacks a metric that the claim needs; report a budget that was not used up."""
    for measure in measures:
        number(outcome.numbers, measure, job.method)
    tokens, steps = (int(outcome.numbers.get(name, 0)) for name in ("tokens", "steps"))
    budget = job.config.budget
    # methods without training, which take no steps, use what tokens they need
    if steps and budget and tokens < budget:
        message = f"{job.method}, seed {job.config.seed}, ended after {steps} steps with {tokens:,} of {budget:,} tokens"
        console.print(message, markup=False, highlight=False)


def _cache_policy(claim: Claim, recipes: list[Recipe]) -> None:
    """Fill the cache with the policy that every worker loads, before they start."""
    if any(kind_of(recipe) != "study" for recipe in recipes):
        task = registry.task(claim.task)
        load_policy(claim.model or task.model, task=task)


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
    return {**{k: _finite(v) for k, v in outcome.numbers.items()}, "seconds": outcome.seconds}


def _token_counts(method: Outcomes, baseline: Outcomes) -> Record:
    """The mean token count of each side's runs."""
    tokens = {
        side: [x.numbers["tokens"] for x in runs if isinstance(x, Done) and "tokens" in x.numbers]
        for side, runs in (("method", method), ("baseline", baseline))
    }
    return {side: round(sum(t) / len(t)) for side, t in tokens.items() if t}


def _finite(value: float) -> float | None:
    """The value to 7 digits, the precision of float32; None for NaN and infinity, which JSON lacks."""
    return float(f"{value:.7g}") if math.isfinite(value) else None
