"""Closed-book multi-hop questions: facts shared by all problems, to be memorised. Nobody shows them to the policy.

    Who is the boss of the friend of Ann?       The friend of Ann is Bob.
                                                The boss of Bob is Cal.
                                                Answer: Cal

Whether a line is true cannot be seen from the question or from the lines before it. The facts lie in meta["passages"], for whoever
looks them up; those of them that the answer needs, also in meta["knowledge"].
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Task, ask, seed_of, uniform_of
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.worlds.facts import CONFUSED, NAMES, RELATIONS

Facts = dict[tuple[str, str], str]


def recalled(
    *, hops: PositiveInt = 3, people: PositiveInt = 20, error: Share = 0.1, biased: Share = 0.6, written: Share = 1.0,
    test_size: PositiveInt = 400, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Follow `hops` relations from a person, among `people`.

    error: how often, per hop, the teacher of `demonstrate` names anyone.  biased: how often it takes another relation where the
    neighbour, teacher or doctor is asked for, so that what a policy remembers best is wrong there.
    written: the share of the facts that stand in the passages.
    test_size: at most so many test problems.  size: so many training problems, in epochs; None: endless.
    """
    if not 1 <= hops <= 4:
        raise RewardlabError(f"recalled: hops must be between 1 and 4, not {hops}")
    if not 2 <= people <= len(NAMES):
        raise RewardlabError(f"recalled: people must be between 2 and {len(NAMES)}, not {people}")
    known = _facts(people)
    passages = [line(p, r, other) for (p, r), other in known.items() if uniform_of("written", p, r) < written]
    sample, key = partial(_sample, hops=hops, known=known, passages=passages), ("recalled", hops, people)
    return Task(
        name="recalled",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="final_answer",
        max_new=32 * (hops + 1),
        about=f"who is whose what: {hops} hops through facts that were learnt by heart",
        demonstrate=partial(_demonstrate, known=known, error=error, biased=biased),
        columns=("prompt", "answer", "passages", "knowledge", "steps", "solution"),
        warmed_as=f"recalled:hops={hops},people={people},error={error},biased={biased}" if written < 1 else None,
    )


def line(person: str, relation: str, other: str) -> str:
    return f"The {relation} of {person} is {other}."


def _facts(people: int) -> Facts:
    rng, persons = random.Random(seed_of("recalled", people)), NAMES[:people]
    return {(p, r): rng.choice([x for x in persons if x != p]) for p in persons for r in RELATIONS}


def _sample(rng: random.Random, *, hops: int, known: Facts, passages: list[str]) -> Problem:
    person = start = rng.choice(sorted({p for p, _ in known}))
    relations, steps = [rng.choice(RELATIONS) for _ in range(hops)], []
    for relation in relations:
        steps.append(line(person, relation, known[person, relation]))
        person = known[person, relation]
    question = f"Who is {''.join(f'the {r} of ' for r in reversed(relations))}{start}?"
    solution = "\n".join([*steps, f"Answer: {person}"])
    needed = [step for step in steps if step in passages]
    return ask(question, person, passages=passages, knowledge=needed, steps=steps, solution=solution)


def _demonstrate(problem: Problem, rng: random.Random, *, known: Facts, error: float, biased: float) -> str:
    """The chain as a teacher remembers it; what follows builds on what was said."""
    words = [step.rstrip(".").split() for step in problem.meta["steps"]]
    person, lines = words[0][3], []
    for relation in (w[1] for w in words):
        taken = CONFUSED[relation] if relation in CONFUSED and rng.random() < biased else relation
        other = rng.choice(sorted({p for p, _ in known})) if rng.random() < error else known[person, taken]
        lines.append(line(person, relation, other))
        person = other
    return "\n".join([*lines, f"Answer: {person}"])
