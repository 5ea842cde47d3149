"""Inquiries: pairs of episodes, and what they are scored by."""

from __future__ import annotations

import random

import pytest

from rewardlab.errors import RewardlabError
from rewardlab.worlds.inquiries import Habits, inquiries, play

TASK = inquiries(test_size=60)


def test_a_faultless_searcher_finds_the_answer_and_makes_nothing_up():
    for p in TASK.test[:20]:
        found = play(p, Habits(guesses=0.0), random.Random(0))
        assert (found.right, found.solved, found.founded) == (1.0, True, 1.0)
        assert found.texts == p.meta["solution"]
        assert found.texts[-1].endswith(f"Answer: {p.answer}")
        assert [x.rpartition("Search: ")[2] for x in found.texts[:-1:2]] == p.meta["searches"]


def test_scores_are_of_what_happened():
    for p in TASK.test:
        assert {0.0, 0.25, 0.5, 0.75, 1.0} >= {p.meta["direct_score"], p.meta["wandering_score"]}
        solved = p.meta["direct"][-1].endswith(f"Answer: {p.answer}")
        assert (p.meta["direct_score"] >= 0.5) == solved
        for kind in ("sound", "unsound"):
            # each of the two observations is what the message before it said
            results, replies = p.meta[kind][1::2], p.meta[kind][2::2]
            pairs = zip(results, replies, strict=True)
            held = [f"<seen>{result.partition(': ')[2].rstrip('.')}</seen>" in reply for result, reply in pairs]
            assert p.meta[f"{kind}_score"] == sum(held) / 2


def test_the_wandering_write_more_and_go_wrong_more_often():
    words = {kind: sum(len(" ".join(p.meta[kind]).split()) for p in TASK.test) for kind in ("direct", "wandering")}
    scores = {kind: sum(p.meta[f"{kind}_score"] for p in TASK.test) for kind in ("direct", "wandering", "sound", "unsound")}
    assert words["wandering"] > 1.4 * words["direct"]
    assert scores["direct"] > scores["wandering"]
    assert scores["sound"] > 1.5 * scores["unsound"]


@pytest.mark.parametrize("options", [{"hops": 5}, {"guesses": 1.5}])
def test_settings_outside_their_range_are_refused(options):
    with pytest.raises(RewardlabError):
        inquiries(**options)
