"""Sentences to translate, word by word and in another order, with exemplars by a translator who is good and not perfect.

    Translate: small dog sees red fish    ->    hundo malga piska roda vida          noun adjective noun adjective verb

The policy's teacher mistakes a word for another one of its kind more often than the writer of the exemplars does. How good a
translation is, is known: the share of its words that are right and in their place.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial

from rewardlab.core import Problem, Score, Task, Trajectory, ask, seed_of, uniform_of
from rewardlab.rewards.noise import NORMAL
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

ADJECTIVES = {"small": "malga", "red": "roda", "old": "oldu", "quick": "rapi", "kind": "bona", "sad": "trista"}
NOUNS = {
    "dog": "hundo", "fish": "piska", "king": "rega", "child": "infa", "bird": "birdo", "smith": "forja", "cat": "kata",
    "cook": "kuka",
}  # fmt: skip
VERBS = {"sees": "vida", "hears": "auda", "helps": "helpa", "fears": "tima", "finds": "trova", "calls": "voka"}
KINDS: Sequence[Mapping[str, str]] = (ADJECTIVES, NOUNS, VERBS, ADJECTIVES, NOUNS)
"""The kinds of words of a sentence, in their order."""
ORDER = (1, 0, 4, 3, 2)
"""Which word of the sentence stands at each place of its translation."""


def tongues(
    *, error: Share = 0.3, exemplar_error: Share = 0.15, test_size: PositiveInt = 500, size: PositiveInt | None = None
) -> Task:
    """Sentences of five words, each with an exemplar of its translation.

    error: the chance that the teacher of the small policy mistakes a word.  exemplar_error: the same for the writer of exemplars.
    size: so many training problems, in epochs; None: endless.
    """
    sample, key = partial(_sample, exemplar_error=exemplar_error), ("tongues", exemplar_error)
    return Task(
        name="tongues",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="right_words",
        max_new=24,
        about="sentences to translate, with exemplars that have errors",
        demonstrate=partial(_demonstrate, error=error),
        columns=("prompt", "answer", "exemplar", "solution"),
        warmed_as=f"tongues:error={error}",
        window=(0.4, 0.9),
    )


def _sample(rng: random.Random, *, exemplar_error: float) -> Problem:
    words = [rng.choice(sorted(kind)) for kind in KINDS]
    right = translated(words)
    # a stream of its own: the sentences are the same whatever the exemplars are
    slips = random.Random(seed_of("tongues", *words, rng.random()))
    return ask(f"Translate: {' '.join(words)}", right, exemplar=translated(words, slips, exemplar_error), solution=right)


def translated(words: Sequence[str], rng: random.Random | None = None, error: float = 0.0) -> str:
    """The translation of a sentence, in which each word is mistaken with the chance `error` for another one of its kind."""
    said = []
    for word, kind in zip(words, KINDS, strict=True):
        slips = rng is not None and rng.random() < error
        said.append(kind[rng.choice([w for w in sorted(kind) if w != word]) if rng and slips else word])
    return " ".join(said[i] for i in ORDER)


def _demonstrate(problem: Problem, rng: random.Random, *, error: float) -> str:
    return translated(problem.question.removeprefix("Translate: ").split(), rng, error)


def quality(reply: str, right: str) -> float:
    """The share of the words that are right and in their place; of the longer of the two texts."""
    said, wanted = reply.split(), right.split()
    return sum(a == b for a, b in zip(said, wanted, strict=False)) / max(len(said), len(wanted))


@reward
def right_words(trajectory: Trajectory) -> Score:
    """The share of the words of a translation that are right and in their place."""
    if not isinstance(trajectory.problem.answer, str):
        return Score(None, why="the problem has no right translation")
    return Score(quality(trajectory.reply, trajectory.problem.answer), extracted=trajectory.reply)


@reward
def rough_quality(trajectory: Trajectory, *, noise: NonNegativeFloat = 0.3) -> Score:
    """`right_words` with a normal error of this standard deviation, the same whenever the same text is scored."""
    score = right_words()([[trajectory]])[0][0]
    if score.value is None:
        return score
    error = NORMAL.inv_cdf(uniform_of("tongues", trajectory.problem.key, trajectory.reply))
    return Score(score.value + noise * error, why=f"{score.value:g} of the words are right")
