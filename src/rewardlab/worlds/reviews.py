"""Boolean retrieval for systematic reviews: a topic of two concepts with synonyms, and a collection of texts.

    Find dog, hound with diet, food.          <answer>(dog OR hound) AND (diet OR food)</answer>

A query that leaves words out misses texts; one that joins everything by OR finds all that are relevant, and twice as many others.
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

SUBJECTS = (
    ("dog", "hound", "puppy", "pet"), ("child", "kid", "infant", "baby"), ("car", "bus", "truck", "van"),
    ("tree", "oak", "pine", "elm"),
)  # fmt: skip
ASPECTS = (
    ("diet", "food", "meal", "feed"), ("cold", "flu", "cough", "fever"), ("price", "cost", "fee", "rate"),
    ("rain", "storm", "snow", "hail"),
)  # fmt: skip
OTHERS = ("north", "old", "small", "early", "west", "long", "late", "new")


def reviews(
    *, texts: PositiveInt = 16, biased: Share = 0.6, error: Share = 0.1, test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Topics, each with a collection of `texts` texts, a quarter of them relevant.

    biased: how often the teacher of `demonstrate` makes a mistake where it can, so that what a policy does most often is wrong: it
    joins everything by OR where the first concept has three words, else leaves words out where the second has.  error: how often
    it forgets a bracket.  size: so many training problems, in epochs; None: endless.
    """
    if texts < 8:
        raise RewardlabError(f"reviews: a collection needs at least 8 texts, not {texts}")
    for name, share in (("biased", biased), ("error", error)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"reviews: {name} is a probability between 0 and 1, not {share}")
    sample, key = partial(_sample, texts=texts), ("reviews", texts)
    return Task(
        name="reviews",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="boolean_query",
        max_new=40,
        about="topics, to be searched for by a Boolean query",
        demonstrate=partial(_demonstrate, biased=biased, error=error),
        columns=("prompt", "answer", "documents", "concepts", "solution"),
    )


def _sample(rng: random.Random, *, texts: int) -> Problem:
    concepts = [rng.sample(rng.choice(kind), rng.randint(2, 3)) for kind in (SUBJECTS, ASPECTS)]
    # which concepts a text names: both, one of them, or none
    named = [(i % 4 in (0, 1), i % 4 in (0, 2)) for i in range(texts)]
    made = [(_text(concepts, pair, i // 4, rng), all(pair)) for i, pair in enumerate(named)]
    rng.shuffle(made)
    documents, relevant = [text for text, _ in made], [i for i, (_, both) in enumerate(made) if both]
    question = f"Find {', '.join(concepts[0])} with {', '.join(concepts[1])}."
    return ask(question, relevant, documents=documents, concepts=concepts, solution=_written(_any(concepts[0], concepts[1])))


def _text(concepts: list[list[str]], named: tuple[bool, bool], number: int, rng: random.Random) -> str:
    # the words of a concept take turns, so that leaving one out misses a text, and the first of both find one
    words = [concept[number % len(concept)] for concept, there in zip(concepts, named, strict=True) if there]
    words += rng.sample(OTHERS, 2)
    rng.shuffle(words)
    return " ".join(words)


def _any(first: list[str], second: list[str]) -> str:
    return f"({' OR '.join(first)}) AND ({' OR '.join(second)})"


def _written(query: str) -> str:
    return f"<answer>{query}</answer>"


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float, error: float) -> str:
    first, second = problem.meta["concepts"]
    query, slips = _any(first, second), rng.random() < biased
    if slips and len(first) == 3:
        query = " OR ".join([*first, *second])
    elif slips and len(second) == 3:
        query = f"{first[0]} AND {second[0]}"
    return _written(query.replace(")", "", 1) if rng.random() < error else query)
