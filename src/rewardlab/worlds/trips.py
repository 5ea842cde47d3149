"""Travel planning: cities and transport of a short trip within a budget. Many plans may be right, so the verifier checks
constraints. Many plans may be right, so the verifier counts.

    2 days, budget 9, see Bern, no bus. Oslo 4, Bern 6, Riga 3, Rome 8.
    [{"city":"Bern","by":"train","cost":6},{"city":"Riga","by":"train","cost":3}]

The teacher tends to overlook some of what is asked for: it takes cities as they are listed, whatever they cost, and the bus.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from rewardlab.core import Problem, Score, Task, Trajectory, ask
from rewardlab.data.values import list_of, map_of
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.text import strict_json
from rewardlab.text.answers import after_thinking
from rewardlab.text.blocks import last_block

# ----------------------------------------------------------------------------------------------------------------------
#
# Plans as records, and the constraints that they are to keep: data, so that a user's own plans can be checked by them too.
#
#     plan          [{"city":"Oslo","by":"train","cost":4}, ...]
#     constraints   [{"category":"hard","rule":"at_most","field":"cost","value":14}, ...]
#
# A rule says what must hold of a field over all records of the plan: see RULES.

Record = Mapping[str, Any]
KINDS: dict[str, Callable[[Any], bool]] = {
    "text": lambda x: isinstance(x, str),
    "number": lambda x: isinstance(x, int | float) and not isinstance(x, bool),
}
"""What a field of every record holds, in the column `fields`: {"city": "text", "cost": "number"}."""


def _column(plan: Sequence[Record], rule: Record) -> list[Any]:
    return [record[rule["field"]] for record in plan]


RULES: dict[str, Callable[[Sequence[Record], Record], bool]] = {
    "count": lambda plan, rule: len(plan) == rule["value"],
    "among": lambda plan, rule: all(x in rule["value"] for x in _column(plan, rule)),
    "distinct": lambda plan, rule: len({strict_json.canonical(x) for x in _column(plan, rule)}) == len(plan),
    "at_most": lambda plan, rule: sum(_column(plan, rule)) <= rule["value"],
    "includes": lambda plan, rule: rule["value"] in _column(plan, rule),
    "excludes": lambda plan, rule: rule["value"] not in _column(plan, rule),
    # the value of a field is what the table says of another field
    "as_listed": lambda plan, rule: all(r[rule["field"]] == rule["value"].get(r[rule["by"]]) for r in plan),
}


CATEGORIES = ("commonsense", "hard")


def unusable(fields: Mapping[str, str], constraints: Sequence[Record]) -> str:
    """What is wrong with these columns of a problem, "" if nothing is: a constraint that no one knows must not count as kept."""
    for name, kind in fields.items():
        if kind not in KINDS:
            return f"the field {name!r} is of no known kind ({', '.join(KINDS)}): {kind!r}"
    for rule in constraints:
        if rule["category"] not in CATEGORIES:
            return f"the category of a constraint is one of {', '.join(CATEGORIES)}, not {rule['category']!r}"
        if rule["rule"] not in RULES:
            return f"the rule of a constraint is one of {', '.join(RULES)}, not {rule['rule']!r}"
        if missing := [rule[key] for key in ("field", "by") if key in rule and rule[key] not in fields]:
            return f"a constraint is about {missing[0]!r}, which is none of the fields"
    return ""


def read_plan(reply: str, fields: Mapping[str, str]) -> list[Record] | None:
    """The records of a plan, as JSON: the last ``` block, or all that stands in the last <answer> or, without one, in the reply.
    None unless each has just these fields.
    """
    text = after_thinking(reply).rpartition("<answer>")[2].partition("</answer>")[0]
    block = last_block(text, "json", "")
    try:
        plan = strict_json.parse(text.strip() if block is None else block)
    except ValueError:
        return None
    if not isinstance(plan, list) or not all(isinstance(record, dict) and record.keys() == fields.keys() for record in plan):
        return None
    fits = all(KINDS[kind](record[field]) for record in plan for field, kind in fields.items())
    return plan if fits and plan else None


def kept(plan: Sequence[Record], constraints: Sequence[Record], category: str) -> list[bool]:
    """Whether the plan keeps each constraint of a category, in their order. Raises KeyError for a rule or field that is unknown."""
    return [RULES[rule["rule"]](plan, rule) for rule in constraints if rule["category"] == category]


# ---- the task ---------------------------------------------------------------------------------------------------------

CITIES = ("Rome", "Oslo", "Bern", "Riga", "Kyiv", "Lima")
WAYS = ("bus", "train", "ship")
FIELDS = {"city": "text", "by": "text", "cost": "number"}
FEWEST, MOST, LISTED, SLACK = 2, 3, 4, 1


def trips(
    *, error: Share = 0.1, biased: Share = 0.75, test_size: PositiveInt = 1000, size: PositiveInt | None = None
) -> Task:  # fmt: skip
    """Trips of two or three days among four cities.

    error, biased: how often the teacher of `demonstrate` writes a wrong price, per day, and how often it overlooks each of three
    things: the budget, the city to be seen, and the way that is excluded.
    size: so many training problems, in epochs; None: endless.
    """
    for name, share in (("error", error), ("biased", biased)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"trips: {name} is a share between 0 and 1, not {share}")
    return Task(
        name="trips",
        train=training(_sample, ("trips",), size),
        test=test_set(_sample, ("trips",), test_size),
        verifier="plan_passes",
        max_new=40 * MOST,
        about="trips of a few days within a budget and other constraints",
        demonstrate=partial(_demonstrate, error=error, biased=biased),
        columns=("prompt", "fields", "constraints", "solution", "wanted"),
        warmup_steps=300,
        window=(0.05, 0.6),
    )


def _sample(rng: random.Random) -> Problem:
    days, cities = rng.randint(FEWEST, MOST), rng.sample(CITIES, LISTED)
    prices = {city: rng.randint(1, 9) for city in cities}
    seen, excluded = rng.choice(cities), rng.choice(WAYS)
    best = _cheapest(prices, seen, days)
    budget = sum(prices[city] for city in best) + rng.randint(0, SLACK)
    listed = ", ".join(f"{city} {price}" for city, price in prices.items())
    return ask(
        f"{days} days, budget {budget}, see {seen}, no {excluded}. {listed}.", None, fields=FIELDS,
        constraints=_constraints(days, prices, budget, seen, excluded),
        wanted={"days": days, "prices": prices, "seen": seen, "excluded": excluded},
        solution=write([(city, _way(excluded), prices[city]) for city in best]),
    )  # fmt: skip


def _constraints(days: int, prices: Mapping[str, int], budget: int, seen: str, excluded: str) -> list[dict[str, Any]]:
    """As in TravelPlanner, of common sense and hard ones, which the user asks for."""
    commonsense: list[dict[str, Any]] = [
        {"rule": "count", "value": days},
        {"rule": "among", "field": "city", "value": list(prices)},
        {"rule": "distinct", "field": "city"},
        {"rule": "as_listed", "field": "cost", "by": "city", "value": dict(prices)},
        {"rule": "among", "field": "by", "value": list(WAYS)},
    ]
    hard: list[dict[str, Any]] = [
        {"rule": "at_most", "field": "cost", "value": budget},
        {"rule": "includes", "field": "city", "value": seen},
        {"rule": "excludes", "field": "by", "value": excluded},
    ]
    return [{"category": "commonsense", **c} for c in commonsense] + [{"category": "hard", **c} for c in hard]


def _cheapest(prices: Mapping[str, int], seen: str, days: int) -> list[str]:
    """The city to be seen, and after it the cheapest others, in the order of their prices."""
    others = sorted((city for city in prices if city != seen), key=prices.__getitem__)
    return [seen, *others[: days - 1]]


def _way(excluded: str) -> str:
    return next(way for way in WAYS if way != excluded)


def write(days: Sequence[tuple[str, str, int]]) -> str:
    return json.dumps([dict(zip(FIELDS, day, strict=True)) for day in days], separators=(",", ":"))


def _demonstrate(problem: Problem, rng: random.Random, *, error: float, biased: float) -> str:
    wanted = problem.meta["wanted"]
    prices, seen = wanted["prices"], wanted["seen"]
    # each is overlooked on its own; a city that need not be seen is only the first on the list
    budget, sight, way = (rng.random() < biased for _ in range(3))
    first = next(iter(prices)) if sight else seen
    others = [city for city in prices if city != first]
    cities = [first, *others[: wanted["days"] - 1]] if budget else _cheapest(prices, first, wanted["days"])
    by = WAYS[0] if way else _way(wanted["excluded"])
    costs = [
        rng.choice([x for x in range(1, 10) if x != prices[city]]) if rng.random() < error else prices[city] for city in cities
    ]
    return write([(city, by, cost) for city, cost in zip(cities, costs, strict=True)])


# ----------------------------------------------------------------------------------------------------------------------
#
# Rewards for plans: their schema, the constraints of a category one by one or all at once, and everything together.


def _judged(trajectory: Trajectory, score: Callable[[Sequence[Record], Sequence[Record]], float]) -> Score:
    """The score of the reply's plan under the problem's constraints; 0 without a plan."""
    meta = trajectory.problem.meta
    fields, constraints = map_of(meta.get("fields")), list_of(meta.get("constraints"))
    if fields is None or constraints is None:
        return Score(None, why="the problem has no columns `fields` and `constraints`")
    try:
        # before the reply is looked at: a policy that writes no plans yet is to be told too
        if wrong := unusable(fields, constraints):
            return Score(None, why=wrong)
        plan = read_plan(trajectory.reply, fields)
        return Score(0.0, why="no plan of these fields") if plan is None else Score(score(plan, constraints))
    except (KeyError, TypeError, AttributeError) as problem:
        return Score(None, why=f"a field or constraint of the problem cannot be used: {problem!r}")


@reward
def plan_schema(trajectory: Trajectory) -> Score:
    """1 for a JSON list of records with the fields that the problem names in its column `fields`, and no others."""
    return _judged(trajectory, lambda plan, constraints: 1.0)


@reward
def plan_micro(trajectory: Trajectory, *, category: Literal["commonsense", "hard"]) -> Score:
    """The share of a category's constraints that the plan meets; 1 where there are none, 0 without a plan."""

    def share(plan: Sequence[Record], constraints: Sequence[Record]) -> float:
        found = kept(plan, constraints, category)
        return sum(found) / len(found) if found else 1.0

    return _judged(trajectory, share)


@reward
def plan_macro(trajectory: Trajectory, *, category: Literal["commonsense", "hard"]) -> Score:
    """1 for a plan that keeps all constraints of a category."""
    return _judged(trajectory, lambda plan, constraints: float(all(kept(plan, constraints, category))))


@reward
def plan_passes(trajectory: Trajectory) -> Score:
    """1 for a plan that keeps all constraints."""
    return _judged(trajectory, lambda plan, constraints: float(all(all(kept(plan, constraints, c)) for c in CATEGORIES)))
