"""Graded notes: several notes are scored by the wishes that count, with one best; what a judge is asked, and what it writes."""

from __future__ import annotations

import random

import pytest
from rows import Replies

from rewardlab.core import Run, Trajectory
from rewardlab.judges.cases import best_of
from rewardlab.worlds.graded import criteria, form_of, graded, rightly_graded, said, score

WORDS = {
    "polite": "please", "urgent": "today", "signed": "Ann", "warm": "dear", "grateful": "thanks", "exact": "7", "loud": "!",
    "curious": "?",
}  # fmt: skip


@pytest.mark.parametrize("by", ["question", "principle"])
def test_scores_count_the_wishes_that_count_and_one_note_is_best(by):
    task = graded(by=by, test_size=30)
    for p in [*(task.train[i] for i in range(30)), *task.test[:30]]:
        counted = p.meta["principle"].split(", ")
        assert p.meta["scores"] == [sum(WORDS[w] in note.split() for w in counted) for note in p.meta["replies"]]
        assert best_of(p.meta["scores"]) is not None
        assert (counted == p.meta["wishes"]) == (by == "question")
    if by == "principle":
        assert {tuple(sorted(p.meta["criteria"])) for p in task.test} <= set(criteria(3, True))
        assert {tuple(sorted(task.train[i].meta["criteria"])) for i in range(200)} <= set(criteria(3, False))


def test_a_judge_is_asked_as_its_method_asks():
    plain, judged = graded(by="principle", test_size=3), graded(by="principle", judged=True, test_size=3)
    for row, question in zip(plain.test, judged.test, strict=True):
        assert question.prompt == form_of("principle").asked(row, row.meta["replies"]).prompt
        assert question.meta["worth"] == [float(x) for x in row.meta["scores"]]


def test_signs_stand_for_the_notes_in_their_order():
    notes = ["we need tea please", "7 we need tea"]
    assert said(["polite", "exact"], notes) == "polite + - exact - +"
    assert [score(note, ["polite", "exact", "loud"]) for note in notes] == [1, 1]


@pytest.mark.parametrize(("by", "counted"), [("question", 3), ("principle", 3), ("rubric", 4)])
def test_a_careful_judge_is_right_and_a_careless_one_often_not(by, counted):
    shares = []
    for named in (1.0, 0.6, 0.0):
        task = graded(by=by, counted=counted, named=named, judged=True, test_size=60)
        texts = [task.demonstrate(p, random.Random(i)) for i, p in enumerate(task.test)]
        rows = Replies(texts).extend([Trajectory(p) for p in task.test], None, None)
        scores = [s.value for s in rightly_graded()([rows], Run(None))[0]]
        shares.append(sum(scores) / len(scores))
    assert shares[0] == 1.0
    # one that names nothing ties all notes; or gives the lowest grade, which a note deserves once in 16 times
    assert 0.25 < shares[1] < 0.75
    assert shares[2] < 0.2


def test_what_is_no_question_to_a_judge_has_no_verdict():
    (plain,) = graded(test_size=1).test
    (row,) = Replies(["[[1, 2, 3]]"]).extend([Trajectory(plain)], None, None)
    assert rightly_graded()([[row]], Run(None))[0][0].value is None
