"""Two-hop questions with documents, and pairs of traces: a faithful one with slips, and a right answer with unfaithful reasoning.

    Who is the boss of the friend of Ann?
    [1] The friend of Ann is Bob.  [2] The boss of Ann is Dee.  [3] The boss of Bob is Cal. ...

Both traces of a pair have the form, and the right answer. The faithful one may list a document too many, or cite a wrong one in one
place. The other one has the list that is wanted, and reasons by one of the faults: a step is invented; it cites documents outside
of its list; its steps lead to another name than its answer; it cites nothing; or it plans nothing and leaves a hop out.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Paired, Reply, all_paired, with_pair
from rewardlab.tasks.sources import test_set, training
from rewardlab.worlds.facts import NAMES, RELATIONS

FAULTS = ("invented", "outside", "leap", "bare", "skipped")


class Hop(NamedTuple):
    """said: the name at which the hop ends.  doc: the number that is cited for it; None: nothing is."""

    said: str
    doc: int | None


def traces(
    *, slips: Share = 0.5, error: Share = 0.4, test_size: PositiveInt = 1000, size: PositiveInt | None = None
) -> Task:  # fmt: skip
    """Two hops through six documents.

    slips: how often the faithful trace of a pair has a slip.  error: how often the teacher of `demonstrate` reads a wrong document.
    size: so many training problems, each with one pair, in epochs; None: endless.
    """
    for name, share in (("slips", slips), ("error", error)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"traces: {name} is a share between 0 and 1, not {share}")
    pair, key = partial(_pair, slips=slips), ("traces",)
    return Task(
        name="traces",
        train=Paired(training(_sample, key, size), pair),
        test=all_paired(test_set(_sample, key, test_size), pair),
        verifier="tagged_answer",
        max_new=160,
        about="questions over numbered documents, answered with a plan, citations and reasons",
        demonstrate=partial(_demonstrate, error=error),
        columns=(
            "prompt",
            "answer",
            "documents",
            "supporting",
            "hops",
            "wrong",
            "solution",
            "chosen",
            "rejected",
            "qualities",
            "fault",
        ),
    )


def _sample(rng: random.Random) -> Problem:
    a, b, c, *others = rng.sample(NAMES, 7)
    first, second = rng.choice(RELATIONS), rng.choice(RELATIONS)
    elsewhere = [rng.choice([r for r in RELATIONS if r != relation]) for relation in (first, second)]
    # beside the chain: something else of the same two people, and the same of two other people
    facts = [(a, first, b), (b, second, c), (a, elsewhere[0], others[0]), (b, elsewhere[1], others[1])]
    facts += [(others[2], first, others[3]), (others[3], second, others[2])]
    order = rng.sample(range(len(facts)), len(facts))
    documents = [f"The {facts[i][1]} of {facts[i][0]} is {facts[i][2]}." for i in order]
    place = [order.index(i) + 1 for i in range(len(facts))]
    hops = [[first, a, b, place[0]], [second, b, c, place[1]]]
    wrong = [[facts[i][2], place[i]] for i in (2, 3, 4, 5)]
    lines = "\n".join(f"[{i}] {text}" for i, text in enumerate(documents, 1))
    meta: dict[str, Any] = {"documents": documents, "supporting": sorted(place[:2]), "hops": hops, "wrong": wrong}
    solution = write(_plan(hops), sorted(place[:2]), [Hop(b, place[0]), Hop(c, place[1])], c)
    return ask(f"Who is the {second} of the {first} of {a}?\n{lines}", c, solution=solution, **meta)


def _plan(hops: Sequence[Sequence]) -> list[str]:
    (first, person, *_), (second, *_) = hops
    return [f"{first} of {person}", f"{second} of [Answer1]"]


def write(plan: Sequence[str], receipt: Sequence[int], hops: Sequence[Hop], answer: str) -> str:
    """A trace. receipt: the documents that it lists."""
    asked = "\n".join(f"Subquestion{i}: {text}" for i, text in enumerate(plan, 1))
    said = [f"{hop.said}." + ("" if hop.doc is None else f" Evidence: doc [{hop.doc}]") for hop in hops]
    reasons = "\n".join(f"Subquestion{i}: {text}" for i, text in enumerate(said, 1))
    docs = sorted({hop.doc for hop in hops if hop.doc is not None})
    final = f"Final: Therefore the answer is {answer}" + (f" (supported by docs {docs})." if docs else ".")
    return (
        f"<plan>\n{asked}\n</plan>\n<gold_docs>{list(receipt)}</gold_docs>\n"
        f"<reason>\n{reasons}\n{final}\n</reason>\n<answer>{answer}</answer>"
    )


def _chain(problem: Problem) -> list[Hop]:
    return [Hop(said, doc) for _, _, said, doc in problem.meta["hops"]]


def _demonstrate(problem: Problem, rng: random.Random, *, error: float) -> str:
    """What follows from the documents that a careless reader reads."""
    chain, wrong = _chain(problem), [Hop(*pair) for pair in problem.meta["wrong"]]
    if rng.random() < error:
        at = rng.randrange(2)
        chain[at] = wrong[at]
    return write(_plan(problem.meta["hops"]), sorted({hop.doc for hop in chain if hop.doc}), chain, chain[-1].said)


def _pair(problem: Problem, rng: random.Random, *, slips: float) -> Problem:
    """chosen: faithful, with a slip in a share of cases.  rejected: the right answer by one of the faults."""
    fault = rng.choice(FAULTS)
    chosen = _faithful(problem, rng) if rng.random() < slips else problem.meta["solution"]
    return with_pair(problem, Reply(chosen, 1.0), Reply(_unfaithful(problem, fault, rng), 0.0), fault=fault)


def _faithful(problem: Problem, rng: random.Random) -> str:
    """The solution, with a document too many in the list or a wrong one cited in one place."""
    chain, receipt = _chain(problem), list(problem.meta["supporting"])
    _, other = rng.choice(problem.meta["wrong"])
    if rng.random() < 0.5:
        receipt = sorted({*receipt, other})
    else:
        at = rng.randrange(2)
        chain[at] = chain[at]._replace(doc=chain[1 - at].doc)
    return write(_plan(problem.meta["hops"]), receipt, chain, str(problem.answer))


def _unfaithful(problem: Problem, fault: str, rng: random.Random) -> str:
    (first, second), wrong = _chain(problem), [Hop(*pair) for pair in problem.meta["wrong"]]
    plan = _plan(problem.meta["hops"])
    hops = {
        "invented": [first._replace(said=wrong[rng.randrange(4)].said), second],
        "outside": [wrong[0], wrong[1]._replace(said=second.said)],
        "leap": [first, second._replace(said=wrong[1].said)],
        "bare": [first._replace(doc=None), second._replace(doc=None)],
        "skipped": [second],
    }[fault]
    plan = ["who it is"] if fault == "skipped" else plan
    return write(plan, problem.meta["supporting"], hops, str(problem.answer))
