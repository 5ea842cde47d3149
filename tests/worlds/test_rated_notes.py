"""Notes with ratings by attribute."""

from __future__ import annotations

import statistics

import pytest

from rewardlab.worlds.notes import notes
from rewardlab.worlds.rated_notes import ATTRIBUTES, rated_notes, ratings


def test_ratings_of_a_note_by_hand():
    # two markers of politeness, today where there is hurry, two words of praise, one filler
    text = "Please send fresh fine milk today, as ever. Thanks!"
    assert ratings(text, hurry=True) == {"polite": 2, "timely": 1, "praise": 2, "padding": 1}
    assert ratings(text, hurry=False)["timely"] == 0


def test_training_ratings_err_and_are_left_out_and_held_out_ones_are_true():
    task = rated_notes(noise=0.5, missing=0.5, test_size=20)
    for p in task.test:
        assert {name: p.meta[name] for name in ATTRIBUTES} == ratings(p.meta["reply"], p.meta["hurry"])
    train = [task.train[i] for i in range(300)]
    errors = [p.meta[name] - x for p in train for name, x in ratings(p.meta["reply"], p.meta["hurry"]).items() if name in p.meta]
    # one of four is always there, and half of the other three
    assert len(errors) / 1200 == pytest.approx(0.625, abs=0.05)
    assert statistics.stdev(errors) == pytest.approx(0.5, abs=0.06)
    assert task.train[3].meta == rated_notes(noise=0.5, missing=0.5, test_size=20).train[3].meta


def test_the_small_policy_is_that_of_notes():
    assert rated_notes().warmed_as == notes().warmed_as
