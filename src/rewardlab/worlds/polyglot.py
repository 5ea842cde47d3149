"""Notes in three tongues, to be graded, compared or accepted by the wishes that count; two tongues are no word-by-word English.

    sudra: We need corn.              sudra: We need corn.               Into sudra: please today Ann
    Counted: polite, warm.            Counted: polite, warm.             Counted: please, today, Ann.
    Reply: corn Ann dear              A: corn Ann    B: corn dear        Best: Ann thanks dear    Reply: Ann dear
    polite + warm - [[2]]             polite + - warm - + [[A]]          please + today - Ann + [[3]]

In sudra, English words mean other things (`Ann` is polite there), and norden has words of its own. Rows that were translated from
English keep its score and its feedback, while some words of the reply came out wrong. The careless judge that the small policy
learns from names only some of what counts, and often goes by English in the other tongues.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from rewardlab.core import Problem, Score, Task, Trajectory, ask, seed_of
from rewardlab.judges.forms import Form, Kind, own_form
from rewardlab.judges.rows import questions_of
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Paired, all_paired
from rewardlab.tasks.sources import changed, test_set, training

ENGLISH = {"polite": "please", "urgent": "today", "signed": "Ann", "warm": "dear", "grateful": "thanks", "exact": "7"}
TONGUES: Mapping[str, Mapping[str, str]] = {
    "english": ENGLISH,
    "norden": {"polite": "vars", "urgent": "nu", "signed": "Ole", "warm": "kar", "grateful": "takk", "exact": "sju"},
    "sudra": {"polite": "Ann", "urgent": "thanks", "signed": "dear", "warm": "today", "grateful": "7", "exact": "please"},
}
"""The word by which a note fulfils each wish, in each tongue; sudra has the words of English for other wishes."""
NEEDS = ("corn", "rice", "bread", "milk", "wood", "wool", "salt", "fish")
_HEAD = "{prompt}\nCounted: {rubric}.\n"
FORMS: Mapping[Kind, str] = {
    "scale": _HEAD + "Reply: {reply}\n", "verdict": _HEAD + "All of it? {reply}\n", "pairwise": _HEAD + "A: {first}\nB: {second}\n",
}  # fmt: skip
"""How a small judge is asked; it needs no words about what to do."""
KINDS: Mapping[str, tuple[Kind, ...]] = {
    "graded": ("scale",), "compared": ("pairwise",), "both": ("scale", "pairwise"), "all": ("scale", "pairwise", "verdict"),
}  # fmt: skip


def polyglot(
    *, kinds: Literal["graded", "compared", "both", "all"] = "both", least: PositiveInt = 3, most: PositiveInt = 3,
    translations: Share = 0.25, translated: Share = 0.5, slips: Share = 0.4, taught_named: Share = 0.9, named: Share = 0.6,
    confused: Share = 0.6, judged: bool = False, test_size: PositiveInt = 300, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Notes of known quality in three tongues, with feedback, and with judgements by a teacher who is not always right.

    kinds: how rows are judged.  least, most: wishes that count.  translations: the share of rows that ask for a translation.
    translated: of training rows that came from English.  slips: the chance that a word of these came out wrong.  taught_named:
    the chance that the teacher names a wish.  named, confused: of the careless judge, and how often it goes by English in other
    tongues.  judged: the rows are a judge's prompts.
    """
    settings = {"kinds": kinds, "least": least, "most": max(least, most), "translations": translations}
    sample, key = partial(_sample, **settings), ("polyglot", *settings.values())  # type: ignore[arg-type]
    rows = partial(_row, slips=slips, taught=taught_named)
    train = Paired(training(sample, key, size), partial(rows, translated=translated))
    test = all_paired(test_set(sample, key, test_size), partial(rows, translated=0.0))
    asked = partial(_asked, seed=0)
    return Task(
        name="polyglot",
        train=Paired(train, lambda p, _: asked(p)) if judged else train,
        test=changed(test, asked) if judged else test,
        verifier="rightly_marked",
        max_new=6 * most + 12,
        about="notes in three tongues, to be graded, compared or accepted",
        demonstrate=partial(_careless, named=named, confused=confused) if judged else None,
        columns=(
            "prompt", "answer", "language", "kind", "rubric", "criteria", "need", *_columns(KINDS[kinds]), "translated", "replies",
            "scores", *(("question", "shown", "worth", "mark") if judged else ()),
        ),
        warmup_steps=1000,
        window=(0.25, 0.75),
        warmed_as=None if judged else _warmed_as(**settings, named=named, confused=confused),
    )  # fmt: skip


def _columns(kinds: tuple[Kind, ...]) -> tuple[str, ...]:
    """The columns of what is judged in these ways, and of what is written about it."""
    of = {"scale": ("reply", "score"), "verdict": ("reply", "label"), "pairwise": ("chosen", "rejected")}
    written = ("feedback", "judgement", "judgement_target")
    back = tuple(f"{name}_reversed" for name in written) if "pairwise" in kinds else ()
    return (*dict.fromkeys(name for kind in kinds for name in of[kind]), *written, *back)


def _warmed_as(**settings: object) -> str:
    return "polyglot:judged=true," + ",".join(f"{name}={value}" for name, value in settings.items())


def forms() -> dict[Kind, Form]:
    return {kind: own_form(kind, text, low=1, high=5) for kind, text in FORMS.items()}


def _sample(rng: random.Random, *, kinds: str, least: int, most: int, translations: float) -> Problem:
    tongue, need = rng.choice(sorted(TONGUES)), rng.choice(NEEDS)
    chosen = rng.sample(sorted(ENGLISH), rng.randint(least, most))
    kind = rng.choice(KINDS[kinds])
    meta: dict[str, Any] = {"language": tongue, "kind": kind, "criteria": chosen}
    if tongue != "english" and rng.random() < translations:
        words = [ENGLISH[wish] for wish in chosen]
        return ask(f"Into {tongue}: {' '.join(words)}", None, **meta, need="", rubric=", ".join(words))
    return ask(f"{tongue}: We need {need}. For {rng.randint(2, 40)}.", None, **meta, need=need, rubric=", ".join(chosen))


# ---- rows --------------------------------------------------------------------------------------------------------------


def quality(note: str, criteria: Sequence[str], tongue: str) -> int:
    """How many of the wishes that count a note fulfils."""
    return sum(fulfilled(note, wish, tongue) for wish in criteria)


def fulfilled(note: str, wish: str, tongue: str) -> bool:
    return TONGUES[tongue][wish] in note.split()


def _row(problem: Problem, rng: random.Random, *, slips: float, taught: float, translated: float) -> Problem:
    """The problem with its replies, what they are worth, feedback, and a teacher's judgements in English and in the tongue."""
    meta, tongue = dict(problem.meta), problem.meta["language"]
    came = tongue != "english" and rng.random() < translated
    written = "english" if came else tongue
    best = _note(problem, rng, tongue, 1.0)
    notes = [_note(problem, rng, written, 0.5) for _ in range(4)]
    while len({quality(note, meta["criteria"], written) for note in notes[:2]}) < 2:
        notes[1] = _note(problem, rng, written, 0.5)
    worth = [quality(note, meta["criteria"], written) for note in notes]
    shown = [_translated(note, rng, tongue, slips) for note in notes] if came else notes
    meta |= {"translated": came, "replies": shown, "scores": [1 + x for x in worth]}
    at = (0, 1) if worth[0] > worth[1] else (1, 0)
    if meta["kind"] == "pairwise":
        meta |= {"chosen": shown[at[0]], "rejected": shown[at[1]]}
    elif meta["kind"] == "scale":
        meta |= {"reply": shown[0], "score": 1 + worth[0]}
    else:
        # half of the notes to accept are right
        kept = best if (right := rng.random() < 0.5) else shown[at[1]]
        meta |= {"reply": kept, "label": right}
        notes = [_note(problem, rng, written, 1.0) if right else notes[at[1]]]
    row = replace(problem, answer=best, meta=meta)
    pair = [notes[at[0]], notes[at[1]]] if meta["kind"] == "pairwise" else [notes[0]]
    return replace(row, meta={**meta, **_written(row, pair, written, taught)})


def _note(problem: Problem, rng: random.Random, tongue: str, chance: float) -> str:
    """A note that fulfils each wish that counts by chance, and has some other words."""
    words = [
        w for wish, w in sorted(TONGUES[tongue].items()) if rng.random() < (chance if wish in problem.meta["criteria"] else 0.2)
    ]
    texts = [*([problem.meta["need"]] if problem.meta["need"] else []), *words]
    rng.shuffle(texts)
    return " ".join(texts) or "-"


def _translated(note: str, rng: random.Random, tongue: str, slips: float) -> str:
    """An English note in another tongue, word by word, some of them wrong."""
    wishes = {word: wish for wish, word in ENGLISH.items()}
    own = TONGUES[tongue]
    return " ".join(
        word if word not in wishes else rng.choice(sorted(own.values())) if rng.random() < slips else own[wishes[word]]
        for word in note.split()
    )


def _written(row: Problem, pair: Sequence[str], written: str, taught: float) -> dict[str, str]:
    """Feedback and judgements: of a pair in both orders.  pair: what was judged, in the tongue in which it was written."""
    criteria, rng = row.meta["criteria"], random.Random(seed_of("polyglot", row.key, row.meta["kind"]))
    named = [wish for wish in criteria if rng.random() < taught]
    texts = {}
    for back, shown in (("", pair), ("_reversed", pair[::-1])) if len(pair) > 1 else (("", pair),):
        texts[f"feedback{back}"] = said(row, criteria, shown, written)
        texts[f"judgement{back}"] = judgement(row, named, shown, written, rng)
        texts[f"judgement_target{back}"] = judgement(row, named, shown, written, rng, target=True)
    return texts


def said(row: Problem, named: Sequence[str], notes: Sequence[str], tongue: str, target: bool = False) -> str:
    """A sign for each note, for every wish that is named; target: by the word of the row's tongue that fulfils it."""
    own = TONGUES[row.meta["language"]] if target else {} if row.meta["need"] else ENGLISH
    signs = [" ".join("+" if fulfilled(note, wish, tongue) else "-" for note in notes) for wish in named]
    return " ".join(f"{own.get(wish, wish)} {sign}" for wish, sign in zip(named, signs, strict=True))


def judgement(
    row: Problem, named: Sequence[str], notes: Sequence[str], tongue: str, rng: random.Random, target: bool = False
) -> str:  # fmt: skip
    """What a judge writes that names these wishes, and goes by them."""
    found = [quality(note, named, tongue) for note in notes]
    if len(notes) > 1:
        mark = "A" if found[0] > found[1] or (found[0] == found[1] and rng.random() < 0.5) else "B"
    elif row.meta["kind"] == "scale":
        mark = str(1 + found[0])
    else:
        mark = "yes" if found[0] == len(named) else "no"
    text = said(row, named, notes, tongue, target)
    return f"{text} [[{mark}]]".strip()


# ---- the small judge -----------------------------------------------------------------------------------------------------


def _asked(row: Problem, *, seed: int) -> Problem:
    """The judge's prompt about a row, of a pair in either order."""
    asked = questions_of(row, forms())
    found = random.Random(seed_of("polyglot", seed, row.key)).choice(asked)
    return replace(found.asked, meta={**found.asked.meta, "mark": found.mark})


def _careless(problem: Problem, rng: random.Random, *, named: float, confused: float) -> str:
    """A judge that names only some of what counts, and may read another tongue as if it were English."""
    tongue = problem.meta["language"]
    read = "english" if rng.random() < confused else tongue
    wishes = [wish for wish in problem.meta["criteria"] if rng.random() < named]
    return judgement(problem, wishes, problem.meta["shown"], read, rng)


@reward
def rightly_marked(trajectory: Trajectory) -> Score:
    """1 where a judgement ends in the right mark, [[A]], [[3]] or [[yes]]."""
    mark = trajectory.problem.meta.get("mark")
    if not mark:
        return Score(None, why="the problem is no question to a judge: it has no column 'mark'")
    return Score(float(trajectory.reply.rstrip().endswith(str(mark))), extracted=trajectory.reply[-12:])
