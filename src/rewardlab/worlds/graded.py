"""Notes that a judge scores by the wishes that count: several notes at once, or one note beside a reference.

    We need corn. Wishes: polite, urgent, signed.            We need corn. Wishes: polite, urgent, signed.
    [Reply A] we need corn please today                      Counted: polite, exact, warm, loud.
    [Reply B] Ann we need corn                               Best: 7 dear we need corn please !
    [Reply C] today please we need corn Ann                  Reply: we need corn please 7 today
    polite + - + urgent + - + signed - + + [[2, 1, 3]]       polite + exact + warm - loud - [[3]]

Which wishes count says the question, or the row's `principle` (`rubric`), whatever the question wishes; some combinations of them
stand in no training row. A careless judge names only some of the wishes that count, and scores by those.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache, partial
from itertools import combinations
from typing import Any, Literal

from rewardlab.core import Problem, Score, Task, Trajectory, ask
from rewardlab.judges.cases import agrees, best_of
from rewardlab.judges.forms import Form, listed_scores, own_form
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Paired, all_paired
from rewardlab.tasks.sources import test_set, training
from rewardlab.worlds.duels import NEEDS, WISHES, fulfilled

BY_QUESTION, BY_PRINCIPLE = "{prompt}\n{replies}\n", "{prompt}\nCounted: {principle}.\n{replies}\n"
BY_RUBRIC = "{prompt}\nCounted: {rubric}.\nBest: {answer}\nReply: {reply}\n"
"""How a small judge is asked: it needs no words about what to do."""
FORMS = {"question": BY_QUESTION, "principle": BY_PRINCIPLE, "rubric": BY_RUBRIC}
HELD_OUT = 4
"""Every so many-th combination of wishes that count is in held-out rows alone."""

By = Literal["question", "principle", "rubric"]


def graded(
    *, by: By = "question", replies: PositiveInt = 3, counted: PositiveInt = 3, named: Share = 0.6, judged: bool = False,
    test_size: PositiveInt = 300, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Notes of known quality.

    by: what says which wishes count; by a rubric one note is graded from 1, with a reference.  replies: to be scored together
    otherwise.  counted: wishes that count.  named: the chance that the careless judge names one.  judged: the rows are a judge's
    prompts.
    """
    settings = {"by": by, "replies": replies, "counted": counted}
    key, sample = ("graded", *settings.values()), partial(_sample, by=by, counted=counted)
    train, test = (partial(_with_notes, by=by, replies=replies, counted=counted, unseen=x, judged=judged) for x in (False, True))
    given = ("answer", "rubric", "reply", "feedback", "score") if by == "rubric" else ("replies", "scores", "principle")
    return Task(
        name="graded",
        train=Paired(training(sample, key, size), train),
        test=all_paired(test_set(sample, key, test_size), test),
        verifier="rightly_graded",
        max_new=6 * counted + 12 if by == "rubric" else (replies + 5) * counted + 3 * replies + 8,
        about="notes to be scored by the wishes that count",
        demonstrate=partial(_demonstrate, named=named) if judged else None,
        columns=("prompt", "wishes", "criteria", *given, *(("shown", "worth") if judged else ())),
        warmup_steps=800,
        warmed_as=None if judged else _warmed_as(**settings, named=named),
    )


def _warmed_as(**settings: object) -> str:
    return "graded:judged=true," + ",".join(f"{name}={value}" for name, value in settings.items())


def form_of(by: By) -> Form:
    return own_form("scale" if by == "rubric" else "scores", FORMS[by])


def _sample(rng: random.Random, *, by: By, counted: int) -> Problem:
    asked = rng.sample(sorted(WISHES), counted if by == "question" else 3)
    return ask(f"We need {rng.choice(NEEDS)}. Wishes: {', '.join(asked)}.", None, wishes=asked)


@cache
def criteria(counted: int, unseen: bool) -> tuple[tuple[str, ...], ...]:
    """The combinations of wishes that count in held-out rows (unseen), or in training."""
    every = list(combinations(sorted(WISHES), counted))
    return tuple(c for i, c in enumerate(every) if (i % HELD_OUT == 0) == unseen)


def _with_notes(
    problem: Problem, rng: random.Random, *, by: By, replies: int, counted: int, unseen: bool, judged: bool
) -> Problem:  # fmt: skip
    wishes = problem.meta["wishes"]
    chosen = wishes if by == "question" else rng.sample(pool := rng.choice(criteria(counted, unseen)), len(pool))
    known = {**problem.meta, "criteria": list(chosen)}
    need = problem.question.removeprefix("We need ").partition(".")[0]
    if by == "rubric":
        return _single(problem, known, need, rng, judged)
    notes, scores = [""], [0]
    while best_of(scores) is None or len(notes) < replies:
        notes = [_note(need, chosen, rng) for _ in range(replies)]
        scores = [score(note, chosen) for note in notes]
    row = replace(problem, meta={**known, "replies": notes, "scores": scores, "principle": ", ".join(chosen)})
    return _judged(row, notes, scores, by) if judged else row


def _single(problem: Problem, known: dict[str, Any], need: str, rng: random.Random, judged: bool) -> Problem:
    chosen = known["criteria"]
    reference, note = _note(need, chosen, rng, 1.0), _note(need, chosen, rng)
    grade = 1 + score(note, chosen)
    feedback = said(chosen, [note])
    own = {"rubric": ", ".join(chosen), "reply": note, "feedback": feedback, "score": grade}
    row = replace(problem, answer=reference, meta={**known, **own})
    return _judged(row, [note], [grade], "rubric") if judged else row


def _judged(row: Problem, notes: list[str], scores: list[int], by: By) -> Problem:
    """The judge's prompt about these notes."""
    asked = form_of(by).asked(row, notes)
    return replace(asked, meta={**row.meta, "shown": notes, "worth": [float(x) for x in scores]})


def _note(need: str, chosen: list[str], rng: random.Random, chance: float = 0.5) -> str:
    """A note that fulfils each wish that counts by chance, and has some other words of wishes."""
    words = [WISHES[w] for w in sorted(WISHES) if rng.random() < (chance if w in chosen else 0.25)]
    texts = [f"we need {need}", *words]
    rng.shuffle(texts)
    return " ".join(texts)


def score(note: str, chosen: list[str]) -> int:
    """How many of the wishes that count a note fulfils."""
    return sum(fulfilled(note, wish) for wish in chosen)


def said(named: list[str], notes: list[str]) -> str:
    """What a judge writes about notes before their scores: a sign for each, for every wish that it names."""
    return " ".join(" ".join([wish, *("+" if fulfilled(note, wish) else "-" for note in notes)]) for wish in named)


@reward
def rightly_graded(trajectory: Trajectory) -> Score:
    """1 where the scores [[2, 1, 3]] find the best of the notes alone to be the best, or the score of one note is exact."""
    worth = trajectory.problem.meta.get("worth")
    if not worth:
        return Score(None, why="the problem is no question to a judge: it has no column 'worth'")
    found = listed_scores(trajectory.reply, len(worth))
    right = found is not None and (agrees(found, worth) if len(worth) > 1 else found[0] == worth[0])
    return Score(float(right), why="" if found else "no scores are found")


def _demonstrate(problem: Problem, rng: random.Random, *, named: float) -> str:
    """A careless judge's judgement."""
    notes = problem.meta["shown"]
    found = [wish for wish in problem.meta["criteria"] if rng.random() < named]
    base = 1 if "rubric" in problem.meta else 0
    scores = ", ".join(str(base + score(note, found)) for note in notes)
    return " ".join([*([said(found, notes)] if found else []), f"[[{scores}]]"])
