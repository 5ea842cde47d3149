"""Notes of which some labels are verified."""

from __future__ import annotations

from rewardlab.worlds.notes import notes
from rewardlab.worlds.verified_notes import verified_notes


def test_verified_pairs_are_rightly_labelled_and_the_others_as_they_were():
    plain, some = notes(flip=0.3, size=300).train, verified_notes(gold=0.2, flip=0.3, size=300).train
    assert len(some) == 300
    pairs = [(plain[i].meta, some[i].meta) for i in range(300)]
    gold = [after for _, after in pairs if after["gold"]]
    assert 0.14 < len(gold) / 300 < 0.26
    assert all(meta["qualities"][0] > meta["qualities"][1] for meta in gold)
    assert any(before["chosen"] == after["rejected"] and before["rejected"] == after["chosen"] for before, after in pairs)
    rest = [(before, after) for before, after in pairs if not after["gold"]]
    assert all({**before, "gold": False} == after for before, after in rest)
    assert 0.2 < sum(after["qualities"][0] < after["qualities"][1] for _, after in rest) / len(rest) < 0.4


def test_held_out_pairs_are_those_of_notes():
    assert verified_notes(test_size=5).test == notes(test_size=5).test
    assert verified_notes().warmed_as == notes().warmed_as
