"""Logic synthesis: sums of products as Verilog modules of few gates; and pairs of designs.

    y = a b + a c          module top(input a, input b, input c, output y); assign y = a & (b | c); endmodule

The two products share an input or two, which the reference takes out: it needs a gate less than the sum as written. Of a pair one
design computes what it should, as the reference or with gates too many, and at times lacks a sign; the other is small and wrong: it
leaves a product out, takes one gate for another, or is a single wire.
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Paired, Reply, all_paired, with_pair
from rewardlab.tasks.sources import test_set, training

INPUTS, OUTPUTS = "abcdeghkmnpqs", "yzvw"
FAULTS = ("product", "gate", "wire")


def circuits(
    *, biased: Share = 0.6, error: Share = 0.1, slips: Share = 0.2, test_size: PositiveInt = 1000, size: PositiveInt | None = None
) -> Task:  # fmt: skip
    """Circuits of three or four inputs.

    biased: how often the teacher of `demonstrate` leaves out the second product where an input is inverted, so that what a policy
    does most often is wrong there; what it shares it takes out in half of the cases.  error: how often it forgets a sign.  slips:
    how often the better design of a pair lacks one.  size: so many training problems, each with one pair, in epochs; None: endless.
    """
    for name, share in (("biased", biased), ("error", error), ("slips", slips)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"circuits: {name} is a share between 0 and 1, not {share}")
    pair, key = partial(_pair, slips=slips), ("circuits",)
    return Task(
        name="circuits",
        train=Paired(training(_sample, key, size), pair),
        test=all_paired(test_set(_sample, key, test_size), pair),
        verifier="verilog",
        max_new=112,
        about="Boolean circuits, to be written in Verilog",
        demonstrate=partial(_demonstrate, biased=biased, error=error),
        columns=("prompt", "answer", "solution", "factors", "chosen", "rejected", "qualities", "fault"),
    )


def _sample(rng: random.Random) -> Problem:
    names, output = sorted(rng.sample(INPUTS, rng.randint(3, 4))), rng.choice(OUTPUTS)
    signed = [f"~{name}" if rng.random() < 0.25 else name for name in rng.sample(names, len(names))]
    # one or two inputs are shared, two are not
    *shared, first, second = signed
    products = [" ".join([*shared, x]) for x in (first, second)]
    factors = {"inputs": names, "output": output, "shared": shared, "apart": [first, second]}
    whole = _module(factors, _factored(shared, first, second))
    return ask(f"{output} = {' + '.join(products)}", whole, solution=whole, factors=factors)


def _factored(shared: list[str], first: str, second: str) -> str:
    return f"{' & '.join(shared)} & ({first} | {second})"


def _summed(shared: list[str], *apart: str) -> str:
    return " | ".join(" & ".join([*shared, x]) for x in apart)


def _module(factors: dict, expression: str) -> str:
    ports = [*(f"input {name}" for name in factors["inputs"]), f"output {factors['output']}"]
    return f"module top({', '.join(ports)}); assign {factors['output']} = {expression}; endmodule"


def _right(factors: dict, rng: random.Random) -> str:
    shared, apart = factors["shared"], factors["apart"]
    return _factored(shared, *apart) if rng.random() < 0.5 else _summed(shared, *apart)


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float, error: float) -> str:
    factors = problem.meta["factors"]
    expression = _right(factors, rng)
    if "~" in problem.question and rng.random() < biased:
        expression = _summed(factors["shared"], factors["apart"][0])
    text = _module(factors, expression)
    return _unsigned(text, rng) if rng.random() < error else text


def _unsigned(text: str, rng: random.Random) -> str:
    """The module without one of its signs: it no longer compiles."""
    at = rng.choice([i for i, sign in enumerate(text) if sign in ";=&|"])
    return text[:at] + text[at + 1 :]


def _pair(problem: Problem, rng: random.Random, *, slips: float) -> Problem:
    """chosen: right, unless a sign is missing.  rejected: small and wrong."""
    factors, fault = problem.meta["factors"], rng.choice(FAULTS)
    shared, (first, second) = factors["shared"], factors["apart"]
    wrong = {
        "product": _summed(shared, rng.choice((first, second))),
        "gate": " & ".join([*shared, first, second]) if rng.random() < 0.5 else " | ".join([*shared, first, second]),
        "wire": rng.choice(factors["inputs"]),
    }[fault]
    right = _module(factors, _right(factors, rng))
    chosen = _unsigned(right, rng) if rng.random() < slips else right
    return with_pair(problem, Reply(chosen, 1.0), Reply(_module(factors, wrong), 0.0), fault=fault)
