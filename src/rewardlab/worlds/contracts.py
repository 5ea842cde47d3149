"""Formal specification: contracts for small methods, and pairs of a meaningful and a vacuous contract.

    method m(x: int) returns (r: int) { assert x >= 4; r := x - 3; }
    requires x >= 4
    ensures r == x - 3

The method asserts what it needs, and computes its result directly or by a choice. An honest contract may say only a part of that,
or be wrong in a number; an empty one is kept by any method: it requires what never holds, or hardly ever, or ensures what always
holds. The empty one that ensures `true` outright is not among them: it is told by looking.
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Paired, Reply, all_paired, with_pair
from rewardlab.tasks.sources import test_set, training

INPUTS = ("x", "y", "n", "k")
RESULTS = ("r", "z")
NUMBERS = range(1, 20)
SIGNS = {">=": "<", "<=": ">", "<": ">=", ">": "<="}
"""Comparisons, and what holds where they do not."""
FAULTS = ("never", "hardly", "always", "weak")


def contracts(
    *, biased: Share = 0.6, slips: Share = 0.2, test_size: PositiveInt = 1000, size: PositiveInt | None = None
) -> Task:  # fmt: skip
    """Methods of one or two inputs.

    biased: how often the teacher of `demonstrate` makes each of two mistakes where it can: it leaves out what the method requires,
    and of a choice the second case.  slips: how often the better contract of a pair says a part only, and how often a number of it
    is wrong.  size: so many training problems, each with one pair, in epochs; None: endless.
    """
    for name, share in (("biased", biased), ("slips", slips)):
        if not 0 <= share <= 0.5 + 0.5 * (name == "biased"):
            raise RewardlabError(f"contracts: {name} is a share, from 0 to {1 if name == 'biased' else 0.5}, not {share}")
    pair, key = partial(_pair, slips=slips), ("contracts",)
    return Task(
        name="contracts",
        train=Paired(training(_sample, key, size), pair),
        test=all_paired(test_set(_sample, key, test_size), pair),
        verifier="method_contract",
        max_new=96,
        about="small methods, to be given what they require and ensure",
        demonstrate=partial(_demonstrate, biased=biased),
        columns=("prompt", "answer", "solution", "clauses", "chosen", "rejected", "qualities", "fault"),
    )


def _sample(rng: random.Random) -> Problem:
    inputs, result = sorted(rng.sample(INPUTS, rng.randint(1, 2))), rng.choice(RESULTS)
    chooses = rng.random() < 0.5
    # a bound on the one input that a choice is about would leave a case that never comes
    bounded = rng.random() < 0.6 and not (chooses and len(inputs) == 1)
    needed = f"{rng.choice(inputs)} {rng.choice(tuple(SIGNS)[:2])} {rng.choice(NUMBERS)}" if bounded else ""
    sides = [_side(rng, inputs) for _ in range(2)]
    if chooses:
        sign, other = rng.choice(tuple(SIGNS)[2:]), inputs[1] if len(inputs) > 1 else rng.choice(NUMBERS)
        cases = [f"{inputs[0]} {s} {other}" for s in (sign, SIGNS[sign])]
        code = f"if {cases[0]} {{ {result} := {sides[0]}; }} else {{ {result} := {sides[1]}; }}"
        ensured = [f"{case} ==> {result} == {side}" for case, side in zip(cases, sides, strict=True)]
    else:
        code, ensured = f"{result} := {sides[0]};", [f"{result} == {sides[0]}"]
    head = f"method m({', '.join(f'{name}: int' for name in inputs)}) returns ({result}: int)"
    body = f"{{ {f'assert {needed}; ' if needed else ''}{code} }}"
    clauses = {"requires": [needed] if needed else [], "ensures": ensured}
    said = write(**clauses)
    return ask(f"{head} {body}", f"{head}\n{said}\n{body}", solution=said, clauses=clauses)


def _side(rng: random.Random, inputs: list[str]) -> str:
    return f"{rng.choice(inputs)} {rng.choice('+-')} {rng.choice(NUMBERS)}"


def write(requires: list[str], ensures: list[str]) -> str:
    return "\n".join([*(f"requires {x}" for x in requires), *(f"ensures {x}" for x in ensures)])


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float) -> str:
    requires, ensures = (list(problem.meta["clauses"][name]) for name in ("requires", "ensures"))
    slips = [rng.random() < biased for _ in range(2)]
    return write([] if slips[0] else requires, ensures[:1] if slips[1] else ensures)


def _pair(problem: Problem, rng: random.Random, *, slips: float) -> Problem:
    """chosen: honest, whole or with a slip.  rejected: empty, by one of the faults."""
    requires, ensures = (list(problem.meta["clauses"][name]) for name in ("requires", "ensures"))
    result = problem.question.partition("returns (")[2].partition(":")[0]
    fault = rng.choice(FAULTS)
    of = requires[0].split()[0] if requires else problem.question.partition("(")[2].partition(":")[0]
    empty = {
        "never": write([f"{of} > {of} + 1"], ensures),
        "hardly": write([*requires, f"{of} == {rng.choice(NUMBERS)}"], ensures),
        "always": write(requires, [f"{result} <= {result} + {rng.choice(NUMBERS)}"]),
        "weak": write(requires, [f"{result} == 0 || {result} != 0"]),
    }[fault]
    luck = rng.random()
    if luck < slips:
        ensures = [_partly(ensures, result)]
    elif luck < 2 * slips:
        ensures[-1] = f"{ensures[-1]} + {rng.choice(NUMBERS)}"
    return with_pair(problem, Reply(write(requires, ensures), 1.0), Reply(empty, 0.0), fault=fault)


def _partly(ensures: list[str], result: str) -> str:
    """The first case of a choice; or a bound in the place of a value."""
    return ensures[0] if len(ensures) > 1 else ensures[0].replace(f"{result} ==", f"{result} >=")
