"""Canary: the first steps of both sides of a claim, kept with its record and rerun in seconds to confirm it.

The hashes of a record (`results.code`) do not see the engine, the models and the libraries; and a definition that was rewritten is
another one to them, though it computes the same. Equal numbers confirm the record.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab import registry
from rewardlab.checks import results
from rewardlab.checks.claim import Claim
from rewardlab.checks.kept import first_steps
from rewardlab.checks.pairs import Pairs
from rewardlab.checks.runs import Job, kind_of, recipe_of, run
from rewardlab.errors import RewardlabError
from rewardlab.util.progress import console

PROBLEMS = 8
"""Held-out problems that are measured, at most."""
CLOSE = 1e-5
"""Relative difference of numbers that count as equal: sums may be taken in another order."""
SAME, OTHER, ADDED, UNKNOWN = "the same", "another", "kept from now on", "nothing to compare with"

Lines = list[dict[str, Any]]


def canary_of(pairs: Pairs, seed: int) -> dict[str, Any]:
    """What the first steps of a seed are, on both sides."""
    return {"seed": seed, "sides": [_lines(pairs.job(side, seed)) for side in range(len(pairs.names))]}


def _lines(job: Job) -> Lines:
    config = job.config.but(eval_problems=min(PROBLEMS, job.config.eval_problems))
    if kind_of(recipe_of(job)) != "train":
        # it takes no steps: answering a few problems is all that it does
        return [dict(run(replace(job, config=config, keep=False)).numbers)]
    return first_steps(replace(job, config=config), Path(job.folder) / "canary")


def canary(name: str, into: Path | None = None, device: str = "auto") -> dict[str, Any]:
    """Run the first steps of a recorded claim again, and say whether they are those of its last record.

    Where they are, and the code has changed since, the record is confirmed. A record of this very code that has no first steps yet
    gets them. Raises RewardlabError for a method without a claim or without a record, where the claim is another one by now, and
    for a record of other code without first steps, with which nothing can be compared.
    """
    found = _again(registry.spell(name), into, device)
    if found["canary"] == UNKNOWN:
        name = found["name"]
        some = comparable(into)
        others = f"; {len(some)} records keep theirs, such as those of {' and '.join(some[:2])}" if some else ""
        raise RewardlabError(
            f"{name}: there is nothing to compare with: its record is of other code and keeps no first steps; rewardlab reproduce "
            f"{name} runs the whole claim again, and keeps them{others}"
        )
    return found


def comparable(into: Path | None = None) -> list[str]:
    """The methods whose record keeps first steps of their present claim, those that train and whose claim took least time first."""
    found = []
    for name in registry.methods():
        record = results.read(name, into or results.folder_for(name))
        last = record["runs"][-1] if record else {}
        if last.get("canary") and (claim := registry.claim_of(name)) and results.same_claim(last["claim"], claim):
            # what takes no steps has one line on each side, and is mostly a benchmark whose data must be there
            found.append((any(len(lines) < 2 for lines in last["canary"]["sides"]), last.get("seconds", math.inf), name))
    return [name for _, _, name in sorted(found)]


def _again(name: str, into: Path | None, device: str) -> dict[str, Any]:
    claim = _claim_of(name)
    where = into or results.folder_for(name)
    record = results.read(name, where)
    if record is None:
        raise RewardlabError(f"{name} has no record: rewardlab reproduce {name}")
    last = record["runs"][-1]
    if not results.same_claim(last["claim"], claim):
        raise RewardlabError(f"{name} claims something else than its record: rewardlab reproduce {name}")
    fresh, known = results.of_this_code(last, registry.file_of(name)), last.get("canary")
    if known is None and not fresh:
        return {"name": name, "canary": UNKNOWN, "fresh": False, "differs": []}
    with Pairs(name, claim, 1, device) as pairs:
        found = canary_of(pairs, known["seed"] if known else last["seeds"][0])
    if known is None:
        results.amend(name, where, canary=found)
        return {"name": name, "canary": ADDED, "fresh": True, "differs": []}
    differs = list(_differences(known["sides"], found["sides"]))
    if not differs and not fresh:
        results.amend(name, where, confirmed=results.code(name, claim))
    return {"name": name, "canary": OTHER if differs else SAME, "fresh": fresh or not differs, "differs": differs}


def canaries(into: Path | None = None, device: str = "auto") -> list[dict[str, Any]]:
    """The same for every method that has a record; one that cannot run does not stop the others."""
    rows = []
    for name in sorted(registry.methods()):
        try:
            if registry.claim_of(name) and results.read(name, into or results.folder_for(name)):
                rows.append(_again(name, into, device))
                console.print(f"{name}: {rows[-1]['canary']}", highlight=False, markup=False)
        except RewardlabError as e:
            rows.append({"name": name, "canary": UNKNOWN, "fresh": False, "differs": [], "error": str(e)})
    return rows


def _claim_of(name: str) -> Claim:
    claim = registry.claim_of(name)
    if claim is None:
        raise RewardlabError(f"{name} makes no claim: there is nothing to run again")
    return claim


def _differences(known: Sequence[Lines], found: Sequence[Lines]) -> Iterator[str]:
    """The numbers that are not equal, in words."""
    for side, (old, new) in zip(("method", "baseline"), zip(known, found, strict=True), strict=False):
        if len(old) != len(new):
            yield f"{side}: {len(new)} lines, {len(old)} in the record"
            continue
        for before, after in zip(old, new, strict=True):
            yield from (f"{side}, step {before.get('step', 0)}: {said}" for said in _unequal(before, after))


def _unequal(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for key in before:
        old, new = before[key], after.get(key)
        if isinstance(old, int | float) and isinstance(new, int | float):
            if not np.isclose(old, new, rtol=CLOSE, atol=1e-8):
                yield f"{key} {old:.6g} is now {new:.6g}"
        elif old != new:
            yield f"{key} {old} is now {new}"
