"""Masked prediction with search: hidden names in sentences about people, each to be looked up, often after the one before it.

    The friend of Ann is [mask 1].                  Search: Ann friend   ->  Ann: the friend of Ann is Bob.
    The boss of [mask 1] is [mask 2].               Search: Bob boss     ->  Bob: the boss of Bob is Cal.
                                                    Answer: Bob; Cal

The documents lie in meta["facts"], for an environment to search; the gold searches in meta["searches"], the number of masks in
meta["masks"]: the columns that `rewardlab data ramp` writes.
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.data.masking import mask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.worlds.facts import CONFUSED, NAMES, RELATIONS, fact, look_up


def masked(
    *, min_masks: PositiveInt = 1, max_masks: PositiveInt = 4, error: Share = 0.25, biased: Share = 0.75,
    test_size: PositiveInt = 1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """From `min_masks` to `max_masks` hidden names a text, among eight people who have three relations each.

    error: how often the teacher of `demonstrate` goes wrong on one search: it asks for another relation or person, and builds on
    what it finds.  biased: how often it looks up another relation where the neighbour, teacher or doctor is asked for.
    size: so many training problems, in epochs; None: endless.
    """
    if not min_masks <= max_masks <= 4:
        raise RewardlabError(
            f"masked: a text hides from 1 to 4 names, and min_masks is at most max_masks, not {min_masks} and {max_masks}"
        )
    sample, key = partial(_sample, min_masks=min_masks, max_masks=max_masks), ("masked", min_masks, max_masks)
    return Task(
        name="masked",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="filled_masks",
        max_new=24,
        about="which names are hidden in a text, by searching for them one after another",
        environment="search",
        turns=max_masks + 1,
        demonstrate=partial(_demonstrate, error=error, biased=biased),
        columns=("prompt", "answer", "facts", "searches", "masks", "solution"),
    )


def _sample(rng: random.Random, *, min_masks: int, max_masks: int) -> Problem:
    masks = rng.randint(min_masks, max_masks)
    people, kinds = rng.sample(NAMES, 8), rng.sample(RELATIONS, 3)
    chain, asked = rng.sample(people, masks + 1), [rng.choice(kinds) for _ in range(masks)]
    target_of = {(p, k): rng.choice([x for x in people if x != p]) for p in people for k in kinds}
    # last, so that the facts of the chain replace random ones about the same person and relation
    target_of |= {(p, k): q for p, k, q in zip(chain, asked, chain[1:], strict=False)}
    documents = rng.sample([fact(p, k, q) for (p, k), q in target_of.items()], len(target_of))
    marks = [chain[0], *(mask(i) for i in range(1, masks + 1))]
    text = " ".join(f"The {k} of {a} is {b}." for k, a, b in zip(asked, marks, marks[1:], strict=False))
    searches = [f"{p} {k}" for p, k in zip(chain, asked, strict=False)]
    problem = ask(text, chain[1:], facts=documents, searches=searches, masks=masks)
    problem.meta["solution"] = _talk(problem, searches)  # type: ignore[index]
    return problem


def _talk(problem: Problem, searches: list[str]) -> list[str]:
    """The replies of a policy that makes these searches, with the search results between them."""
    results = [look_up(problem.meta["facts"], query) for query in searches]
    turns = [line for query, result in zip(searches, results, strict=True) for line in (f"Search: {query}", result)]
    return [*turns, f"Answer: {'; '.join(_last_word(result) for result in results)}"]


def _last_word(result: str) -> str:
    return result.rstrip(".").split()[-1]


def _demonstrate(problem: Problem, rng: random.Random, *, error: float, biased: float) -> list[str]:
    """The gold searches, of which one may go wrong, and what follows builds on its result."""
    gold, documents = problem.meta["searches"], problem.meta["facts"]
    wrong = rng.randrange(len(gold)) if rng.random() < error else -1
    people = sorted({document.split(":")[0] for document in documents})
    kinds = sorted({document.split()[2] for document in documents})
    person, searches = gold[0].split()[0], []
    for i, relation in enumerate(query.split()[1] for query in gold):
        if i == wrong:
            person, relation = (person, rng.choice(kinds)) if rng.random() < 0.5 else (rng.choice(people), relation)
        elif relation in CONFUSED and rng.random() < biased:
            relation = CONFUSED[relation]
        searches.append(f"{person} {relation}")
        person = _last_word(look_up(documents, searches[-1]))
    return _talk(problem, searches)
