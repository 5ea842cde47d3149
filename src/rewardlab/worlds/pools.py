"""Questions of who is whose what, with two experts to ask: a cheap one that knows some of it, and a dear one that knows all.

    Case 7: who is the doctor of the friend of Ann?
                                                <think>friend of Ann</think><search>Mini: Ann friend</search>
    Ann: the friend of Ann is Bob.              <think>doctor of Bob</think><search>Pro: Bob doctor</search>
    Bob: the doctor of Bob is Cal.              <think>Cal</think><answer>Cal</answer>

What an expert says stands in the columns `mini` and `pro`, a fact a text. Mini knows friends and bosses; of teachers and doctors it
says something wrong. The careless teacher asks either one, whatever it wants to know.
"""

from __future__ import annotations

import json
import random
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.text.bm25 import index_of
from rewardlab.worlds.facts import NAMES, fact

KNOWN, UNKNOWN = ("friend", "boss"), ("teacher", "doctor")
"""What Mini knows, and what it gets wrong."""
POOL = json.dumps(
    [
        {"name": "Mini", "about": "Knows friends and bosses.", "price": 0.1, "column": "mini"},
        {"name": "Pro", "about": "Knows everybody.", "price": 1.0, "column": "pro"},
    ]
)


def pools(
    *, hops: PositiveInt = 2, people: PositiveInt = 5, dear: Share = 0.6, error: Share = 0.1, test_size: PositiveInt = 300,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Chains of `hops` relations among `people`.

    dear: how often the teacher of `demonstrate` asks Pro.  error: how often, per hop, it asks for another relation.
    size: so many training problems, in epochs; None: endless.
    """
    if not hops < people <= len(NAMES):
        raise RewardlabError(f"pools: people must be more than hops and at most {len(NAMES)}, not {people}")
    sample, key = partial(_sample, hops=hops, people=people), ("pools", hops, people)
    return Task(
        name="pools",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="tagged_answer",
        max_new=48,
        about=f"who is whose what in {hops} hops, asked of a cheap expert or a dear one",
        demonstrate=partial(_demonstrate, dear=dear, error=error),
        turns=hops + 1,
        columns=("prompt", "answer", "mini", "pro", "solution"),
        warmup_steps=300,
    )


def _sample(rng: random.Random, *, hops: int, people: int) -> Problem:
    persons, asked = rng.sample(NAMES, people), [rng.choice(KNOWN + UNKNOWN) for _ in range(hops)]
    chain = rng.sample(persons, hops + 1)
    true = {(p, r): rng.choice([x for x in persons if x != p]) for p in persons for r in KNOWN + UNKNOWN}
    # last, so that the facts of the chain replace random ones about the same person and relation
    true |= {(p, r): target for p, r, target in zip(chain, asked, chain[1:], strict=False)}
    told = {
        (p, r): q if r in KNOWN else rng.choice([x for x in persons if x not in (p, q)]) for (p, r), q in true.items()
    }  # fmt: skip
    pro, mini = ([fact(p, r, q) for (p, r), q in known.items()] for known in (true, told))
    # numbered, since there are few different questions
    question = f"Case {rng.randint(1, 9999)}: who is {''.join(f'the {r} of ' for r in reversed(asked))}{chain[0]}?"
    problem = ask(question, chain[-1], pro=pro, mini=mini)
    return ask(
        question, chain[-1], pro=pro, mini=mini, solution=_talk(problem, [(r, "Mini" if r in KNOWN else "Pro") for r in asked])
    )


def _talk(problem: Problem, calls: list[tuple[str, str]]) -> list[str]:
    """The replies of somebody who asks these experts for these relations, one after the other, with what they say between."""
    person, texts = problem.question.rstrip("?").split()[-1], []
    for relation, name in calls:
        (said,) = index_of(tuple(problem.meta[name.lower()])).best(f"{person} {relation}")
        call = f"<think>{relation} of {person}</think><search>{name}: {person} {relation}</search>"
        texts += [call, f"<information>{said}</information>"]
        person = said.rstrip(".").split()[-1]
    return [*texts, f"<think>{person}</think><answer>{person}</answer>"]


def _demonstrate(problem: Problem, rng: random.Random, *, dear: float, error: float) -> list[str]:
    asked = [word for word in reversed(problem.question.split()) if word in KNOWN + UNKNOWN]
    relations = [rng.choice(KNOWN + UNKNOWN) if rng.random() < error else r for r in asked]
    return _talk(problem, [(r, "Pro" if rng.random() < dear else "Mini") for r in relations])
