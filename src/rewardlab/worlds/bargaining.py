"""Utterances of a negotiation in context, with the episode's scores and an attributor's estimate of each utterance's share.

    You sell a lamp and want 60.                       ->    What do you need it for?
    Buyer: What is it like?
    You: Nice day today.
    Buyer: I see.

What each kind of utterance does is known: to the goal (a good price), the relationship, and what is learnt of the buyer. At the end
a talk is scored in each dimension, and only that is seen: who sells well is also rude at times, and who is kind says little, so
that rude words are found in good talks. The attributor says for each utterance and dimension, from 0 to 3, how much it did, and is
often wrong. Test pairs are two utterances after the same history, labelled by what they do (`value`). In `said` is what was said
next, in `solution` the best that can be said.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from rewardlab.core import Problem, Score, Task, Trajectory, ask
from rewardlab.data.sotopia import RANGES
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

GOODS = ("lamp", "bike", "desk", "coat", "radio", "kettle")
DIMENSIONS = ("goal", "relationship", "knowledge")
UTTERANCES = 4
MOST = 3
"""The most that the attributor says of an utterance."""


class Kind(NamedTuple):
    """said: ways to say it.  does: to goal, relationship and knowledge.  answer: what the buyer says to it."""

    said: tuple[str, ...]
    does: tuple[float, float, float]
    answer: str


KINDS: Mapping[str, Kind] = {
    "asks": Kind(("What do you need it for?", "Where will you use it?"), (1.0, 1.0, 4.0), "For my work."),
    "fits": Kind(("It suits your work well.", "For work it is just right."), (3.0, 1.0, 1.0), "That is good."),
    "offers": Kind(("I can do a fair price.", "Let us meet half way."), (2.0, 1.0, 0.0), "We may agree."),
    "chats": Kind(("Nice day today.", "I like your hat."), (0.0, 2.0, 0.0), "Thank you."),
    "pushes": Kind(("Take it or leave it.", "Pay now or go."), (2.0, -3.0, 0.0), "I do not like that."),
    "insults": Kind(("You know nothing.", "Do not waste my time."), (-1.0, -3.0, 0.0), "How rude."),
    "idles": Kind(("Well.", "Let me see."), (0.0, 0.0, 0.0), "I see."),
}

SELLERS: tuple[Mapping[str, int], ...] = (
    {"asks": 4, "fits": 5, "pushes": 2, "insults": 1},
    {"chats": 1, "offers": 1, "idles": 3},
)
"""How often each of two sellers says what."""


def bargaining(*, noise: Share = 0.3, test_size: PositiveInt = 1000, size: PositiveInt | None = None) -> Task:
    """Utterances of talks of four, each by one of two sellers.

    noise: how often what the attributor says of an utterance in a dimension is a guess.  size: so many training problems, in
    epochs; None: endless.
    """
    if not 0 <= noise <= 1:
        raise RewardlabError(f"bargaining: noise is a share between 0 and 1, not {noise}")
    sample, key = partial(_sample, noise=noise), ("bargaining", noise)
    return Task(
        name="bargaining",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="social_value",
        max_new=16,
        about="what to say next to a buyer; what an utterance does is known",
        demonstrate=_demonstrate,
        columns=("prompt", "said", "solution", "scores", "attributions", "chosen", "rejected", "qualities"),
        warmup_steps=200,
        window=(0.2, 0.8),
    )


def value(kind: str) -> float:
    """What an utterance of this kind does, from 0 to 1: the mean over dimensions, between the worst and the best kind."""
    totals = {name: sum(k.does) for name, k in KINDS.items()}
    low, high = min(totals.values()), max(totals.values())
    return (totals[kind] - low) / (high - low)


def kind_of(text: str) -> str | None:
    """The kind that an utterance is of; None for one that nobody says here."""
    return next((name for name, kind in KINDS.items() if text.strip() in kind.said), None)


def _sample(rng: random.Random, *, noise: float) -> Problem:
    seller = rng.choice(SELLERS)
    names = rng.choices(list(seller), weights=list(seller.values()), k=UTTERANCES)
    at, lines = rng.randrange(UTTERANCES), [rng.choice(KINDS[name].said) for name in names]
    question = "\n".join([f"You sell a {rng.choice(GOODS)} and want {rng.randint(20, 99)}.", *_history(names[:at], lines)])
    effects = [KINDS[name].does for name in names]
    scores = {d: _clipped(5.0 * (d == "goal") + sum(e[i] for e in effects), d) for i, d in enumerate(DIMENSIONS)}
    attributions = {d: _attributed(effects[at][i], [e[i] for e in effects], noise, rng) for i, d in enumerate(DIMENSIONS)}
    a, b = names[at], rng.choice([name for name in KINDS if value(name) != value(names[at])])
    better, worse = (a, b) if value(a) > value(b) else (b, a)
    pair = {"chosen": rng.choice(KINDS[better].said), "rejected": rng.choice(KINDS[worse].said)}
    qualities = [value(better), value(worse)]
    best = KINDS[max(KINDS, key=value)].said[0]
    return ask(question, None, said=lines[at], solution=best, scores=scores, attributions=attributions, qualities=qualities, **pair)


def _history(names: Sequence[str], lines: Sequence[str]) -> list[str]:
    talk = ["Buyer: What is it like?"]
    for name, line in zip(names, lines, strict=False):
        talk += [f"You: {line}", f"Buyer: {KINDS[name].answer}"]
    return talk


def _clipped(score: float, dimension: str) -> float:
    low, high = RANGES[dimension]
    return min(high, max(low, score))


def _attributed(effect: float, all_effects: Sequence[float], noise: float, rng: random.Random) -> int:
    """How much of the talk's score an utterance is said to have done, from 0 to 3: beside the one that did most."""
    guess, most = rng.randint(0, MOST), max(abs(x) for x in all_effects)
    if rng.random() < noise:
        return guess
    # what went against the score did nothing for it
    for_it = effect if sum(all_effects) >= 0 else -effect
    return round(MOST * max(0.0, for_it) / most) if most else 0


def _demonstrate(problem: Problem, rng: random.Random) -> str:
    """What anybody might say."""
    return rng.choice(KINDS[rng.choice(list(KINDS))].said)


# ---- What an utterance does, which nobody in the talk can see --------------------------------------------------------


@reward
def social_value(trajectory: Trajectory) -> Score:
    """The effect of the utterance on goal, relationship and knowledge, from 0 to 1; 0 for one outside the world's phrases."""
    kind = kind_of(trajectory.reply)
    return Score(0.0, why="no such utterance") if kind is None else Score(value(kind), why=kind)
