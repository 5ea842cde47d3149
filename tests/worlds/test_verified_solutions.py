"""Pairs of solutions of which some labels are verified."""

from __future__ import annotations

from rewardlab.worlds.preferences import preferences
from rewardlab.worlds.verified_solutions import verified_solutions


def test_verified_pairs_are_rightly_labelled_and_the_others_as_they_were():
    same = {"base": "countdown", "writer": "several", "flip": 0.3, "longer": 0.8, "size": 200}
    plain, some = preferences(**same).train, verified_solutions(gold=0.2, **same).train
    assert len(some) == 200
    pairs = [(plain[i].meta, some[i].meta) for i in range(200)]
    gold = [after for _, after in pairs if after["gold"]]
    assert 0.12 < len(gold) / 200 < 0.28
    assert all(meta["qualities"][0] > meta["qualities"][1] for meta in gold)
    assert all({**before, "gold": False} == after for before, after in pairs if not after["gold"])


def test_held_out_pairs_are_those_of_preferences():
    assert verified_solutions(test_size=5).test == preferences(writer="several", test_size=5).test
    assert verified_solutions().warmed_as == preferences().warmed_as
