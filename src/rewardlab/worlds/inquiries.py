"""Deep search: facts to be looked up, with structured thoughts before each search; and pairs of episodes.

    Inquiry 7: who is the boss of the friend of Ann?

                                             <think><plan>friend of Ann</plan></think>
                                             Search: Ann friend                   ->  Ann: the friend of Ann is Bob.
                                             <think><seen>the friend of Ann is Bob</seen><plan>boss of Bob</plan></think>
                                             Search: Bob boss                     ->  Bob: the boss of Bob is Cal.
                                             <think><seen>the boss of Bob is Cal</seen></think>
                                             Answer: Cal

`direct` and `wandering` differ in where they get: the first writes little and seldom goes wrong; the second writes much, searches
again for what it knows, and mostly goes wrong. `sound` and `unsound` get to the same place, and differ in how much of what they say
that they have read they have read. The score of each, from 0 to 1, is in `direct_score` and so on.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Paired, all_paired
from rewardlab.tasks.sources import test_set, training
from rewardlab.worlds.facts import NAMES, RELATIONS, fact, look_up

CARE = "One cannot be too careful, so let us look at all of it once more."


@dataclass(frozen=True)
class Habits:
    """wrong: probability that a hop goes wrong.  again: that a search is made twice.  padded: that a thought has an atom that says
    nothing.  invented: that an observation names somebody else.  guesses: that a thought has a guess at what comes."""

    wrong: float = 0.0
    again: float = 0.0
    padded: float = 0.0
    invented: float = 0.0
    guesses: float = 0.3


CARELESS = Habits(wrong=0.2, padded=0.3, invented=0.2)
DIRECT, WANDERING = Habits(wrong=0.15, invented=0.2), Habits(wrong=0.35, again=0.5, padded=0.9, invented=0.2)
SOUND, UNSOUND = Habits(invented=0.2), Habits(invented=0.6)


def inquiries(
    *, hops: PositiveInt = 2, guesses: Share = 0.3, test_size: PositiveInt = 1000, size: PositiveInt | None = None
) -> Task:  # fmt: skip
    """Chains of `hops` relations among six people, who have two relations each.

    guesses: how often a thought says what may come next, which nobody has read yet.  size: so many training problems, each with
    its pairs, in epochs; None: endless.
    """
    if not 1 <= hops <= 4:
        raise RewardlabError(f"inquiries: hops must be between 1 and 4, not {hops}")
    if not 0 <= guesses <= 1:
        raise RewardlabError(f"inquiries: guesses is a share between 0 and 1, not {guesses}")
    key, sample, pairs = ("inquiries", hops), partial(_sample, hops=hops), partial(_pairs, guesses=guesses)
    return Task(
        name="inquiries",
        train=Paired(training(sample, key, size), pairs),
        test=all_paired(test_set(sample, key, test_size), pairs),
        verifier="final_answer",
        max_new=64,
        about="who is whose what, looked up with a thought before each search",
        environment="search",
        turns=hops + 1,
        demonstrate=partial(_demonstrate, guesses=guesses),
        columns=("prompt", "answer", "facts", "searches", "solution", *(x for kind in KINDS for x in (kind, f"{kind}_score"))),
    )


def _sample(rng: random.Random, *, hops: int) -> Problem:
    people, kinds = rng.sample(NAMES, 6), rng.sample(RELATIONS, 2)
    chain, asked = rng.sample(people, hops + 1), [rng.choice(kinds) for _ in range(hops)]
    target_of = {(p, k): rng.choice([x for x in people if x != p]) for p in people for k in kinds}
    # last, so that the facts of the chain replace random ones about the same person and relation
    target_of |= {(p, k): q for p, k, q in zip(chain, asked, chain[1:], strict=False)}
    documents = rng.sample([fact(p, k, q) for (p, k), q in target_of.items()], len(target_of))
    # numbered, since there are few different questions of two hops
    question = f"Inquiry {rng.randint(1, 9999)}: who is {''.join(f'the {k} of ' for k in reversed(asked))}{chain[0]}?"
    searches = [f"{p} {k}" for p, k in zip(chain, asked, strict=False)]
    problem = ask(question, chain[-1], facts=documents, searches=searches)
    solution = play(problem, Habits(guesses=0.0), rng).texts
    return replace(problem, meta={**problem.meta, "solution": solution})


KINDS = ("direct", "wandering", "sound", "unsound")


@dataclass(frozen=True)
class Episode:
    """texts: replies, and the results that answer them, in turn.  right: hops until the first wrong one, as a share.  solved.
    founded: the share of observations that are of what was read."""

    texts: list[str]
    right: float
    solved: bool
    founded: float


def _demonstrate(problem: Problem, rng: random.Random, *, guesses: float) -> list[str]:
    return play(problem, replace(CARELESS, guesses=guesses), rng).texts


def play(problem: Problem, habits: Habits, rng: random.Random) -> Episode:
    """An episode of somebody with these habits."""
    documents, asked = problem.meta["facts"], [search.split() for search in problem.meta["searches"]]
    kinds = sorted({text.split()[2] for text in documents})
    person, known, texts, leading, seen = asked[0][0], "", [], True, []
    right = 0
    for _, relation in asked:
        looked_up = rng.choice([k for k in kinds if k != relation]) if rng.random() < habits.wrong else relation
        observed, founded = _observed(known, habits, rng)
        seen += founded
        leading = leading and looked_up == relation
        right += leading
        result = look_up(documents, f"{person} {looked_up}")
        thought = _thought([*observed, ("plan", f"{looked_up} of {person}")], habits, rng)
        texts += [f"{thought}\nSearch: {person} {looked_up}", result] * (2 if rng.random() < habits.again else 1)
        person = result.rstrip(".").split()[-1]
        known = result.rstrip(".").partition(": ")[2]
    observed, founded = _observed(known, habits, rng)
    answer = f"{_thought(observed, habits, rng)}\nAnswer: {person}"
    seen += founded
    return Episode([*texts, answer], right / len(asked), person == problem.answer, sum(seen) / max(1, len(seen)))


def _observed(known: str, habits: Habits, rng: random.Random) -> tuple[list[tuple[str, str]], list[bool]]:
    """The observation of what was found last, and whether it is that; nothing before the first search."""
    if not known:
        return [], []
    if rng.random() >= habits.invented:
        return [("seen", known)], [True]
    rest, _, name = known.rpartition(" ")
    return [("seen", f"{rest} {rng.choice([n for n in NAMES if n != name])}")], [False]


def _thought(atoms: list[tuple[str, str]], habits: Habits, rng: random.Random) -> str:
    if rng.random() < habits.guesses:
        atoms = [*atoms, ("guess", f"it may be {rng.choice(NAMES)}")]
    if rng.random() < habits.padded:
        atoms = [*atoms, ("risk", CARE)]
    return f"<think>{''.join(f'<{tag}>{text}</{tag}>' for tag, text in atoms)}</think>"


def _pairs(problem: Problem, rng: random.Random, *, guesses: float) -> Problem:
    """The problem with both pairs of episodes and their scores."""
    direct, wandering = (play(problem, replace(habits, guesses=guesses), rng) for habits in (DIRECT, WANDERING))
    sound, unsound = (play(problem, replace(habits, guesses=guesses), rng) for habits in (SOUND, UNSOUND))
    episodes = dict(zip(KINDS, (direct, wandering, sound, unsound), strict=True))
    # of those that are to get somewhere, half for the answer and half for the way; of the others, how far one can believe them
    scores = {k: (e.solved + e.right) / 2 if k in KINDS[:2] else e.founded for k, e in episodes.items()}
    columns = {x: y for k, e in episodes.items() for x, y in ((k, e.texts), (f"{k}_score", scores[k]))}
    return replace(problem, meta={**problem.meta, **columns})
