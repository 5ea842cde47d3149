"""A recorded claim in words: training, task and duration, and the levels of both sides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rewardlab.checks.verdict import ROUNDING

Record = Mapping[str, Any]

SHARES = {
    "pass@1": "right", "accuracy": "right", "greedy": "right when greedy", "majority": "right by vote", "success": "successful",
}  # fmt: skip
"""Measures that are shares, and what of replies they count."""
LENGTH = "log_right_length"
"""A measure whose levels are told in tokens."""
CLEAR = 2.0
"""Standard errors by which a side must end below its start before it is said to."""


def levels(name: str, run: Record) -> str:
    """One to three sentences: the world, the levels, and what of them an effect alone would hide."""
    sides = _ends(name, run)
    start = mean(run["method"], f"before.{run['measure']}")
    begun = "" if start is None or run["claim"].get("against") else f"{_level(run['measure'], start)} at the start; "
    ends = ", ".join(f"{side} {verb} {_number(run['measure'], value)}" for side, verb, value in sides)
    what = "" if begun else f"`{run['measure']}`: " if run["measure"] not in SHARES else f"{SHARES[run['measure']]}: "
    return f"{_world(run)}. {capital(begun or what)}{ends}.{_guarded(run)}{_both_fall(name, run)}"


def mean(runs: Sequence[Record], number: str) -> float | None:
    """The mean of a number over the runs that measured it; None where none did."""
    values = [run[number] for run in runs if run.get(number) is not None]
    return sum(values) / len(values) if values else None


def _world(run: Record) -> str:
    """What is run, and how often."""
    claim, pairs = run["claim"], len(run["method"])
    model = claim.get("model") or "the small policy of the task"
    updates = (run.get("updates") or {}).get("method")
    length = f"{updates} update{'s' * (updates != 1)} of " if updates else "no training: "
    model = "an untrained policy" if model == "untrained" else model
    return f"{capital(length)}{model} on `{claim['task']}`, {pairs} seed{'s' * (pairs != 1)}"


def _ends(name: str, run: Record) -> list[tuple[str, str, float | None]]:
    """(side, verb, its level) of what is compared: the rival first."""
    claim, measure = run["claim"], run["measure"]
    verb = "ends at" if mean(run["method"], f"before.{measure}") is not None and not claim.get("against") else "reaches"
    mine = (name, verb, mean(run["method"], measure))
    if claim["versus"]:
        return [(_rival(name, claim), verb, mean(run["baseline"], measure)), mine]
    if against := claim.get("against"):
        begins = against.startswith("before.")
        other = "before training" if begins else f"`{against}`"
        return [(other, "is" if not begins else "it is", mean(run["method"], against)), (name, "reaches", mine[2])]
    return [mine]


def _rival(name: str, claim: Record) -> str:
    """The baseline; where it is the method itself, with the settings that make it another."""
    if claim["versus"] != name:
        return claim["versus"]
    other = {k: v for k, v in claim["versus_settings"].items() if claim["settings"].get(k) != v}
    told = [f"{k}={_plain(v)}" for k, v in other.items()] or [f"the default {k}" for k in claim["settings"]]
    return f"{name} with {', '.join(told)}"


def _guarded(run: Record) -> str:
    """The levels of what is guarded, where it is another number than what is compared."""
    guard = run["claim"].get("guard")
    if not guard or guard["number"] == run["measure"]:
        return ""
    number = guard["number"]
    both = [_number(number, x) for side in ("baseline", "method") if (x := mean(run[side], number)) is not None]
    return f" Beside it, {SHARES.get(number, f'`{number}`')}: {' and '.join(both)}." if both else ""


def _both_fall(name: str, run: Record) -> str:
    """That nobody gained, where both sides end below their start in what is to be higher."""
    if run["claim"]["direction"] != "higher" or not run["baseline"] or run["claim"].get("against"):
        return ""
    if not all(_falls(run[side], run["measure"]) for side in ("method", "baseline")):
        return ""
    effect = run["effect"] or 0.0
    if abs(effect) <= ROUNDING:
        return " Both lose, and neither helps."
    return f" {name} loses {'less' if effect > 0 else 'more'}; neither helps."


def _falls(runs: Sequence[Record], number: str) -> bool:
    """Whether runs end below their start, clear of noise."""
    pairs = [(run.get(number), run.get(f"before.{number}")) for run in runs]
    changes = np.array([after - before for after, before in pairs if after is not None and before is not None])
    if len(changes) < 2:
        return False
    return bool(changes.mean() < -CLEAR * changes.std(ddof=1) / math.sqrt(len(changes)))


def _level(measure: str, value: float) -> str:
    return f"{_number(measure, value)} {SHARES[measure]}" if measure in SHARES else f"`{measure}` is {_number(measure, value)}"


def _number(measure: str, value: float | None) -> str:
    """A level as a newcomer reads it: shares in percent."""
    if value is None:
        return "?"
    if measure == LENGTH:
        return f"{math.exp(value):.1f} tokens"
    if measure not in SHARES:
        return f"{value:.3g}"
    # near the ends of the range a whole percent would hide what is compared
    return f"{value:.1%}" if value < 0.1 or value > 0.9 else f"{value:.0%}"


def _plain(value: Any) -> str:
    """A setting in a few words; a part by its name."""
    if isinstance(value, Mapping) and "part" in value:
        return str(value["part"]).rpartition(":")[2]
    return f"{value:g}" if isinstance(value, float) else str(value)


def capital(text: str) -> str:
    """A sentence that begins with a capital letter; all else stays as it is."""
    return text[:1].upper() + text[1:]
