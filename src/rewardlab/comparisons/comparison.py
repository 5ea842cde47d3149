"""The result of a comparison: means, paired differences, learning curves, and caveats in words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rewardlab.checks.runs import Done
from rewardlab.checks.verdict import PAIRS, holds
from rewardlab.comparisons.arms import ONE_REPLY, SELECTED, Arm
from rewardlab.comparisons.plan import TOKENS, Plan
from rewardlab.comparisons.ranges import possible
from rewardlab.util.intervals import holm, interval, p_value

POINTS = 60  # token counts at which a mean learning curve is drawn
UNEQUAL = 0.2  # a share by which updates or tokens may differ without a word

LEVEL = 0.05  # of all decisions of a comparison together

TOO_FEW, NOT_DECIDED, HIGHER, LOWER = "too few seeds", "not decided", "higher", "lower"

BESIDE = ("entropy", "kl", "length", "signal")
"""What training logged late, shown beside what is compared."""
PASS_AT = re.compile(r"pass@(\d+)")
SEEDS, PROBLEMS = "seeds", "problems"
"""What an interval is over: the seeds (Student's); or, of fewer than PAIRS seeds, the held-out problems of the runs."""

Record = dict[str, Any]
Curve = Sequence[tuple[int, Mapping[str, float]]]
"""Points of a run: a count of tokens or steps, and the numbers there."""
Outcomes = Mapping[str, Sequence[Done]]
"""By method, in the order of the seeds."""


def result(plan: Plan, outcomes: Outcomes, logs: Mapping[str, Sequence[Curve]] | None = None) -> Record:
    """The measured part of compare.json: a row for each method, and notes.  logs: what training logged, by method and seed."""
    rows = [summarise(arm, plan, outcomes) for arm in plan.arms]
    for row in rows:
        row["watched"] = _watched((logs or {}).get(row["method"], ()))
    _together([row["difference"] for row in rows if row["difference"]])
    return {"methods": rows, "notes": notes(plan, rows)}


def summarise(arm: Arm, plan: Plan, outcomes: Outcomes) -> Record:
    """A method's numbers, seed by seed, their mean, their differences to the first method, its cost, and its learning curve."""
    runs, measure, first = outcomes[arm.name], arm.measured_by(plan.measure), plan.arms[0]
    values = [done.numbers.get(measure) for done in runs]
    return {
        "method": arm.name, "trains": arm.trains, "formula": str(arm.recipe), "measure": measure, "values": values,
        **mean_interval(values, measure, [done.spread.get(measure) for done in runs]),
        "difference": None if arm is first else difference(values, _values(first, plan, outcomes), measure),
        # tokens of training; what a selection computes for its answers is not comparable with them
        "tokens": _average(runs, "tokens") if arm.trains else 0,
        "tokens_per_answer": _average(runs, "train.length" if arm.trains else "tokens_per_answer"),
        "steps": [done.numbers.get("steps") for done in runs], "updates": _average(runs, "updates"),
        "seconds": [done.seconds for done in runs], "rate": plan.chosen.get(arm.name), "pass_at": _pass_at(runs),
        "beside": {name: mean_interval([done.numbers.get(f"train.{name}") for done in runs], name) for name in BESIDE},
        # what was measured, seed by seed; the curve is their mean at token counts between them
        "points": [[[tokens, numbers[measure]] for tokens, numbers in done.curve if measure in numbers] for done in runs],
        "curve": mean_curve([done.curve if arm.trains else [] for done in runs], measure),
    }  # fmt: skip


def difference(values: Sequence[float | None], first: Sequence[float | None], name: str = "") -> Record:
    """The paired differences of two methods over seeds, and whether they decide: by the rule of verdicts, with no margin.

    A pair in which one of the two numbers is undefined is left out.
    """
    pairs = [None if a is None or b is None else a - b for a, b in zip(values, first, strict=True)]
    effects = np.array([x for x in pairs if x is not None])
    if len(effects) < PAIRS:
        decision = TOO_FEW
    else:
        decision = HIGHER if holds(effects, 0.0) else LOWER if holds(-effects, 0.0) else NOT_DECIDED
    least, most = possible(name, [value for value in (*values, *first) if value is not None])
    return {"values": pairs, **mean_interval(pairs, within=(least - most, most - least)), "decision": decision}


def _together(differences: Sequence[Record]) -> None:
    """Decide all differences of a comparison at once: each gets its p value, and that adjusted for their number (Holm).

    Of many methods that are all alike, one in twenty would else be found better or worse.
    """
    known = [[x for x in change["values"] if x is not None] for change in differences]
    values = [p_value(np.asarray(effects, float)) for effects in known]
    for change, p, adjusted in zip(differences, values, holm(values), strict=True):
        change |= {"p": p, "p_adjusted": adjusted}
        if change["decision"] in (HIGHER, LOWER) and adjusted > LEVEL:
            change["decision"] = NOT_DECIDED


def _pass_at(runs: Sequence[Done]) -> dict[str, Record]:
    """pass@k at the end by k, where more than one was measured."""
    ks = sorted({int(match[1]) for done in runs for name in done.numbers if (match := PASS_AT.fullmatch(name))})
    values = {k: [done.numbers.get(f"pass@{k}") for done in runs] for k in ks}
    return {str(k): mean_interval(known, f"pass@{k}") for k, known in values.items()} if len(ks) > 1 else {}


def _watched(logs: Sequence[Curve]) -> dict[str, Record]:
    """The mean curves of what training logged, over its steps."""
    names = dict.fromkeys(name for log in logs for _, numbers in log for name in numbers)
    curves = {name: mean_curve(logs, name) for name in names}
    return {name: {"steps": curve.pop("tokens"), **curve} for name, curve in curves.items() if curve["mean"]}


def mean_curve(curves: Sequence[Curve], measure: str) -> Record:
    """The mean over seeds of a number against the count of tokens (or steps), where all were measured.

    low, high: its t interval, within the range of the number; of fewer than PAIRS seeds, the lowest and the highest of them.
    """
    points = [[(tokens, numbers[measure]) for tokens, numbers in curve if measure in numbers] for curve in curves]
    if not all(points):
        return {"tokens": [], "mean": [], "low": [], "high": []}
    starts, ends = ([curve[i][0] for curve in points] for i in (0, -1))
    # only where every seed has points on both sides; unique leaves one point if that is a single token count
    tokens = np.unique(np.linspace(max(starts), max(max(starts), min(ends)), POINTS))
    # seeds are measured at different token counts, so every curve is interpolated at the same ones
    table = np.stack([np.interp(tokens, *np.asarray(curve, float).T) for curve in points], -1)  # (points, seeds)
    mean, low, high = interval(table)
    if len(points) < PAIRS:
        low, high = table.min(-1), table.max(-1)
    least, most = possible(measure, table.ravel().tolist())
    bounds = {"low": np.clip(low, least, most), "high": np.clip(high, least, most)}
    return {name: values.tolist() for name, values in ({"tokens": tokens, "mean": mean} | bounds).items()}


def notes(plan: Plan, rows: Sequence[Record]) -> list[str]:
    """What a reader must know to read the numbers fairly, in words."""
    trained = [row for row in rows if row["trains"]]
    return [
        *_few_seeds(plan),
        *_several(plan),
        *_at_the_edge(plan),
        *_not_told_apart(plan),
        *_selections(rows),
        *(note for row in trained[1:] for note in _unequal(row, trained[0], plan.equal)),
        *_undefined(rows),
        *_all_zero(rows),
        *_without_reward(plan),
    ]


def _few_seeds(plan: Plan) -> list[str]:
    if len(plan.seeds) >= PAIRS:
        return []
    how = "each is shown, and the intervals are those of the held-out problems, where a run has one"
    return [f"{len(plan.seeds)} seed{'s' * (len(plan.seeds) > 1)}: {how}; a difference is decided with {PAIRS} or more."]


def _several(plan: Plan) -> list[str]:
    # of fewer seeds nothing is decided
    count = len(plan.arms) - 1 if len(plan.seeds) >= PAIRS else 0
    return [f"{count} differences are decided together: each by its p value adjusted for their number (Holm)."] if count > 1 else []


def _at_the_edge(plan: Plan) -> list[str]:
    """Methods whose best rate is the lowest or the highest that was tried: beyond it may be a better one."""
    found = []
    for edge, way in ((min, "lowest"), (max, "highest")) if plan.chosen else ():
        rate = edge(plan.rates)
        if at := [name for name, chosen in plan.chosen.items() if chosen == rate and name not in plan.tied]:
            beyond = {"lowest": "lower", "highest": "higher"}[way]
            found.append(f"the {way} rate, {rate:g}, suited {', '.join(at)} best: a {beyond} one, not tried, may suit better.")
    return found


def _not_told_apart(plan: Plan) -> list[str]:
    """Methods that did equally well at several rates, as where nothing was learnt at any."""
    return [
        f"nothing told the rates {', '.join(f'{rate:g}' for rate in rates)} of {name} apart: {plan.chosen[name]:g} was taken, "
        "and suited it no better than the others."
        for name, rates in plan.tied.items()
        if name in plan.chosen
    ]


def _selections(rows: Sequence[Record]) -> list[str]:
    """What the number of a method that trains nothing is, and what its answers cost."""
    told = []
    for row in (row for row in rows if not row["trains"]):
        replies = [other["tokens_per_answer"] for other in rows if other["trains"] and other["tokens_per_answer"]]
        beside = f", where a trained policy answers with one reply of {min(replies):,.0f} or more" if replies else ""
        told.append(
            f"{row['method']} trains nothing and spends no tokens on it: its number is the {row['measure']} of the answers that it "
            f"selects from the starting policy, at {row['tokens_per_answer']:,.0f} tokens each{beside}."
        )
    return told


def _unequal(row: Record, first: Record, equal: str = TOKENS) -> list[str]:
    """Where two trained methods had not the same chance to learn."""
    found = []
    overshot = "a step is never cut, so that a small budget is overshot"
    for what, why in (
        ("tokens", overshot if equal == TOKENS else "another model learns or scores beside it, or its replies differ in length"),
        ("updates", "a method with more updates may be ahead for that alone"),
    ):
        mine, other = row[what], first[what]
        if mine and other and abs(mine - other) > UNEQUAL * other:
            on = " on the same tokens" if what == "updates" and equal == TOKENS else ""
            found.append(f"{row['method']} had {_count(mine)} {what}{on}, {first['method']} {_count(other)}: {why}.")
    return found


def _undefined(rows: Sequence[Record]) -> list[str]:
    counts = {row["method"]: sum(value is None for value in row["values"]) for row in rows}
    return [
        f"{rows[0]['measure']} is undefined in {n} of the runs of {name}; they are left out." for name, n in counts.items() if n
    ]


def _all_zero(rows: Sequence[Record]) -> list[str]:
    """That no run got a problem right, from which most methods learn nothing."""
    known = [value for row in rows for value in row["values"] if value is not None]
    if not known or any(known) or rows[0]["measure"] not in (ONE_REPLY, SELECTED):
        return []
    why = "where no reply is right there is nothing to learn from: take easier problems, a better model, or a longer --max-new"
    return [f"{rows[0]['measure']} is 0 in every run; {why}, and look at the rollouts."]


def _without_reward(plan: Plan) -> list[str]:
    """Methods that a reward of the user's own does not reach."""
    unreached = [arm.name for arm in plan.arms if plan.reward and arm.recipe.reward is None]
    return [f"{name} learns from no reward: {plan.reward} changes nothing for it." for name in unreached]


def _values(arm: Arm, plan: Plan, outcomes: Outcomes) -> list[float | None]:
    return [done.numbers.get(arm.measured_by(plan.measure)) for done in outcomes[arm.name]]


def _average(runs: Sequence[Done], name: str) -> float | None:
    """The mean of a count over runs; None where none of them has it."""
    counts = [done.numbers[name] for done in runs if done.numbers.get(name) is not None]
    return round(sum(counts) / len(counts), 1) if counts else None


def _count(number: float) -> str:
    return f"{number:,.1f}".removesuffix(".0")


def mean_interval(
    values: Sequence[float | None], name: str = "", spreads: Sequence[Sequence[float] | None] = (),
    within: tuple[float, float] | None = None,
) -> Record:  # fmt: skip
    """The mean of the values that are known, and a 95% interval within the range of the number; None where there is none.

    Of PAIRS seeds or more it is Student's; of two seeds that would run from -20 to 99 tokens. Of fewer seeds it is that of the
    held-out problems: the mean of the intervals of the runs, which seeds do not narrow, since all runs answer the same problems.
    spreads: those intervals.  within: the range; None: that of the name.  In the result, of: what the interval is over (SEEDS,
    PROBLEMS), "" where there is none.
    """
    known = [value for value in values if value is not None]
    if not known:
        return {"mean": None, "ci95": None, "of": ""}
    mean, *student = (float(x) for x in interval(np.asarray(known, float)))
    own = [spread for spread in spreads if spread is not None]
    if len(known) >= PAIRS:
        bounds, of = student, SEEDS
    elif len(own) == len(known):
        bounds, of = np.asarray(own, float).mean(0).tolist(), PROBLEMS
    else:
        return {"mean": mean, "ci95": None, "of": ""}
    least, most = within or possible(name, known)
    return {"mean": mean, "ci95": [min(max(bound, least), most) for bound in bounds], "of": of}
