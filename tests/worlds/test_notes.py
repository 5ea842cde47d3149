"""Notes: their quality is a known function of the text, and the labels of pairs are wrong exactly as asked."""

from __future__ import annotations

import random
import statistics

import pytest

from rewardlab import registry
from rewardlab.worlds.notes import notes, quality, read

ASKED = {"need": "corn", "hurry": True, "kind": True}


@pytest.mark.parametrize(
    ("reply", "meta", "worth"),
    [
        ("Please send fresh fine corn today. Thanks!", {}, 1.0),
        ("Send fresh fine corn.", {"hurry": False, "kind": False}, 1.0),
        ("Please send fresh fine corn today. Thanks!", {"hurry": False}, 0.8),
        ("Please send fresh fine corn today.", {}, 0.85),
        ("Please send corn today. Thanks!", {"kind": False}, 0.4),
        # each word of praise after the second takes away what the first gave
        ("Please send fresh fine fine fine corn today. Thanks!", {}, 0.7),
        ("Please send fresh fine fine fine fine corn today. Thanks!", {}, 0.55),
        ("Please send fresh fine corn today, of course, as ever. Thanks!", {}, 0.8),
        ("Please send fresh fine corn today Thanks!", {}, 0.7),
        ("Please send fresh fine rice today. Thanks!", {}, 0.0),
        ("Please send fresh fine corn rice today. Thanks!", {}, 0.0),
        ("", {}, 0.0),
        ("Send " + "fresh " * 9 + "corn.", {}, 0.0),
    ],
)
def test_the_quality_of_a_note_is_that_of_its_parts(reply, meta, worth):
    assert quality(reply, ASKED | meta) == pytest.approx(worth)


def test_a_careless_writer_starts_half_way_and_the_best_note_is_worth_one():
    task = notes()
    problems = [task.train[i] for i in range(600)]
    worth = [quality(task.demonstrate(p, random.Random(i)), p.meta) for i, p in enumerate(problems)]
    assert 0.52 < statistics.mean(worth) < 0.6
    assert all(quality(p.answer, p.meta) == 1.0 for p in problems)
    for p in problems:
        assert [quality(p.meta[side], p.meta) for side in ("chosen", "rejected")] == p.meta["qualities"]


def better(problems) -> float:
    return statistics.mean(p.meta["qualities"][0] > p.meta["qualities"][1] for p in problems)


@pytest.mark.slow
@pytest.mark.parametrize(("options", "right"), [({}, 1.0), ({"flip": 0.25}, 0.75), ({"noise": 0.2}, 0.73)])
def test_training_labels_are_wrong_as_often_as_asked_and_test_labels_never(options, right):
    task = notes(**options)
    assert better(task.train[i] for i in range(800)) == pytest.approx(right, abs=0.04)
    assert better(task.test) == 1.0


@pytest.mark.slow
def test_an_annotator_with_a_taste_prefers_praise_in_training_only():
    def praised(problems):
        return statistics.mean(read(p.meta["chosen"]).praise - read(p.meta["rejected"]).praise for p in problems)

    plain, biased = notes(), notes(taste=0.15)
    assert praised(biased.train[i] for i in range(800)) > praised(plain.train[i] for i in range(800)) + 0.5
    assert [p.meta for p in biased.test] == [p.meta for p in plain.test]


def test_the_labels_change_neither_the_notes_nor_the_policy():
    plain, flipped = notes(), notes(flip=0.4, size=200)
    assert plain.warmed_as == flipped.warmed_as
    pairs = {p.key: {p.meta["chosen"], p.meta["rejected"]} for p in (plain.train[i] for i in range(400))}
    assert all({p.meta["chosen"], p.meta["rejected"]} == pairs[p.key] for p in (flipped.train[i] for i in range(200)))


def test_the_policy_of_a_labelled_task_is_that_of_the_task_it_was_warmed_up_as():
    from rewardlab.models.embedded import fingerprint, with_own_policy

    prints = {fingerprint(with_own_policy(registry.task(name))) for name in ("notes", "notes:flip=0.3", "notes:taste=0.1,size=50")}
    assert len(prints) == 1
    assert fingerprint(with_own_policy(registry.task("notes:care=0.7"))) not in prints
