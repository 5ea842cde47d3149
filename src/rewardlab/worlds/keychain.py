"""KeyChain: a question about people, hidden in a long text behind a chain of keys, among other chains.

    The boss of Ann Lee is Bob Roe. {"417": "352"}. ... {"352": "the friend of the boss of Ann Lee"}. ... Begin at 417.
        417 352 the friend of the boss of Ann Lee
        the boss of Ann Lee is Bob Roe
        the friend of Bob Roe is Cal Lee
        Answer: Cal Lee

Some people share a first name or a last. Right answers come in other words too: with more around them, or the first name alone
where that is enough. Wrong ones are those of another chain, namesakes, or a choice between two.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.data.keychain import hidden
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Paired, Reply, all_paired, with_pair
from rewardlab.tasks.sources import test_set, training

FIRST, LAST = ("Ann", "Bob", "Cal", "Dee"), ("Lee", "Roe", "Fox", "Day")
RELATIONS = ("boss", "friend")
HOPS = 2
WRONG = ("decoy", "namesake", "either")


def keychain(
    *, people: PositiveInt = 6, chains: PositiveInt = 3, links: PositiveInt = 2, error: Share = 0.5, test_size: PositiveInt = 500,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Two relations to be followed, from a person whom the chain of keys names.

    chains: the true one and those that distract.  links: keys of a chain.  error: how often the teacher of `demonstrate` answers
    the question of another chain.  size: so many training problems, each with a pair of replies, in epochs; None: endless.
    """
    if not 3 <= people <= len(FIRST) * len(LAST):
        raise RewardlabError(f"keychain: people must be between 3 and {len(FIRST) * len(LAST)}, not {people}")
    if not 2 <= chains <= people:
        raise RewardlabError(f"keychain: chains must be between 2 and the number of people, {people}, not {chains}")
    if not 0 <= error <= 1:
        raise RewardlabError(f"keychain: error is a probability between 0 and 1, not {error}")
    sample, key = partial(_sample, people=people, chains=chains, links=links), ("keychain", people, chains, links)
    return Task(
        name="keychain",
        train=Paired(training(sample, key, size), _pair),
        test=all_paired(test_set(sample, key, test_size), _pair),
        verifier="two_way_match",
        max_new=96,
        about=f"questions about people, hidden behind chains of {links} keys among {chains}",
        demonstrate=partial(_demonstrate, error=error),
        warmup_steps=2400,
        columns=("prompt", "answer", "facts", "chains", "people", "solution", "chosen", "rejected", "qualities", "fault"),
    )


def _sample(rng: random.Random, *, people: int, chains: int, links: int) -> Problem:
    everyone = [f"{first} {last}" for first in FIRST for last in LAST]
    persons = rng.sample(everyone, people)
    facts = {f"the {r} of {p}": rng.choice([x for x in persons if x != p]) for p in persons for r in RELATIONS}
    starts = rng.sample(persons, chains)
    asked = [(p, [rng.choice(RELATIONS) for _ in range(HOPS)]) for p in starts]
    questions = [f"the {' of the '.join(reversed(relations))} of {person}" for person, relations in asked]
    documents = [f"{what[0].upper()}{what[1:]} is {who}." for what, who in facts.items()]
    # keys that are used once: a key of two chains would lead to both
    unused = iter(rng.sample(range(100, 1000), links * chains))
    text, start = hidden(
        questions[0], documents, questions[1:], rng, links=links, key=lambda _: str(next(unused)), prompt="{text} Begin at {start}."
    )
    solved = [_worked(facts, person, relations) for person, relations in asked]
    known = [{"question": q, "steps": steps, "answer": answer} for q, (steps, answer) in zip(questions, solved, strict=True)]
    return ask(
        text.replace("\n\n", " "), known[0]["answer"], facts=facts, chains=known, people=persons, solution=_said(start, known[0])
    )  # fmt: skip


def _worked(facts: Mapping[str, str], person: str, relations: Sequence[str]) -> tuple[list[str], str]:
    """What is looked up, one after the other, and where it ends."""
    steps = []
    for relation in relations:
        what = f"the {relation} of {person}"
        person = facts[what]
        steps.append(f"{what} is {person}")
    return steps, person


def _said(start: str, of: Mapping[str, object]) -> str:
    steps = of["steps"]
    assert isinstance(steps, list)
    return "\n".join([f"{start}: {of['question']}", *steps, f"Answer: {of['answer']}"])


def _demonstrate(problem: Problem, rng: random.Random, *, error: float) -> str:
    """The worked answer of the chain's question, or of that of another chain."""
    start = problem.meta["solution"].partition(":")[0]
    chains = problem.meta["chains"]
    return _said(start, rng.choice(chains[1:]) if rng.random() < error else chains[0])


def _pair(problem: Problem, rng: random.Random) -> Problem:
    """chosen: the right answer, in one of four ways.  rejected: a wrong one, by one of the faults."""
    gold, people = str(problem.answer), problem.meta["people"]
    first, last = gold.split()
    alone = sum(person.startswith(first) for person in people) == 1
    asked = problem.meta["chains"][0]["question"]
    right = rng.choice((gold, f"It is {gold}.", f"{gold}, who is {asked}", first if alone else gold))
    fault = rng.choice(WRONG)
    others = [person for person in people if person != gold]
    namesakes = [person for person in others if person.endswith(last)] or [f"Eve {last}"]
    decoys = [of["answer"] for of in problem.meta["chains"][1:] if of["answer"] != gold] or others
    wrong = {
        "decoy": lambda: rng.choice(decoys),
        "namesake": lambda: rng.choice(namesakes),
        "either": lambda: " or ".join(rng.sample([gold, rng.choice(others)], 2)),
    }[fault]()
    chosen, rejected = (Reply(f"Answer: {text}", quality) for text, quality in ((right, 1.0), (wrong, 0.0)))
    return with_pair(problem, chosen, rejected, fault=fault)
