"""What was compared in a league, in sentences: how often, at what cost, by which number, and which differences would be found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewardlab.comparisons.levels import change
from rewardlab.comparisons.standings import detectable, independent, noise

Record = Mapping[str, Any]
OVER = 1.1
"""Times the updates of a league, or the tokens of its baseline, above which a member is told to have made or spent more."""


def facts(record: Record) -> str:
    guard, outcome = record["guard"], record["outcome"]
    kept = f" A method is better only if {guard['says']} are {bound(guard)} the baseline's." if guard else ""
    trained = any(row["rate"] for world in record["worlds"] for row in world["rows"])
    alike = (
        f", {spent(record)}, each at the learning rate chosen for it{at_one_rate(record)}" if trained else ", nothing is trained"
    )
    return (
        f"{len(record['members'])} methods, {pairs_of(record)}{alike}. Decided by {outcome['says']}, "
        f"{outcome['better']} is better; a difference of {matters(outcome)} would matter.{kept}{sees(record)} {ran(record)}"
    )


def sees(record: Record) -> str:
    """The smallest differences detected with 80% power, world by world, as a sentence; "" where no noise between seeds is known."""
    known = {}
    for world in record["worlds"]:
        rows, starts = world["rows"], world.get("starts", 1)
        if world["fit"] and not by_problem(world) and (spread := noise(rows, record["baseline"], starts)):
            known[world["name"]] = detectable(spread, independent(len(rows[0]["values"]), starts), len(rows) - 1)
    told = ", ".join(f"{amount(value, record['outcome'])} ({name})" for name, value in known.items())
    return f" Smallest difference detected with 80% power: {told}." if known else ""


def ran(record: Record) -> str:
    """When its worlds were run, and which were not."""
    days = sorted({world.get("when", record["when"])[:10] for world in record["worlds"]})
    unrun = f" Not run yet: {'; '.join(record['unrun'])}." if record.get("unrun") else ""
    return f"Run {' to '.join(dict.fromkeys((days[0], days[-1])))}.{unrun}"


def at_one_rate(record: Record) -> str:
    """In which worlds all members learnt at one rate, which was not chosen among several, in brackets."""
    rates = {world["name"]: [row["rates"] for row in world["rows"] if row["rates"]] for world in record["worlds"]}
    same = {name: found[0][0][0] for name, found in rates.items() if found and all(len(tried) == 1 for tried in found)}
    told = ", ".join(f'in "{name}" all at {rate:g}' for name, rate in same.items())
    return f" ({told})" if told else ""


def spent(record: Record) -> str:
    """What every run of training may spend."""
    budgets = [budget for world in record["worlds"] if (budget := world.get("budget"))]
    if not budgets:
        steps = " or ".join(map(str, sorted({world["steps"] for world in record["worlds"]})))
        each = {updates_of_a_step(world, record["baseline"]) for world in record["worlds"]}
        size = f"steps of {each.pop()} updates" if len(each) == 1 and each != {1} else "updates"
        return f"{steps} {size} of equal size{beside_them(record)}"
    return " or ".join(f"{budget:,}" for budget in sorted(set(budgets))) + " tokens of all models together"


def beside_them(record: Record) -> str:
    """Of members that update more often, as their first phases or further models do: how often, in brackets."""
    found: dict[str, list[float]] = {}
    for world in record["worlds"]:
        most = OVER * world["steps"] * updates_of_a_step(world, record["baseline"])
        for row in world["rows"]:
            if row["updates"] and row["updates"] > most:
                found.setdefault(row["member"], []).append(row["updates"])
    each = (f"{name} {span_of(sorted(values))}" for name, values in found.items())
    return f" (with first phases and replays: {', '.join(each)})" if found else ""


def updates_of_a_step(world: Record, baseline: str) -> int:
    """How many updates the baseline makes in a step, one for each minibatch; 1 where it makes others in first phases."""
    updates = next((row["updates"] for row in world["rows"] if row["member"] == baseline), None) or 0
    return int(updates / world["steps"]) if updates >= world["steps"] and updates % world["steps"] == 0 else 1


def span_of(values: Sequence[float]) -> str:
    low, high = (f"{value:.0f}" for value in (values[0], values[-1]))
    return low if low == high else f"{low} to {high}"


def pairs_of(record: Record) -> str:
    """By how much members are compared."""
    if any(by_problem(world) for world in record["worlds"]):
        counts = [world["pairs"] for world in record["worlds"]]
        most = f"{min(counts)} to {max(counts)}" if len(set(counts)) > 1 else f"{counts[0]}"
        return f"compared problem by problem on {most} problems with recorded replies"
    seeds = len(record["seeds"])
    starts = {world["name"]: world.get("starts", 1) for world in record["worlds"]}
    fewer = {name: some for name, some in starts.items() if independent(seeds, some) < seeds}
    met = {world["name"]: world["pairs"] for world in record["worlds"] if world.get("pairs", seeds) < seeds}
    notes = [f'{some} in "{name}"' for name, some in met.items()]
    if fewer:
        from_few = ", ".join(f"in {name} from {some}" for name, some in fewer.items())
        notes.append(f"{from_few} initial policies, which count as that many pairs")
    return f"{seeds} seeds each" + (f" ({', '.join(notes)})" if notes else "")


def by_problem(world: Record) -> bool:
    """Whether members are paired by the problems of a world: where replies were recorded, and seeds change nothing."""
    return bool(world.get("paired") == "problems")


def matters(outcome: Record) -> str:
    """The smallest difference that would matter, as people say it."""
    return amount(outcome["margin"], outcome)


def amount(value: float, outcome: Record) -> str:
    """A difference without its sign."""
    return change(value, {**outcome, "better": "higher"}).removeprefix("+")


def bound(guard: Record) -> str:
    below = "at_least" in guard
    most = abs(guard["at_least"] if below else guard["at_most"])
    unit = guard["unit"].removesuffix("s") if most == 1 else guard["unit"]
    amount = f"{100 * most:g} points" if guard["scale"] == "share" else f"{most:g} {unit}".rstrip()
    return f"at most {amount} {'below' if below else 'above'}"
