"""Multi-hop questions over synthetic facts; every problem has its own facts, so none can be memorised. Every problem has its own
facts, so none can be memorised.

    Who is the boss of the friend of Ann?       Search: Ann friend   ->  Ann: the friend of Ann is Bob.
                                                Search: Bob boss     ->  Bob: the boss of Bob is Cal.
                                                Answer: Cal

The facts lie in meta["facts"], for an environment to search; the gold searches in meta["searches"].
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.text.bm25 import index_of

NAMES = (
    "Ann", "Bob", "Cal", "Dee", "Eve", "Fay", "Gus", "Hal", "Ida", "Jon", "Kim", "Lea", "Max", "Ned", "Ola", "Pam",
    "Ray", "Sue", "Tom", "Una", "Vic", "Wes", "Yan", "Zoe",
)  # fmt: skip
RELATIONS = ("friend", "boss", "mother", "teacher", "doctor", "neighbour")
CONFUSED = {"neighbour": "friend", "teacher": "boss", "doctor": "mother"}
"""The wrong rule of a biased teacher: which relation it looks up in the place of which."""
NOTHING = "Nothing found."


def facts(
    *, hops: PositiveInt = 3, people: PositiveInt = 8, relations: PositiveInt = 3, test_size: PositiveInt = 200,
    size: PositiveInt | None = None, error: Share = 0.5, redundant: Share = 0.0, biased: Share = 0.0,
) -> Task:  # fmt: skip
    """Follow `hops` relations from a person, among `people` who have `relations` relations each.

    error: probability that the teacher of `demonstrate` goes wrong on one hop: it asks for another relation or person, or answers
    before the chain has ended.  redundant: how often, per hop, it makes the same search again.
    biased: how often it looks up another relation where the neighbour, teacher or doctor is asked for, so that what a policy
    does most often is wrong there.
    size: so many training problems, in epochs; None: endless.
    """
    if not 1 <= hops <= 4:
        raise RewardlabError(f"facts: hops must be between 1 and 4, not {hops}")
    if not hops < people <= len(NAMES):
        raise RewardlabError(f"facts: people must be more than hops and at most {len(NAMES)}, not {people}")
    if not 1 <= relations <= len(RELATIONS):
        raise RewardlabError(f"facts: relations must be between 1 and {len(RELATIONS)}, not {relations}")
    for name, share in (("error", error), ("redundant", redundant), ("biased", biased)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"facts: {name} is a probability between 0 and 1, not {share}")
    sample, key = partial(_sample, hops=hops, people=people, relations=relations), ("facts", hops, people, relations)
    return Task(
        name="facts",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="final_answer",
        max_new=16,
        about=f"who is whose what: {hops} hops through facts that must be searched for",
        environment="search",
        turns=hops + 1,
        demonstrate=partial(_demonstrate, error=error, redundant=redundant, biased=biased),
        columns=("prompt", "answer", "facts", "searches", "solution"),
    )


def fact(person: str, relation: str, other: str) -> str:
    """A document; the name at its head makes it the first search result among those that hold the name."""
    return f"{person}: the {relation} of {person} is {other}."


def look_up(facts: list[str], query: str) -> str:
    """What a search over the facts answers."""
    return " ".join(index_of(tuple(facts)).best(query)) or NOTHING


def _sample(rng: random.Random, *, hops: int, people: int, relations: int) -> Problem:
    persons, relations_known = rng.sample(NAMES, people), rng.sample(RELATIONS, relations)
    chain, relations_asked = rng.sample(persons, hops + 1), [rng.choice(relations_known) for _ in range(hops)]
    target_of = {(p, r): rng.choice([x for x in persons if x != p]) for p in persons for r in relations_known}
    # last, so that the facts of the chain replace random ones about the same person and relation
    target_of |= {(p, r): target for p, r, target in zip(chain, relations_asked, chain[1:], strict=False)}
    documents = [fact(p, r, target) for (p, r), target in target_of.items()]
    rng.shuffle(documents)
    searches = [f"{p} {r}" for p, r in zip(chain, relations_asked, strict=False)]
    results = [fact(p, r, target) for p, r, target in zip(chain, relations_asked, chain[1:], strict=False)]
    question = f"Who is {''.join(f'the {r} of ' for r in reversed(relations_asked))}{chain[0]}?"
    return ask(question, chain[-1], facts=documents, searches=searches, solution=_talk(searches, results, chain[-1]))


def _talk(searches: list[str], results: list[str], answer: str) -> list[str]:
    """The replies of a policy that makes these searches, with the search results between them."""
    turns = [line for query, result in zip(searches, results, strict=True) for line in (f"Search: {query}", result)]
    return [*turns, f"Answer: {answer}"]


def _demonstrate(problem: Problem, rng: random.Random, *, error: float, redundant: float, biased: float = 0.0) -> list[str]:
    """The gold searches; or one of them goes wrong, and what follows builds on its result."""
    relations = [query.split()[1] for query in problem.meta["searches"]]
    documents, wrong_hop = problem.meta["facts"], rng.randrange(len(relations)) if rng.random() < error else -1
    person = problem.meta["searches"][0].split()[0]
    searches: list[str] = []
    results: list[str] = []
    kinds = sorted({f.split()[2] for f in documents})
    people = sorted({f.split(":")[0] for f in documents})
    early = rng.random() < 0.5
    for i, relation in enumerate(relations):
        if i == wrong_hop and early:
            return _talk(searches, results, person if searches else rng.choice(people))
        if i == wrong_hop:
            person, relation = (person, rng.choice(kinds)) if rng.random() < 0.5 else (rng.choice(people), relation)
        # a share of 0 takes no random number, so that it leaves the other choices as they were
        if biased and relation in CONFUSED and rng.random() < biased:
            relation = CONFUSED[relation]
        times = 2 if redundant and rng.random() < redundant else 1
        searches += [f"{person} {relation}"] * times
        results += [look_up(documents, searches[-1])] * times
        person = results[-1].rstrip(".").split()[-1]
    return _talk(searches, results, person)
