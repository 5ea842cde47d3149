"""Notes by policies of known quality: who wrote what, what the annotator makes of it, and the ratings."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from rewardlab.worlds.authored_notes import POLICIES, authored_notes, fitted, ratings
from rewardlab.worlds.notes import read


def wins(problems) -> dict[str, float]:
    won, played = Counter(), Counter()
    for p in problems:
        won[p.meta["chosen_model"]] += 1
        played.update((p.meta["chosen_model"], p.meta["rejected_model"]))
    return {name: won[name] / played[name] for name in played}


@pytest.mark.slow
def test_the_annotator_overrates_the_policy_that_praises_and_the_truth_does_not():
    task = authored_notes(size=400, test_size=600)
    train, test = [task.train[i] for i in range(400)], task.test[:600]
    assert set(wins(train)) == {name for name, writer in POLICIES.items() if writer.seen}
    assert set(wins(test)) == set(POLICIES)
    assert wins(train)["chatty"] > max(won for name, won in wins(train).items() if name != "chatty")
    assert wins(test)["chatty"] < 0.5
    assert all(p.meta["qualities"][0] > p.meta["qualities"][1] for p in test)
    assert 0.5 < np.mean([p.meta["qualities"][0] > p.meta["qualities"][1] for p in train]) < 0.75


def test_rows_say_who_wrote_which_reply_and_what_both_are_rated():
    task = authored_notes(size=50, test_size=50)
    elo = ratings(2)
    for p in [task.train[i] for i in range(50)]:
        meta = p.meta
        assert (meta["chosen_elo"], meta["rejected_elo"]) == (elo[meta["chosen_model"]], elo[meta["rejected_model"]])
        for side in ("chosen", "rejected"):
            if meta[f"{side}_model"] == "chatty" and read(meta[side]).names:
                assert read(meta[side]).praise >= 2
        assert {"chosen_model", "rejected_elo"} <= set(task.columns)


@pytest.mark.slow
def test_without_quirk_and_taste_nobody_is_overrated():
    task = authored_notes(quirk=0, taste=0.0, size=300)
    assert all(p.meta["qualities"][0] > p.meta["qualities"][1] for p in (task.train[i] for i in range(300)))
    # the same care: the same quality
    assert ratings(0)["chatty"] == pytest.approx(ratings(0)["junior"], abs=50)
    assert ratings(2)["chatty"] < ratings(0)["chatty"]


def test_ratings_are_those_of_the_highest_likelihood():
    # a beats b three times in four: odds 3, so 400 log10 3 = 190.8 apart, around 1200
    assert fitted(np.array([[0.0, 3.0], [1.0, 0.0]])) == pytest.approx([1295.4, 1104.6], abs=0.1)
