"""Notes that are judged by one principle each."""

from __future__ import annotations

import pytest

from rewardlab.worlds.notes import notes
from rewardlab.worlds.principled import PRINCIPLES, degree, principled, satisfies


def test_the_chosen_note_satisfies_the_rows_principle_and_the_rejected_one_does_not():
    task = principled(flip=0.3, test_size=50)
    for p in [task.train[i] for i in range(200)] + list(task.test):
        asked = p.meta["principle"]
        assert satisfies(p.meta["chosen"], asked)
        assert not satisfies(p.meta["rejected"], asked)
        assert p.meta["margins"][asked] > 0
    # test labels are true; of the training labels, the share `flip` is not
    assert not any(map(wrong, task.test))
    assert sum(wrong(task.train[i]) for i in range(500)) / 500 == pytest.approx(0.3, abs=0.07)


def wrong(p):
    return (p.meta["label"] == "yes") != satisfies(p.meta["reply"], p.meta["principle"])


def test_degrees_of_a_note_by_hand():
    text = "Please send fresh fine milk today, as ever. Thanks!"
    # two markers of politeness, today, two words of praise, one filler of two words: seven words beside what is sent
    assert [degree(text, name) for name in PRINCIPLES] == [2, 1, 2, -7]
    assert [satisfies(text, name) for name in PRINCIPLES] == [True, True, True, False]
    assert [satisfies("Send milk.", name) for name in PRINCIPLES] == [False, False, False, True]


def test_the_small_policy_is_that_of_notes():
    assert principled().warmed_as == notes().warmed_as
