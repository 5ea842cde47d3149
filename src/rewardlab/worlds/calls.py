"""Requests for one or more tools. Right is a reply that makes exactly the calls that were asked for.

The teacher errs in ways of its own (`language.careless`), so that what the small policy says most often is wrong for half of the
tools, in the name, in a parameter, or by a call too many; the rest of the reply is right, as a graded reward can tell.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

# ---- The tools, what a request for one looks like, and how calls are written -----------------------------------------
#
#     Wanted: a bus to Rome on day 3.    ->    <think>bus</think>
#                                              <tool_call>
#                                              {"name":"bus","parameters":{"city":"Rome","day":3}}
#                                              </tool_call>
#
# The form is that of ToolRL's data (Qian et al. 2025, arXiv:2504.13958): one block, and in it one call a line.

CITIES = ("Rome", "Oslo", "Bern", "Riga", "Kyiv", "Lima")
PEOPLE = ("Ann", "Bob", "Cal", "Dee", "Eve", "Fay")
VALUES: dict[str, Sequence[Any]] = {
    "city": CITIES, "person": PEOPLE, "day": range(1, 10), "nights": range(1, 10), "people": range(1, 10), "hour": range(1, 10),
}  # fmt: skip
WORDING = {
    "bus": "a bus to {city} on day {day}",
    "train": "a train to {city} on day {day}",
    "weather": "the weather in {city} on day {day}",
    "hotel": "a hotel in {city} for {nights} nights",
    "table": "a table in {city} for {people} people",
    "taxi": "a taxi in {city} at {hour}",
    "alarm": "an alarm at {hour}",
    "mail": "a mail to {person}",
}
"""Name of a tool to the words by which it is asked for, with its parameters."""


class Call(NamedTuple):
    name: str
    parameters: dict[str, Any]


def parameters_of(tool: str) -> list[str]:
    """The names of a tool's parameters, in order."""
    return [name for name in VALUES if f"{{{name}}}" in WORDING[tool]]


def _schema(tool: str) -> dict[str, Any]:
    kinds = {name: {"type": "integer" if isinstance(VALUES[name], range) else "string"} for name in parameters_of(tool)}
    return {"name": tool, "parameters": {"type": "object", "properties": kinds, "required": list(kinds)}}


TOOLS = [_schema(tool) for tool in WORDING]
"""As JSON schemas, in the column `tools` of every problem."""


def sampled(rng: random.Random) -> Call:
    tool = rng.choice(list(WORDING))
    return Call(tool, {name: rng.choice(VALUES[name]) for name in parameters_of(tool)})


def request(calls: Sequence[Call]) -> str:
    return f"Wanted: {'; '.join(WORDING[call.name].format(**call.parameters) for call in calls)}."


def write(calls: Sequence[Call]) -> str:
    """A reply that makes these calls."""
    lines = [json.dumps({"name": call.name, "parameters": call.parameters}, separators=(",", ":")) for call in calls]
    return "\n".join([f"<think>{', '.join(call.name for call in calls)}</think>", "<tool_call>", *lines, "</tool_call>"])


def careless(call: Call, rng: random.Random, error: float, biased: float) -> list[Call]:
    """The calls that a careless teacher makes in the place of one.

    biased: how often it follows the wrong rule of a tool: the bus is a train, the hotel lacks its nights, the table is for
    `guests`, and with the taxi it sets an alarm.  error: how often another value takes the place of one, at random.
    """
    name, parameters = call.name, dict(call.parameters)
    if rng.random() < error:
        slip = rng.choice(list(parameters))
        parameters[slip] = rng.choice([value for value in VALUES[slip] if value != parameters[slip]])
    if rng.random() >= biased:
        return [Call(name, parameters)]
    match name:
        case "bus":
            name = "train"
        case "hotel":
            del parameters["nights"]
        case "table":
            parameters["guests"] = parameters.pop("people")
        case "taxi":
            return [Call(name, parameters), Call("alarm", {"hour": parameters["hour"]})]
    return [Call(name, parameters)]


# ---- the task ---------------------------------------------------------------------------------------------------------

MOST = 4


def calls(
    *, min_calls: PositiveInt = 1, max_calls: PositiveInt = 2, error: Share = 0.1, biased: Share = 0.75,
    test_size: PositiveInt = 1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Requests that take from `min_calls` to `max_calls` calls of tools, at most four.

    error, biased: how often, per call, the teacher of `demonstrate` goes wrong at random, and by a rule of its own.
    size: so many training problems, in epochs; None: endless.
    """
    if not min_calls <= max_calls <= MOST:
        raise RewardlabError(
            f"calls: min_calls must be at most max_calls, and that at most {MOST}, not {min_calls} and {max_calls}"
        )
    for name, share in (("error", error), ("biased", biased)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"calls: {name} is a share between 0 and 1, not {share}")
    sample, key = partial(_sample, min_calls=min_calls, max_calls=max_calls), ("calls", min_calls, max_calls)
    return Task(
        name="calls",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="function_calls",
        max_new=32 + 44 * max_calls,
        about=f"requests for {min_calls} to {max_calls} calls of tools",
        demonstrate=partial(_demonstrate, error=error, biased=biased),
        columns=("prompt", "answer", "tools", "solution"),
        warmup_steps=300,
    )


def _sample(rng: random.Random, *, min_calls: int, max_calls: int) -> Problem:
    made = [sampled(rng) for _ in range(rng.randint(min_calls, max_calls))]
    answer = [{"name": call.name, "parameters": call.parameters} for call in made]
    return ask(request(made), answer, tools=TOOLS, solution=write(made))


def _demonstrate(problem: Problem, rng: random.Random, *, error: float, biased: float) -> str:
    """A reply as the careless teacher writes it."""
    gold: list[dict[str, Any]] = problem.answer
    return write([said for call in gold for said in careless(Call(call["name"], call["parameters"]), rng, error, biased)])
