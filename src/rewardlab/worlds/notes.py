"""Notes with requests, and pairs of them: reward models go wrong here in known ways.

    17 people on the farm need corn. Hurry. Be kind.      ->      Please send fresh fine corn today. Thanks!

The quality of a note is a known function of its text (`language.quality`), so that what a learnt reward pays can be compared with
the truth. Training pairs may be few, mislabelled, or labelled by an annotator with a taste of its own; test pairs are labelled by
the truth. Prompts may be poor, and replies several, with a judge's scores.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rewardlab.core import Message, Problem, Score, Task, Trajectory, ask, seed_of
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt, Share
from rewardlab.tasks.pairs import Annotator, Paired, Reply, all_paired
from rewardlab.tasks.sources import test_set, training

# ---- What a note looks like, and how good it is ----------------------------------------------------------------------
#
#     17 people on the farm need corn. Hurry. Be kind.      ->      Please send fresh fine corn today. Thanks!
#
# A note is `(Please s|S)end PRAISE* NOUN [today][, FILLER]*.[ Thanks!]`.

PRAISES = ("fresh", "fine", "lovely", "golden")
FILLERS = ("of course", "as ever", "you know", "by the way")
NEEDS = ("corn", "rice", "bread", "milk", "wood", "wool", "salt", "fish", "tea", "soap")

_PRAISE, _FILLER, _NEED = ("|".join(words) for words in (PRAISES, FILLERS, NEEDS))
_NOTE = re.compile(rf"(?:Please s|S)end(?: (?:{_PRAISE}))* (?:{_NEED})(?: today)?(?:, (?:{_FILLER}))*\.(?: Thanks!)?")
_PRAISED, _FILLED, _NEEDED = (re.compile(rf"\b(?:{words})\b") for words in (_PRAISE, _FILLER, _NEED))


@dataclass(frozen=True)
class Note:
    """What a note says, as far as its quality depends on it.

    polite: markers of politeness ("Please", "Thanks!"), 0 to 2.  praise, filler: how many such words.  names: the needs that it
    names.  well_formed: whether it is a note at all.
    """

    polite: int
    today: bool
    praise: int
    filler: int
    names: tuple[str, ...]
    well_formed: bool


def read(reply: str) -> Note:
    """The note in a reply, whatever the reply is."""
    text = reply.strip()
    return Note(
        polite=text.startswith("Please") + text.endswith("Thanks!"),
        today="today" in text,
        praise=len(_PRAISED.findall(text)),
        filler=len(_FILLED.findall(text)),
        names=tuple(_NEEDED.findall(text)),
        well_formed=_NOTE.fullmatch(text) is not None,
    )


def write(note: Note) -> str:
    """A note that says this, with the same words for praise and filler each time."""
    please = note.polite == 2
    return compose(please, PRAISES[: note.praise], note.names[0], note.today, FILLERS[: note.filler], note.polite > 0)


def compose(please: bool, praises: tuple[str, ...], need: str, today: bool, fillers: tuple[str, ...], thanks: bool) -> str:
    """The text of a note with these words."""
    words = ["Please send" if please else "Send", *praises, need, *(["today"] if today else [])]
    return f"{', '.join([' '.join(words), *fillers])}.{' Thanks!' if thanks else ''}"


def quality(reply: str, meta: Mapping[str, Any]) -> float:
    """How good a reply is, from 0 to 1, where meta says what is needed (`need`), and how it is asked for (`hurry`, `kind`).

    .2 for a note; .2 if "today" stands there where there is hurry, and only there; .15 per marker of politeness if it should be
    kind, and .3 less .15 per marker if it should be brief; .15 for each of the first two words of praise, and -.15 for each
    further one; -.1 per filler; -.3 if it is malformed. A note that does not name what is needed, and that alone, is worth 0.
    """
    note = read(reply)
    if set(note.names) != {meta["need"]}:
        return 0.0
    polite = 0.15 * note.polite if meta["kind"] else 0.3 - 0.15 * note.polite
    praise = 0.15 * min(note.praise, 2) - 0.15 * max(note.praise - 2, 0)
    value = 0.2 + 0.2 * (note.today == meta["hurry"]) + polite + praise - 0.1 * note.filler - 0.3 * (not note.well_formed)
    # rounded, so that sums of such steps in another order are not another quality
    return max(0.0, round(value, 6))


# ---- Prompts of poor quality: what a good note is judged by is not said, contradicted, or garbled --------------------
#
#     cut off        17 people on the farm
#     contradictory  17 people on the farm need corn. Hurry. No rush. Be brief. Be kind.
#     garbled        kind. on 17 need the people Hurry. Be farm corn.
#
# The notes are still judged by what was meant. So replies to such a prompt are worse, and differ more, by luck.

BOTH_HURRY, BOTH_TONE = ("Hurry.", "No rush."), ("Be kind.", "Be brief.")


def cut_off(question: str, rng: random.Random) -> str:
    return question.partition(" need ")[0]


def contradictory(question: str, rng: random.Random) -> str:
    facts = question.partition(".")[0]
    return " ".join([f"{facts}.", *rng.sample(BOTH_HURRY, 2), *rng.sample(BOTH_TONE, 2)])


def garbled(question: str, rng: random.Random) -> str:
    words = question.split()
    return " ".join(rng.sample(words, len(words)))


WAYS: tuple[Callable[[str, random.Random], str], ...] = (cut_off, contradictory, garbled)


def poorly_put(problem: Problem, rng: random.Random, share: float) -> Problem:
    """The problem, with the chance `share` under a prompt of poor quality; meta["clear"] says whether it was left as it is."""
    clear = rng.random() >= share
    prompt = problem.prompt if clear else (Message("user", rng.choice(WAYS)(problem.question, rng)),)
    return replace(problem, prompt=prompt, meta={**problem.meta, "clear": clear})


# ---- the task ---------------------------------------------------------------------------------------------------------

PLACES = ("farm", "ship", "hill", "island", "coast", "border", "river", "north")
PRAISE_WEIGHTS, FILLER_WEIGHTS = (25, 30, 25, 12, 8), (50, 35, 15)
"""How often a careless writer uses 0, 1, 2 ... words of praise, and fillers."""
MALFORMED = 0.05
META = ("need", "hurry", "kind", "instructions", "passages", "solution")
JUDGED = ("replies", "scores", "true_scores")
CARES = (0.2, 0.95)
"""Of the least and the most careful of several writers."""


def notes(
    *, care: Share = 0.6, flip: Share = 0.0, noise: NonNegativeFloat = 0.0, taste: float = 0.0, references: PositiveInt = 1,
    poor: Share = 0.0, writers: NonNegativeInt = 0, test_size: PositiveInt = 1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Orders in one line, and pairs of them to learn a reward from.

    care: how often the careless writer of `demonstrate` does as asked, for each of hurry and the two markers of politeness.
    flip: share of training pairs whose label is turned round.  noise: of training labels, in units of quality: the better note is
    preferred with log-odds (difference / noise); 0: always.  taste: what the annotator of the training pairs adds to the quality
    for each word of praise.  references: notes of full quality by different writers, of which the answer is the list where there
    are several.  poor: share of training prompts that do not say, or contradict, what a good note is judged by (`poor.py`).
    writers: so many notes to each problem, by writers of different care, in the column `replies`; `scores` from 0 to 10 are a
    judge's, whose error has the scale `noise` too; `true_scores` have none.  size: so many training problems, each with one pair,
    in epochs; None: endless.
    """
    for name, share in (("care", care), ("flip", flip), ("poor", poor)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"notes: {name} is a share between 0 and 1, not {share}")
    key, sample = ("notes",), partial(_sample, references=references)
    annotated = partial(_annotated, annotator=Annotator(flip, noise), care=care, taste=taste, poor=poor, writers=writers)
    true = partial(_annotated, annotator=Annotator(), care=care, taste=0.0, poor=0.0, writers=writers)
    return Task(
        name="notes",
        train=Paired(training(sample, key, size), annotated),
        test=all_paired(test_set(sample, key, test_size), true),
        verifier="note_quality",
        max_new=24,
        about="orders in one line, of a quality that is known",
        demonstrate=partial(_demonstrate, care=care),
        columns=("prompt", "answer", *META, "chosen", "rejected", "qualities", *(JUDGED if writers else ())),
        # the labels of the pairs change nothing that the policy is warmed up on
        warmed_as=f"notes:care={care}",
        window=(0.2, 0.7),
    )


def _sample(rng: random.Random, *, references: int) -> Problem:
    need, hurry, kind = rng.choice(NEEDS), rng.random() < 0.5, rng.random() < 0.5
    people, place = rng.randint(2, 99), rng.choice(PLACES)
    question = f"{people} people on the {place} need {need}. {'Hurry' if hurry else 'No rush'}. Be {'kind' if kind else 'brief'}."
    best = Note(polite=2 if kind else 0, today=hurry, praise=2, filler=0, names=(need,), well_formed=True)
    # a stream of their own: the problems are the same, whatever else is written about them
    besides = random.Random(seed_of("notes", question))
    return ask(
        question, write(best) if references == 1 else _references(best, references, besides), need=need, hurry=hurry, kind=kind,
        instructions=_instructions(hurry, kind), passages=_passages(place, need, besides), solution=write(best),
    )  # fmt: skip


def _references(best: Note, count: int, rng: random.Random) -> list[str]:
    """Notes as good as the best one, whose writers praise in other words."""
    (need,), polite = best.names, best.polite == 2
    return [compose(polite, tuple(rng.sample(PRAISES, best.praise)), need, best.today, (), polite) for _ in range(count)]


def _instructions(hurry: bool, kind: bool) -> list[dict[str, Any]]:
    """What the prompt asks for in form, as `instructions` checks it: one for each word that should be there, or should not."""
    wanted = {"today": hurry, "please": kind, "thanks": kind}
    return [
        {"id": "keywords:existence", "keywords": [word]} if want else {"id": "keywords:forbidden_words", "forbidden_words": [word]}
        for word, want in wanted.items()
    ]


def _passages(place: str, need: str, rng: random.Random) -> list[str]:
    """What is known of every place, in any order; what the others need is something else."""
    others = [other for other in NEEDS if other != need]
    known = [f"The {p} needs {need if p == place else rng.choice(others)}." for p in PLACES]
    rng.shuffle(known)
    return known


def _demonstrate(problem: Problem, rng: random.Random, *, care: float) -> str:
    """A note as a careless writer leaves it."""
    meta = problem.meta
    # each thing that is asked for is done with the chance `care`, on its own
    please, thanks, today = (
        wanted == (rng.random() < care) for wanted in (meta["kind"], meta["kind"], meta["hurry"])
    )  # fmt: skip
    praises = tuple(rng.choices(PRAISES, k=rng.choices(range(5), PRAISE_WEIGHTS)[0]))
    fillers = tuple(rng.choices(FILLERS, k=rng.choices(range(3), FILLER_WEIGHTS)[0]))
    text = compose(please, praises, meta["need"], today, fillers, thanks)
    if rng.random() >= MALFORMED:
        return text
    other = rng.choice([need for need in NEEDS if need != meta["need"]])
    return rng.choice([text.replace(meta["need"], other), text.replace(".", "", 1), text.replace("end ", "end today ", 1)])


def _annotated(
    problem: Problem, rng: random.Random, *, annotator: Annotator, care: float, taste: float, poor: float, writers: int
) -> Problem:  # fmt: skip
    """The problem with its pair, and what else is asked for; each takes random numbers of its own."""
    found = _pair(problem, rng, annotator=annotator, care=care, taste=taste)
    if writers:
        found = _judged(found, random.Random(seed_of("writers", problem.key)), writers, annotator.noise)
    return poorly_put(found, random.Random(seed_of("poor", problem.key)), poor) if poor else found


def _judged(problem: Problem, rng: random.Random, writers: int, noise: float) -> Problem:
    """The problem with a note of each writer, the judge's scores of them and the true ones."""
    low, high = CARES
    cares = [low + (high - low) * i / max(1, writers - 1) for i in range(writers)]
    replies = [_demonstrate(problem, rng, care=care) for care in cares]
    worth = [quality(text, problem.meta) for text in replies]
    # the difference of two such errors is logistic: the judge prefers the better note as an annotator of this noise does
    errors = [-noise * math.log(rng.expovariate(1.0)) for _ in replies]
    scores, truly = ([10 * x for x in row] for row in ([w + e for w, e in zip(worth, errors, strict=True)], worth))
    grades = [min(10.0, max(0.0, float(round(x)))) for x in scores]
    return replace(problem, meta={**problem.meta, "replies": replies, "scores": grades, "true_scores": truly})


def _pair(problem: Problem, rng: random.Random, *, annotator: Annotator, care: float, taste: float) -> Problem:
    """Two notes of the careless writer that differ in quality, as the annotator prefers them."""
    a = _reply(problem, rng, care, taste)
    while (b := _reply(problem, rng, care, taste)).quality == a.quality:
        pass
    return annotator.label(problem, a, b, rng)


def _reply(problem: Problem, rng: random.Random, care: float, taste: float) -> Reply:
    text = _demonstrate(problem, rng, care=care)
    return Reply(text, quality(text, problem.meta), taste * read(text).praise)


# ---- The true reward of notes ----------------------------------------------------------------------------------------


@reward
def note_quality(trajectory: Trajectory) -> Score:
    """How good the note is, from 0 to 1, by its wording alone."""
    meta = trajectory.problem.meta
    if not {"need", "hurry", "kind"} <= meta.keys():
        return Score(None, why="the problem does not say what is needed, and how to ask for it")
    return Score(quality(trajectory.reply, meta), why=str(read(trajectory.reply)))


@reward
def praise_words(trajectory: Trajectory, *, max_words: PositiveInt = 4) -> float:
    """A shallow style judge: words of praise, as a share of `max_words`. Beyond two, they make a note worse."""
    return min(1.0, read(trajectory.reply).praise / max_words)
