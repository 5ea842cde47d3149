"""Answers beside documents: what is faithful, what is correct, and what a careless judge makes of it."""

from __future__ import annotations

import random

import numpy as np

from rewardlab import registry
from rewardlab.core import Run, Trajectory
from rewardlab.judges.sentences import LABELS, read, sentences_of, written
from rewardlab.worlds.documented import LINE, PATTERN, PEOPLE, RELATIONS, right_labels, truth
from tests.helpers.rows import Replies


def test_nobody_is_their_own_boss_and_facts_of_a_person_differ():
    for person in PEOPLE:
        known = [truth(person, relation) for relation in RELATIONS]
        assert len({person, *known}) == 1 + len(RELATIONS)


def test_all_four_kinds_of_sentences_are_there_and_labels_follow_from_documents_and_facts():
    train = registry.task("documented").train
    kinds = []
    for problem in (train[i] for i in range(300)):
        for document, s in zip(problem.meta["documents"], sentences_of(problem), strict=True):
            _, relation, _, person, _, said = s.text.rstrip(".").split()
            assert (s.faithful, s.correct, s.reason) == (
                s.text == document,
                said == truth(person, relation),
                truth(person, relation),
            )
            kinds.append((s.faithful, s.correct))
    shares = {kind: np.mean([k == kind for k in kinds]) for kind in set(kinds)}
    assert len(shares) == 4
    assert min(shares.values()) > 0.04


def test_a_judgement_of_the_gold_labels_is_right_and_the_careless_judges_often_are_not():
    judged = registry.task("documented:judged=true")
    rows = [judged.train[i] for i in range(200)]
    gold = [written(sentences_of(p), LINE) for p in rows]
    assert _paid(rows, gold) == 1.0
    rng = random.Random(0)
    assert 0.6 < _paid(rows, [judged.demonstrate(p, rng) for p in rows]) < 0.95
    assert all(read(text, PATTERN, 2) == [tuple(x) for x in p.meta[LABELS]] for p, text in zip(rows, gold, strict=True))


def test_a_row_that_is_no_question_has_no_verdict():
    row = registry.task("documented").train[0]
    assert right_labels()([Replies([]).write([Trajectory(row)], ["1 Ann 1"])], Run(None))[0][0].missing


def test_a_wrong_label_and_fewer_or_more_labels_than_sentences_are_paid_nothing():
    row = registry.task("documented:judged=true").train[0]
    gold = written(sentences_of(row), LINE)
    wrong = gold[:-1] + str(1 - int(gold[-1]))
    assert [_paid([row], [said]) for said in (gold, wrong, "", gold.splitlines()[0], f"{gold}\n1 Ann 1")] == [1, 0, 0, 0, 0]


def _paid(rows, texts):
    groups = [Replies([]).write([Trajectory(p)], [text]) for p, text in zip(rows, texts, strict=True)]
    return np.mean([row[0].value for row in right_labels()(groups, Run(None))])
